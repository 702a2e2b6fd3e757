//! Circuit breakers of tools and of what runs them, in the standard stack.

use std::sync::Arc;

use tool_testkit::{ScriptedExecutor, ScriptStep};
use toolplane::{
    CallRequest, Toolplane,
    core::{ErrorKind, ToolError},
    manifest::{LoadOptions, Loaded, Syntax, load},
    observe::Metrics,
};

use crate::may_have_run::upstream;

fn loaded(yaml: &str) -> Loaded {
    load(&LoadOptions::new().text("c", Syntax::Yaml, yaml)).expect("usable")
}

/// Calls a tool until its breaker opens, and tells whether another of the same host is held back.
async fn is_other_held_back(bad: &str, good: &str) -> bool {
    let (url, status, count) = upstream().await;
    let host = url.rsplit_once('/').expect("a path").0;
    let http = format!("executor: {{kind: http, method: POST, url: '{host}/x', allow_private: true}}");
    let plane = Toolplane::builder()
        .loaded(&loaded(&format!(
            "tools:\n  bad: {{description: d, breaker: {{{bad}}}, {http}}}\n  good: {{description: d, breaker: {{{good}}}, {http}}}"
        )))
        .build()
        .expect("usable");
    status.store(503, std::sync::atomic::Ordering::SeqCst);
    for _ in 0..5 {
        plane.call(CallRequest::new("bad")).await.expect_err("503");
    }
    let before = count.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(before, 3, "its own breaker is open");
    status.store(200, std::sync::atomic::Ordering::SeqCst);
    plane.call(CallRequest::new("good")).await.is_err()
}

/// A host that is no server is held back as a whole where a tool asks for it, and never else.
#[tokio::test]
async fn one_tools_failures_hold_back_its_host_only_where_it_says_so() {
    for (bad, good, expected) in [
        ("max_failures: 3", "", false),
        ("max_failures: 3", "per: upstream", false),
        ("max_failures: 3, per: tool", "", false),
        ("max_failures: 3, per: upstream", "", true),
        ("max_failures: 3, per: upstream", "disabled: true", false),
    ] {
        assert_eq!(is_other_held_back(bad, good).await, expected, "{bad}; {good}");
    }
}

#[tokio::test]
async fn the_gauge_of_an_open_breaker_goes_with_the_tool() {
    let metrics = Arc::new(Metrics::new());
    let down = ToolError::new(ErrorKind::Unavailable, "no connection");
    let script = ScriptedExecutor::new([ScriptStep::Fail(down)]);
    let yaml = |name: &str| {
        loaded(&format!(
            "tools: {{{name}: {{description: d, breaker: {{}}, executor: {{kind: scripted}}}}}}"
        ))
    };
    let plane = Toolplane::builder()
        .loaded(&yaml("a"))
        .executor(Arc::new(script))
        .observer(metrics.clone())
        .build()
        .expect("usable");
    for _ in 0..5 {
        plane
            .call(CallRequest::new("a"))
            .await
            .expect_err("no connection");
    }
    let is_shown = || {
        metrics
            .render()
            .contains(r#"toolplane_breaker_state{tool="a"} 2"#)
    };
    assert!(is_shown());
    plane.reload(&yaml("a")).expect("usable");
    assert!(is_shown(), "a reload keeps it");
    plane.reload(&yaml("b")).expect("usable");
    assert!(!is_shown() && !metrics.render().contains("toolplane_breaker_state{"));
}
