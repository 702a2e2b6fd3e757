//! Errors of a build that lacks what the configuration needs.

use std::sync::Arc;

use serde_json::json;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, executor};
use toolplane::{
    BuildError, CallRequest, Toolplane,
    core::{BoxFuture, Catalogue, Feature, Source, SourceState, SourceStatus},
    manifest::{LoadOptions, Loaded, Syntax, load},
};

fn loaded(yaml: &str) -> Loaded {
    load(&LoadOptions::new().text("c", Syntax::Yaml, yaml)).expect("usable")
}

/// Parts of a configuration, their features, and whether this build has them.
const NEEDS: [(&str, &str, &str, bool); 7] = [
    (
        "endpoints: {e: {command: x}}",
        "the endpoint `e`",
        "exec-endpoint",
        cfg!(feature = "exec-endpoint"),
    ),
    (
        "servers: {s: {url: 'http://127.0.0.1:9/mcp'}}",
        "the server `s`",
        "exec-mcp",
        cfg!(feature = "exec-mcp"),
    ),
    (
        "servers: {s: {url: 'ws://127.0.0.1:9/mcp'}}",
        "the server `s`",
        if cfg!(feature = "exec-mcp") {
            "websocket"
        } else {
            "exec-mcp"
        },
        cfg!(feature = "websocket"),
    ),
    (
        "tools: {t: {description: d, executor: {kind: mock, result: 1}}}",
        "the tool `t`",
        "exec-mock",
        cfg!(feature = "exec-mock"),
    ),
    (
        "tools: {t: {description: d, executor: {kind: http, url: 'https://a.example/'}}}",
        "the tool `t`",
        "exec-http",
        cfg!(feature = "exec-http"),
    ),
    (
        "tools: {t: {description: d, executor: {kind: own}, health_check_endpoint: 'https://a.example/'}}",
        "the health check endpoint of `t`",
        "outbound",
        cfg!(feature = "outbound"),
    ),
    (
        "alerts: {webhook: {url: 'https://a.example/'}}",
        "the webhooks",
        "outbound",
        cfg!(feature = "outbound"),
    ),
];

#[tokio::test]
async fn a_build_refuses_what_it_lacks_and_names_the_feature() {
    for (yaml, part, feature, is_there) in NEEDS {
        let built = Toolplane::builder().loaded(&loaded(yaml)).build().map(|_| ());
        let plane = Toolplane::builder().build().expect("an empty one is usable");
        let reloaded = plane.reload(&loaded(yaml));
        for result in [built, reloaded] {
            let Err(error) = result else {
                assert!(is_there, "{yaml}");
                continue;
            };
            assert!(!is_there, "{yaml}: {error}");
            assert!(matches!(error, BuildError::LeftOut { .. }), "{error}");
            let text = error.to_string();
            assert!(
                text.contains(part) && text.contains(&format!("`{feature}`")),
                "{text}"
            );
        }
    }
    let off = loaded("servers: {s: {url: 'ws://127.0.0.1:9/mcp', disabled: true}}");
    assert!(Toolplane::builder().loaded(&off).build().is_ok());
}

#[tokio::test]
async fn a_kind_that_the_program_brings_is_not_missing() {
    let yaml = "tools: {t: {description: d, executor: {kind: http, url: 'https://a.example/'}}}";
    let script = ScriptedExecutor::new([ScriptStep::Value(json!("own"))]);
    let plane = Toolplane::builder()
        .loaded(&loaded(yaml))
        .executor(executor("http", script))
        .build()
        .expect("usable");
    let outcome = plane.call(CallRequest::new("t")).await.expect("answered");
    assert_eq!(outcome.into_reply().expect("a reply").text(), "own");
}

/// Source whose one tool is of a kind.
struct OneTool(&'static str);

impl Source for OneTool {
    fn name(&self) -> &str {
        "one"
    }

    fn snapshot(&self) -> Arc<Catalogue> {
        let mut tool = TestTool::new("t").descriptor;
        tool.executor.kind = self.0.to_owned();
        tool.executor.config = match self.0 {
            "http" => json!({"url": "https://a.example/"}),
            _ => json!({"result": 1}),
        };
        Arc::new(Catalogue::new(1, vec![Arc::new(tool)]))
    }

    fn load(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn changed(&self, _: u64) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn may_hold(&self, _: Feature, _: &str) -> bool {
        false
    }

    fn status(&self) -> SourceStatus {
        SourceStatus::new(SourceState::Ready)
    }
}

/// Tests tools that no configuration names, so that the build cannot refuse them.
#[tokio::test]
async fn a_tool_of_a_source_whose_kind_was_left_out_is_seen_in_readiness() {
    for (kind, is_there, feature) in [
        ("mock", cfg!(feature = "exec-mock"), "`exec-mock`"),
        ("http", cfg!(feature = "exec-http"), "`exec-http`"),
    ] {
        let plane = Toolplane::builder()
            .source(Arc::new(OneTool(kind)))
            .build()
            .expect("usable");
        let readiness = plane.readiness();
        assert_eq!(readiness.is_ready(), is_there, "{kind}: {readiness:?}");
        let is_named = |reason: &String| reason.contains("`t`") && reason.contains(feature);
        assert_eq!(readiness.reasons.iter().any(is_named), !is_there, "{readiness:?}");
    }
}
