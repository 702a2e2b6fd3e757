//! Retries and breakers in the standard stack, as configured.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{Instant, advance},
};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};
use toolplane::{
    CallRequest, Toolplane,
    core::{ErrorKind, Metadata, Outcome, Overrides, ToolError},
    policy::{BreakerSettings, Breakers},
    runtime::RetrySettings,
};

const SECOND: Duration = Duration::from_secs(1);

fn down() -> ScriptStep {
    ScriptStep::Fail(ToolError::new(ErrorKind::Unavailable, "nobody answers"))
}

fn tool(name: &str, overrides: Overrides) -> TestTool {
    let mut tool = TestTool::new(name);
    tool.descriptor.overrides = overrides;
    tool
}

fn plane(script: &ScriptedExecutor, tool: TestTool) -> Toolplane {
    Toolplane::builder()
        .executor(Arc::new(script.clone()))
        .tool(tool.descriptor)
        .build()
        .expect("the standard primitives can be set up")
}

fn both() -> Overrides {
    Overrides::default()
        .with(RetrySettings::default())
        .with(Breakers::from(BreakerSettings::default()))
}

#[tokio::test(start_paused = true)]
async fn a_call_is_explained_with_its_attempts() {
    let script = ScriptedExecutor::new([down(), ScriptStep::Echo]);
    let plane = plane(&script, tool("t", both()));
    let explained = plane.call_explained(CallRequest::new("t")).await;
    explained.result.expect("the second attempt is answered");
    let layers: Vec<_> = explained.decisions.iter().map(|note| note.layer).collect();
    let attempt = ["breaker", "attempt", "timeout", "executor"];
    let mut expected = vec!["watch", "deadline", "admission", "validation"];
    expected.extend(attempt);
    expected.push("retry");
    expected.extend(attempt);
    expected.push("result validation");
    assert_eq!(layers, expected);
    let retry = explained
        .decisions
        .iter()
        .find(|note| note.layer == "retry")
        .expect("noted");
    assert!(retry.decision.starts_with("again in "), "{}", retry.decision);
}

#[tokio::test(start_paused = true)]
async fn one_deadline_holds_for_all_attempts() {
    let metadata = {
        let mut metadata = Metadata::default();
        metadata.idempotent = Some(true);
        metadata
    };
    let script = ScriptedExecutor::new([ScriptStep::Hang(true)]);
    let plane = plane(&script, tool("t", both()).metadata(metadata));
    let start = Instant::now();
    let error = plane.call(CallRequest::new("t")).await.expect_err("it hangs");
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(
        start.elapsed(),
        60 * SECOND,
        "two attempts of 30 s do not fit with a pause between"
    );
    assert_eq!((script.n_calls(), script.n_running()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_sent_call_is_not_sent_again_under_any_settings() {
    let script = ScriptedExecutor::new([ScriptStep::Hang(true), ScriptStep::Echo]);
    let plane = plane(&script, tool("pay", both()));
    let error = plane.call(CallRequest::new("pay")).await.expect_err("it hangs");
    assert_eq!((error.kind(), script.n_calls()), (ErrorKind::OutcomeUnknown, 1));
}

/// R11, through all layers: of ten thousand calls at once one is the probe, whether it fails, hangs or succeeds.
#[tokio::test(start_paused = true)]
async fn of_ten_thousand_calls_one_is_the_probe_in_every_round() {
    const ROUNDS: usize = 4;
    let mut steps = vec![down(); 5];
    steps.extend([ScriptStep::Hang(true), down(), ScriptStep::Hang(true)]);
    steps.push(ScriptStep::After(SECOND / 2, json!("well")));
    let script = ScriptedExecutor::new(steps);
    let mut tool = tool("t", both());
    tool.descriptor.timeout = Some(SECOND);
    let plane = plane(&script, tool);
    for _ in 0..2 {
        plane
            .call(CallRequest::new("t"))
            .await
            .expect_err("nobody answers");
    }
    for round in 1..=ROUNDS {
        // The longest pause and the largest jitter.
        advance(73 * SECOND).await;
        let mut calls = JoinSet::new();
        for _ in 0..10_000 {
            let plane = plane.clone();
            calls.spawn(async move { plane.call(CallRequest::new("t")).await.is_ok() });
        }
        let n_ok = calls.join_all().await.into_iter().filter(|&is_ok| is_ok).count();
        assert_eq!(
            (n_ok, script.n_calls()),
            (usize::from(round == ROUNDS), 5 + round),
            "round {round}"
        );
    }
    plane.call(CallRequest::new("t")).await.expect("it is closed");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_held_back_fails_at_once_and_a_dry_run_changes_nothing() {
    let script = ScriptedExecutor::new([down()]);
    let plane = plane(&script, tool("t", both()));
    for _ in 0..2 {
        plane
            .call(CallRequest::new("t"))
            .await
            .expect_err("nobody answers");
    }
    assert_eq!(script.n_calls(), 5, "three attempts, and two until it opens");
    let start = Instant::now();
    let error = plane.call(CallRequest::new("t")).await.expect_err("held back");
    assert_eq!((error.kind(), script.n_calls()), (ErrorKind::Unavailable, 5));
    assert!(error.retry_after().is_some() && start.elapsed().is_zero());
    let refused = plane.dry_run(CallRequest::new("t")).await;
    assert_eq!(
        refused.result.expect_err("held back as well").kind(),
        ErrorKind::Unavailable
    );
    advance(2 * SECOND).await;
    let dry = plane.dry_run(CallRequest::new("t")).await;
    assert!(matches!(dry.result, Ok(Outcome::Pending(_))), "{:?}", dry.result);
    plane
        .call(CallRequest::new("t"))
        .await
        .expect_err("the probe fails");
    assert_eq!(script.n_calls(), 6, "the dry run did not close it");
}

/// Settings of tools that configurations name.
#[cfg(all(feature = "exec-mcp", feature = "exec-mock"))]
mod configured {
    use toolplane::core::{Caller, Settings};

    use super::*;

    const CONFIGURATION: &str = r#"
defaults:
  retry: {max_attempts: 4, initial_delay: 50ms}
  breaker: {max_failures: 2}
tools:
  plain:
    description: As all are.
    executor: {kind: mock, result: 1}
  own:
    description: In another way.
    retry: {max_attempts: 2}
    breaker: {failure_share: 25%, window: 1m}
    executor: {kind: mock, result: 1}
  bare:
    description: With nothing.
    retry: {max_attempts: 1}
    breaker: {disabled: true}
    executor: {kind: mock, result: 1}
"#;

    async fn settings(yaml: &str, name: &str) -> Settings {
        let plane = Toolplane::from_yaml(yaml).expect("usable");
        let tool = plane.tool(name, &Caller::local()).await;
        tool.expect("it is there").settings().clone()
    }

    fn retry(settings: &Settings) -> Option<RetrySettings> {
        settings.get().copied()
    }

    fn breaker(settings: &Settings) -> Option<BreakerSettings> {
        settings.get::<Breakers>().map(|breakers| breakers.tool)
    }

    #[tokio::test]
    async fn a_tools_settings_stand_in_the_place_of_the_defaults() {
        let plain = settings(CONFIGURATION, "plain").await;
        assert_eq!(
            (retry(&plain), breaker(&plain).map(|breaker| breaker.max_failures)),
            (
                Some(
                    RetrySettings::default()
                        .with_max_attempts(4)
                        .with_initial_delay(Duration::from_millis(50))
                ),
                Some(2)
            )
        );
        let own = settings(CONFIGURATION, "own").await;
        let expected_breaker = BreakerSettings::default()
            .with_failure_percent(25)
            .with_window(Duration::from_secs(60));
        let expected_retry = RetrySettings::default().with_max_attempts(2);
        assert_eq!(
            (retry(&own), breaker(&own)),
            (Some(expected_retry), Some(expected_breaker))
        );
        let bare = settings(CONFIGURATION, "bare").await;
        assert_eq!((retry(&bare), breaker(&bare)), (None, None));
        let silent = "tools: {t: {description: x, executor: {kind: mock, result: 1}}}";
        let silent = settings(silent, "t").await;
        assert_eq!(
            (retry(&silent), breaker(&silent)),
            (None, None),
            "nothing that nobody asked for"
        );
    }

    #[tokio::test]
    async fn a_servers_settings_hold_for_the_tools_that_are_written_out_for_it() {
        let yaml = serde_json::json!({
            "defaults": {"retry": {"max_attempts": 9}},
            "servers": {"s": {"command": "none", "retry": {"max_attempts": 2}, "breaker": {}}},
            "tools": {"t": {
                "description": "x",
                "idempotent": true,
                "executor": {"kind": "mcp", "server": "s", "tool": "t"},
            }},
        });
        let settings = settings(&yaml.to_string(), "t").await;
        assert_eq!(retry(&settings).map(|retry| retry.max_attempts), Some(2));
        assert_eq!(breaker(&settings), Some(BreakerSettings::default()));
    }
}
