//! What may follow a failure, by how far the attempt got and what the operator declared.

use std::sync::Arc;

use serde_json::json;
use tokio::time::advance;
use tool_core::{ErrorKind, Invoke, Layers, Metadata, Outcome, ToolError};
use tool_runtime::{
    CacheLayer, DeadlineLayer, FallbackLadder, FallbackLayer, RetryLayer, TimeoutLayer, TokioClock,
};
use tool_runtime::{CacheSettings, FailureStep, RetrySettings};
use tool_testkit::{Script, Step, TestTool, call};

use crate::degrade::{Others, ROOM, SECOND, given};

/// What is done after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follows {
    Retry,
    Fallback,
    Stale,
    StaleIfError,
    Default,
}

const ALL: [Follows; 5] = [
    Follows::Retry,
    Follows::Fallback,
    Follows::Stale,
    Follows::StaleIfError,
    Follows::Default,
];

fn declared(idempotent: Option<bool>, read_only: Option<bool>) -> Metadata {
    Metadata {
        idempotent,
        read_only,
        ..Metadata::default()
    }
}

/// Answers once, then does this; tells what came of the second call and whether the failure was followed by anything.
async fn run(follows: Follows, metadata: Metadata, step: &Step) -> (Result<Outcome, ToolError>, bool) {
    let script = Script::new([
        Step::Value(json!("kept")),
        step.clone(),
        Step::Value(json!("again")),
    ]);
    let mut tool = TestTool::new("t").metadata(metadata);
    let cached = |stale_if_error| CacheSettings {
        ttl: Some(SECOND),
        stale_if_error,
        ..CacheSettings::default()
    };
    let ladder = |step: FailureStep| FallbackLadder::from(vec![step]);
    match follows {
        Follows::Retry => tool.settings.set(RetrySettings::default()),
        Follows::Fallback => tool.settings.set(ladder(FailureStep::Fallback("other".into()))),
        Follows::Default => tool.settings.set(ladder(given(json!("given")))),
        Follows::Stale => {
            tool.settings.set(cached(std::time::Duration::ZERO));
            tool.settings.set(ladder(FailureStep::Stale(3600 * SECOND)));
        }
        Follows::StaleIfError => tool.settings.set(cached(3600 * SECOND)),
    }
    let others = Arc::new(Others::default().with("other", Step::Value(json!("other"))));
    let share = CacheLayer::new(ROOM);
    let stack = Layers::outermost(DeadlineLayer)
        .then(FallbackLayer::new(share.clone()).gate(others))
        .then(share)
        .then(RetryLayer::default())
        .then(TimeoutLayer)
        .around(script.clone());
    let (tool, clock) = (tool.build(script), Arc::new(TokioClock::new()));
    let next = || call(tool.clone(), json!({}), clock.clone());
    stack
        .invoke(&mut next())
        .await
        .expect("the first call is answered");
    advance(60 * SECOND).await;
    let result = stack.invoke(&mut next()).await;
    let is_followed = result.is_ok();
    (result, is_followed)
}

fn fail(kind: ErrorKind) -> ToolError {
    ToolError::new(kind, "as scripted")
}

#[tokio::test(start_paused = true)]
async fn one_rule_decides_what_may_follow_a_failure() {
    // The step, whether it was sent, and whether the tool may have run then.
    let steps = [
        (Step::Fail(fail(ErrorKind::Unavailable)), false, false),
        (Step::Fail(fail(ErrorKind::RateLimited)), false, false),
        (Step::Hang(false), false, false),
        (Step::FailNotTaken(fail(ErrorKind::Unavailable)), true, false),
        (Step::FailNotTaken(fail(ErrorKind::RateLimited)), true, false),
        (Step::FailAnswered(fail(ErrorKind::UpstreamError)), true, true),
        (Step::FailAnswered(fail(ErrorKind::Unavailable)), true, true),
        (Step::FailAnswered(fail(ErrorKind::RateLimited)), true, true),
        (Step::FailSent(fail(ErrorKind::Unavailable)), true, true),
        (Step::Hang(true), true, true),
    ];
    let tools = [
        (declared(None, None), false),
        (declared(Some(false), Some(false)), false),
        (declared(Some(true), None), true),
        (declared(None, Some(true)), true),
    ];
    for follows in ALL {
        for (metadata, is_repeatable) in &tools {
            for (step, was_sent, may_have_run) in &steps {
                let shown = format!("{follows:?} {metadata:?} {step:?}");
                let (result, is_followed) = run(follows, metadata.clone(), step).await;
                let may_follow = match follows {
                    // Stricter: after a byte has left, an answer does not make it safe.
                    Follows::Retry => !was_sent,
                    _ => !may_have_run,
                };
                assert_eq!(is_followed, may_follow || *is_repeatable, "{shown}: {result:?}");
                if let Err(error) = result {
                    assert_eq!(error.may_have_run(), *may_have_run, "{shown}: {error:?}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_the_same_work_knows_that_the_tool_may_have_run() {
    let script = Script::new([Step::Value(json!("kept")), Step::Hang(true)]);
    let mut tool = TestTool::new("t");
    tool.settings.set(CacheSettings {
        ttl: Some(SECOND),
        ..CacheSettings::default()
    });
    tool.settings
        .set(FallbackLadder::from(vec![FailureStep::Stale(3600 * SECOND)]));
    let share = CacheLayer::new(ROOM);
    let stack = Layers::outermost(DeadlineLayer)
        .then(FallbackLayer::new(share.clone()))
        .then(share)
        .around(script.clone());
    let (tool, clock) = (tool.build(script), Arc::new(TokioClock::new()));
    let next = || call(tool.clone(), json!({}), clock.clone());
    stack.invoke(&mut next()).await.expect("answered");
    advance(60 * SECOND).await;
    let (mut first, mut second) = (next(), next());
    let (first, second) = tokio::join!(stack.invoke(&mut first), stack.invoke(&mut second));
    for result in [first, second] {
        let error = result.expect_err("nothing is given");
        assert!(error.may_have_run(), "{error:?}");
    }
}

/// The layer alone, without anything that watches attempts.
#[tokio::test(start_paused = true)]
async fn retries_count_their_attempts_themselves() {
    use tool_core::{CallContext, DispatchState};

    struct Numbered(Script, std::sync::Mutex<Vec<(u32, DispatchState)>>);
    impl Invoke for Numbered {
        async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
            self.1.lock().unwrap().push((cx.attempt, cx.dispatch().state()));
            self.0.invoke(cx).await
        }
    }
    let mut tool = TestTool::new("pay");
    tool.settings.set(RetrySettings::default());
    tool.settings.passes_key = true;
    let steps = [Step::FailAnswered(fail(ErrorKind::Unavailable)), Step::Hang(true)];
    let script = Script::new(steps);
    let tool = tool.build(script.clone());
    let numbered = Arc::new(Numbered(script, std::sync::Mutex::default()));
    for has_timeout in [true, false] {
        let mut cx = call(tool.clone(), json!({}), Arc::new(TokioClock::new()));
        cx.extras.idempotency_key = Some("k".into());
        let layers = Layers::outermost(DeadlineLayer).then(RetryLayer::default());
        let result = match has_timeout {
            true => {
                layers
                    .then(TimeoutLayer)
                    .around(numbered.clone())
                    .invoke(&mut cx)
                    .await
            }
            false => layers.around(numbered.clone()).invoke(&mut cx).await,
        };
        assert_eq!(result.expect_err("it hangs").kind(), ErrorKind::OutcomeUnknown);
    }
    let seen = numbered.1.lock().unwrap().clone();
    assert_eq!(
        seen[..2],
        [(1, DispatchState::NotSent), (2, DispatchState::NotSent)]
    );
}
