//! Limits in the standard stack: their origin and their effect on calls.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use serde_json::json;
use tokio::time::Instant;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};
use toolplane::{
    CallRequest, Toolplane,
    core::{ConcurrencySettings, ErrorKind, Metadata, RateLimitSettings, Trust},
    manifest::Configuration,
};

const SECOND: Duration = Duration::from_secs(1);

fn two_per_minute() -> RateLimitSettings {
    RateLimitSettings::new(2, 60 * SECOND)
}

fn plane(
    script: &ScriptedExecutor,
    configuration: Configuration,
    tools: impl IntoIterator<Item = TestTool>,
) -> Toolplane {
    let builder = Toolplane::builder()
        .configuration(configuration)
        .executor(Arc::new(script.clone()));
    let builder = tools
        .into_iter()
        .fold(builder, |builder, tool| builder.tool(tool.descriptor));
    builder.build().expect("can be set up")
}

async fn kind(plane: &Toolplane, tool: &str) -> Option<ErrorKind> {
    let result = plane.call(CallRequest::new(tool)).await;
    result.err().map(|error| error.kind())
}

#[tokio::test(start_paused = true)]
async fn a_tools_own_limit_holds_and_is_explained_and_a_dry_run_counts_nothing() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let metadata = {
        let mut metadata = Metadata::default();
        metadata.rate_limit = Some(two_per_minute());
        metadata.concurrency = Some(ConcurrencySettings::new(1));
        metadata
    };
    let plane = plane(
        &script,
        Configuration::default(),
        [TestTool::new("search").metadata(metadata)],
    );
    for _ in 0..5 {
        let explained = plane.dry_run(CallRequest::new("search")).await;
        assert!(explained.result.is_ok());
    }
    let explained = plane.call_explained(CallRequest::new("search")).await;
    let layers: Vec<_> = explained.decisions.iter().map(|note| note.layer).collect();
    assert_eq!(
        layers[3..8],
        [
            "validation",
            "rate limit",
            "concurrency limit",
            "attempt",
            "timeout"
        ]
    );
    assert_eq!(kind(&plane, "search").await, None);
    assert_eq!(kind(&plane, "search").await, Some(ErrorKind::RateLimited));
    assert_eq!(script.n_calls(), 2);
}

#[tokio::test]
async fn what_a_server_says_of_its_tools_limits_nothing() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let mut tool = TestTool::new("search");
    tool.descriptor.metadata.rate_limit = Some(two_per_minute());
    tool.descriptor.origin.trust = Trust::Upstream;
    let plane = plane(&script, Configuration::default(), [tool]);
    for _ in 0..9 {
        assert_eq!(kind(&plane, "search").await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn many_calls_at_once_are_bounded_by_the_window_and_keep_their_order() {
    let script = ScriptedExecutor::new([
        ScriptStep::After(9 * SECOND, json!("slow")),
        ScriptStep::Fail(toolplane::core::ToolError::new(
            ErrorKind::Unavailable,
            "it is ill",
        )),
        ScriptStep::After(SECOND, json!("quick")),
    ]);
    let plane = plane(&script, Configuration::default(), [TestTool::new("tool")]);
    let start = Instant::now();
    let requests = (0..8).map(|_| CallRequest::new("tool"));
    let window = NonZeroUsize::new(2).expect("not 0");
    let results = plane.call_many(requests, window).await;
    let kinds: Vec<_> = results
        .iter()
        .map(|result| result.as_ref().err().map(toolplane::core::ToolError::kind))
        .collect();
    let mut expected = vec![None; 8];
    expected[1] = Some(ErrorKind::Unavailable);
    assert_eq!(kinds, expected, "each in its place");
    // The others pass the slow one, which keeps one place of the window.
    assert_eq!(start.elapsed(), 9 * SECOND);
    assert_eq!(script.n_running(), 0);
}

#[tokio::test(start_paused = true)]
async fn no_more_of_many_calls_run_than_the_window_holds() {
    let script = ScriptedExecutor::new([ScriptStep::Hang(false)]);
    let plane = plane(&script, Configuration::default(), [TestTool::new("tool")]);
    let requests = (0..20).map(|_| CallRequest::new("tool"));
    let dropped =
        tokio::time::timeout(SECOND, plane.call_many(requests, Toolplane::DEFAULT_CONCURRENCY)).await;
    assert!(dropped.is_err(), "they hang");
    assert_eq!(
        (script.n_calls(), script.n_running()),
        (5, 0),
        "and are cancelled"
    );
}

/// Limits of a server.
#[cfg(feature = "exec-mcp")]
mod of_a_server {
    use toolplane::{
        core::{Descriptor, DynBackend, Executor, PrepareError, Scopes},
        manifest::{ServerSpec, ServerTransport},
        policy::RateLimits,
    };

    use super::*;

    /// A scripted executor all of whose tools are run by the server `files`.
    struct Files(ScriptedExecutor);

    impl Executor for Files {
        fn kind(&self) -> &'static str {
            "scripted"
        }

        fn prepare(&self, descriptor: &Descriptor) -> Result<Arc<dyn DynBackend>, Vec<PrepareError>> {
            self.0.prepare(descriptor)
        }

        fn upstream(&self, _: &Descriptor) -> Option<Arc<str>> {
            Some("files".into())
        }

        fn config_schema(&self) -> toolplane::RawJson {
            self.0.config_schema()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_servers_limit_is_that_of_all_its_tools_in_the_place_of_the_default() {
        let script = ScriptedExecutor::new([ScriptStep::Echo]);
        let transport = ServerTransport::Http {
            url: toolplane::core::Template::parse("http://127.0.0.1:1/mcp").expect("a URL"),
            headers: Default::default(),
            transport: Default::default(),
        };
        let mut server = ServerSpec::new("files", transport);
        let upstream = |limit| {
            RateLimits(Scopes {
                upstream: Some(limit),
                ..Scopes::default()
            })
        };
        server.overrides.set(upstream(two_per_minute()));
        let mut configuration = Configuration::default();
        configuration.servers = vec![server];
        configuration.defaults.overrides.set(upstream({
            let mut new = two_per_minute();
            new.requests = 1;
            new
        }));
        let plane = Toolplane::builder()
            .configuration(configuration)
            .executor(Arc::new(Files(script.clone())))
            .tool(TestTool::new("read").descriptor)
            .tool(TestTool::new("list").descriptor)
            .build()
            .expect("can be set up");
        assert_eq!(kind(&plane, "read").await, None);
        assert_eq!(kind(&plane, "list").await, None);
        assert_eq!(kind(&plane, "read").await, Some(ErrorKind::RateLimited));
    }
}
