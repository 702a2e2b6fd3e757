//! Reactions that may follow a failure, by the dispatch state of the attempt and the operator's declarations.

use std::sync::Arc;

use serde_json::json;
use tokio::time::advance;
use tool_core::{ErrorKind, Invoke, Layers, Metadata, Outcome, ToolError};
use tool_runtime::{
    CacheLayer, DeadlineLayer, FallbackLadder, FallbackLayer, RetryLayer, TimeoutLayer, TokioClock,
};
use tool_runtime::{CacheSettings, FailureStep, RetrySettings};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

use crate::fallback::{Others, ROOM, SECOND, given};

/// Layer that reacts to a failure.
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
    {
        let mut metadata = Metadata::default();
        metadata.idempotent = idempotent;
        metadata.read_only = read_only;
        metadata
    }
}

/// Answers once, then takes this step. Returns the result of the second call, and `true` if the layer reacted to the
/// failure.
async fn run(follows: Follows, metadata: Metadata, step: &ScriptStep) -> (Result<Outcome, ToolError>, bool) {
    let script = ScriptedExecutor::new([
        ScriptStep::Value(json!("kept")),
        step.clone(),
        ScriptStep::Value(json!("again")),
    ]);
    let mut tool = TestTool::new("t").metadata(metadata);
    let cached = |stale_if_error| {
        CacheSettings::default()
            .with_ttl(SECOND)
            .with_stale_if_error(stale_if_error)
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
    let others = Arc::new(Others::default().with("other", ScriptStep::Value(json!("other"))));
    let share = CacheLayer::new(ROOM);
    let stack = Layers::outermost(DeadlineLayer)
        .then(FallbackLayer::new(share.clone()).with_reentry(others))
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
    // The step, `true` if it was sent, and `true` if the tool may have run.
    let steps = [
        (ScriptStep::Fail(fail(ErrorKind::Unavailable)), false, false),
        (ScriptStep::Fail(fail(ErrorKind::RateLimited)), false, false),
        (ScriptStep::Hang(false), false, false),
        (
            ScriptStep::FailNotTaken(fail(ErrorKind::Unavailable)),
            true,
            false,
        ),
        (
            ScriptStep::FailNotTaken(fail(ErrorKind::RateLimited)),
            true,
            false,
        ),
        (
            ScriptStep::FailAnswered(fail(ErrorKind::UpstreamError)),
            true,
            true,
        ),
        (ScriptStep::FailAnswered(fail(ErrorKind::Unavailable)), true, true),
        (ScriptStep::FailAnswered(fail(ErrorKind::RateLimited)), true, true),
        (ScriptStep::FailSent(fail(ErrorKind::Unavailable)), true, true),
        (ScriptStep::Hang(true), true, true),
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
                    // Stricter: after the request was sent, an answer does not make a retry safe.
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
    let script = ScriptedExecutor::new([ScriptStep::Value(json!("kept")), ScriptStep::Hang(true)]);
    let mut tool = TestTool::new("t");
    tool.settings.set(CacheSettings::default().with_ttl(SECOND));
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

/// The layer alone, without a layer that observes attempts.
#[tokio::test(start_paused = true)]
async fn retries_count_their_attempts_themselves() {
    use tool_core::{CallContext, DispatchState};

    struct Numbered(ScriptedExecutor, std::sync::Mutex<Vec<(u32, DispatchState)>>);
    impl Invoke for Numbered {
        async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
            self.1.lock().unwrap().push((cx.attempt, cx.dispatch().state()));
            self.0.invoke(cx).await
        }
    }
    let mut tool = TestTool::new("pay");
    tool.settings.set(RetrySettings::default());
    tool.settings.passes_key = true;
    let steps = [
        ScriptStep::FailAnswered(fail(ErrorKind::Unavailable)),
        ScriptStep::Hang(true),
    ];
    let script = ScriptedExecutor::new(steps);
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
