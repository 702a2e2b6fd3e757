//! Errors of a build that lacks what the configuration needs.

use toolplane::{
    BuildError, Toolplane,
    manifest::{LoadOptions, Loaded, Syntax, load},
};

fn loaded(yaml: &str) -> Loaded {
    load(&LoadOptions::new().text("c", Syntax::Yaml, yaml)).expect("usable")
}

const SERVERS: &str = "servers: {s: {url: 'http://127.0.0.1:9/mcp'}}";

#[tokio::test]
async fn servers_need_a_build_with_them() {
    let built = Toolplane::builder().loaded(&loaded(SERVERS)).build();
    let plane = Toolplane::builder().build().expect("an empty one is usable");
    let reloaded = plane.reload(&loaded(SERVERS));
    if cfg!(feature = "exec-mcp") {
        assert!(built.is_ok() && reloaded.is_ok());
    } else {
        for error in [built.map(|_| ()), reloaded].map(|result| result.expect_err("no servers")) {
            assert!(matches!(error, BuildError::LeftOut(_)), "{error}");
            assert!(error.to_string().contains("`exec-mcp`"), "{error}");
        }
    }
    let off = loaded("servers: {s: {url: 'http://127.0.0.1:9/mcp', disabled: true}}");
    assert!(Toolplane::builder().loaded(&off).build().is_ok());
}

#[tokio::test]
async fn a_tool_whose_kind_was_left_out_is_seen_in_readiness() {
    for (executor, is_there, feature) in [
        (
            "{kind: mock, result: 1}",
            cfg!(feature = "exec-mock"),
            "`exec-mock`",
        ),
        (
            "{kind: http, url: 'https://a.example/'}",
            cfg!(feature = "exec-http"),
            "`exec-http`",
        ),
    ] {
        let yaml = format!("tools: {{t: {{description: d, executor: {executor}}}}}");
        let plane = Toolplane::builder()
            .loaded(&loaded(&yaml))
            .build()
            .expect("usable");
        let readiness = plane.readiness();
        assert_eq!(readiness.is_ready(), is_there, "{executor}: {readiness:?}");
        let is_named = |reason: &String| reason.contains("`t`") && reason.contains(feature);
        assert_eq!(readiness.reasons.iter().any(is_named), !is_there, "{readiness:?}");
    }
}
