//! Each layer keeps its promise without its siblings. Where another test shows that, it is named here and not repeated.
//!
//! | layer | promise | test |
//! |---|---|---|
//! | deadline | the whole call ends at its deadline | `main.rs`: `the_deadline_ends_a_call_that_never_answers`, `a_deadline_in_the_past_sends_nothing` |
//! | timeout | an attempt ends at its limit, and says if the tool may have run | `main.rs`: `a_call_that_was_sent_ends_unknown_unless_declared_repeatable` |
//! | timeout | an attempt ends at the deadline that its call came with | [`an_attempt_ends_at_the_deadline_that_its_call_came_with`] |
//! | retry | attempts are numbered, with a dispatch mark each | `may_have_run.rs`: `retries_count_their_attempts_themselves` |
//! | retry | no pause is longer than the call may take | [`a_retry_without_a_deadline_waits_no_longer_than_the_call_may_take`] |
//! | idempotency | one key, one effect | [`calls_without_an_id_do_not_forget_each_other`] |
//! | idempotency | a call with a key in use waits within its deadline | [`a_call_waits_for_its_key_until_its_deadline`] |
//! | fallback | one time limit for all steps | [`a_ladder_without_a_deadline_ends_with_the_time_of_the_call`] |
//! | cache | identical calls run once, and a reply is cached | `cache.rs`: `an_answer_is_given_again_until_it_is_too_old_and_says_so` |
//! | cache | shared work ends in time | [`shared_work_ends_without_a_deadline`] |
//! | cache | replies of one closure are not those of another | [`tools_with_equal_descriptors_share_no_replies`] |
//! | cache | a disabled cache is none | [`a_cache_that_is_disabled_keeps_nothing`] |
//! | hedge | hedges are a tenth of the calls | [`hedges_earn_their_budget_without_the_retry_layer`] |
//! | task | a tool that reports runs in the background | `task.rs` |
//! | concurrency limit | attempts that run at once are limited | `concurrency_limit.rs` |
//! | concurrency limit | no attempt waits forever | [`an_attempt_without_a_deadline_waits_for_a_quarter_of_the_calls_time`] |

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_util::future::join_all;
use serde_json::json;
use tokio::time::{Instant, sleep};
use tool_core::{
    Arguments, BoxFuture, CallContext, Caller, Clock, ConcurrencySettings, ErrorKind, Invoke, Layer, Outcome,
    Reentry, Target, TargetBackend, Tool, ToolBuilder, ToolError, invoke_fn,
};
use tool_runtime::{
    CacheLayer, CacheSettings, ConcurrencyLimitLayer, ConcurrencyLimits, FailureStep, FallbackLadder,
    FallbackLayer, HedgeAfter, HedgeLayer, HedgeSettings, IdempotencyLayer, LedgerLimits, MemoryLedger,
    RetryLayer, RetrySettings, TimeoutLayer, TokioClock,
};
use tool_testkit::{ScriptStep, ScriptedExecutor};

const SECOND: Duration = Duration::from_secs(1);

/// A tool whose calls may take 40 s, with attempts of 30 s.
fn slow(name: &str) -> ToolBuilder {
    Tool::builder(name).timeouts(40 * SECOND, 30 * SECOND)
}

/// A call without a deadline.
fn call(tool: &Arc<Tool>) -> CallContext {
    CallContext::new(
        Target::Tool(tool.clone()),
        Arc::new(Arguments::none()),
        Arc::new(Caller::local()),
        Arc::new(TokioClock::new()),
    )
}

/// Never ends, after the request was sent.
fn hangs() -> ScriptedExecutor {
    ScriptedExecutor::new([ScriptStep::Hang(true)])
}

#[tokio::test(start_paused = true)]
async fn an_attempt_ends_at_the_deadline_that_its_call_came_with() {
    let tool = slow("t").idempotent(true).run(hangs());
    for (deadline, is_of_the_tool) in [(2, false), (29, true)] {
        let mut cx = call(&tool);
        cx.deadline = Some(cx.clock.now() + deadline * SECOND);
        let start = Instant::now();
        let error = TimeoutLayer.layer(hangs()).invoke(&mut cx).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert_eq!(start.elapsed(), deadline * SECOND);
        // An impatient caller says nothing about the tool.
        assert_eq!(error.counts_for_health(), is_of_the_tool, "{deadline} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_without_a_deadline_waits_no_longer_than_the_call_may_take() {
    // With a tenth of jitter.
    for (wait, n_attempts) in [(36, 2), (41, 1)] {
        let busy = ToolError::new(ErrorKind::RateLimited, "busy").with_retry_after(wait * SECOND);
        let script = ScriptedExecutor::new([ScriptStep::Fail(busy)]);
        let tool = slow("t")
            .setting(RetrySettings::default().with_max_attempts(2))
            .run(script.clone());
        let result = RetryLayer::default()
            .layer(script.clone())
            .invoke(&mut call(&tool))
            .await;
        assert_eq!(result.unwrap_err().kind(), ErrorKind::RateLimited);
        assert_eq!(script.n_calls(), n_attempts, "asked to wait {wait} s");
    }
}

fn keyed(tool: &Arc<Tool>, key: &str) -> CallContext {
    let mut cx = call(tool);
    cx.extras.idempotency_key = Some(key.into());
    cx
}

fn ledger() -> Arc<MemoryLedger> {
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::new());
    Arc::new(MemoryLedger::new(LedgerLimits::default(), clock))
}

#[tokio::test(start_paused = true)]
async fn calls_without_an_id_do_not_forget_each_other() {
    let script = ScriptedExecutor::new([]);
    let tool = slow("pay").run(script.clone());
    let stack = IdempotencyLayer::new(ledger()).layer(script.clone());
    for key in ["a", "b", "a", "b"] {
        stack.invoke(&mut keyed(&tool, key)).await.unwrap();
    }
    assert_eq!(script.n_calls(), 2, "one for each key");
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_its_key_until_its_deadline() {
    let tool = slow("pay").run(hangs());
    let script = hangs();
    let stack = IdempotencyLayer::new(ledger()).layer(script.clone());
    let (mut first, mut second) = (keyed(&tool, "k"), keyed(&tool, "k"));
    second.deadline = Some(second.clock.now() + 5 * SECOND);
    let start = Instant::now();
    let error = tokio::select! {
        biased;
        _ = stack.invoke(&mut first) => panic!("it hangs"),
        result = stack.invoke(&mut second) => result.unwrap_err(),
    };
    assert_eq!((error.kind(), start.elapsed()), (ErrorKind::Timeout, 5 * SECOND));
    assert!(!error.may_have_run() && script.n_calls() == 1);
}

/// Finds tools without limits of their own, which hang.
struct Endless;

impl Reentry for Endless {
    fn find<'a>(&'a self, tool: &'a str, _: &'a CallContext) -> BoxFuture<'a, Result<Arc<Tool>, ToolError>> {
        Box::pin(async move { Ok(Tool::builder(tool).read_only(true).run(hangs())) })
    }

    fn call<'a>(&'a self, _: &'a mut CallContext) -> BoxFuture<'a, Result<Outcome, ToolError>> {
        Box::pin(pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_ladder_without_a_deadline_ends_with_the_time_of_the_call() {
    let default = FailureStep::Default(json!("none").into());
    for (steps, expected, took) in [
        (vec![default.clone()], Ok("none"), 36),
        (
            vec![FailureStep::Fallback("other".into()), default],
            Ok("none"),
            38,
        ),
        (
            vec![FailureStep::Fallback("other".into())],
            Err(ErrorKind::Timeout),
            40,
        ),
    ] {
        let tool = slow("t")
            .read_only(true)
            .setting(FallbackLadder::from(steps))
            .run(hangs());
        let layer = FallbackLayer::new(CacheLayer::new(1 << 10)).with_reentry(Arc::new(Endless));
        let (mut cx, start) = (call(&tool), Instant::now());
        let result = layer.layer(hangs()).invoke(&mut cx).await;
        let result = result.and_then(Outcome::into_reply).map(|reply| reply.text());
        assert_eq!(
            result.as_deref().map_err(ToolError::kind),
            expected,
            "after {:?}",
            start.elapsed()
        );
        assert_eq!(start.elapsed(), took * SECOND);
        assert_eq!(cx.deadline, None, "the layer leaves the call as it was");
    }
}

#[tokio::test(start_paused = true)]
async fn shared_work_ends_without_a_deadline() {
    let script = hangs();
    let tool = slow("t").setting(CacheSettings::default()).run(script.clone());
    let stack = CacheLayer::new(1 << 10).layer(script.clone());
    let start = Instant::now();
    let mut calls = [call(&tool), call(&tool)];
    for result in join_all(calls.iter_mut().map(|cx| stack.invoke(cx))).await {
        assert!(result.unwrap_err().may_have_run());
    }
    assert_eq!((start.elapsed(), script.n_calls()), (40 * SECOND, 1));
}

#[tokio::test(start_paused = true)]
async fn tools_with_equal_descriptors_share_no_replies() {
    let stack = CacheLayer::new(1 << 20).layer(TargetBackend);
    let tool_of = |owner: &'static str| {
        let builder = Tool::builder("mail")
            .read_only(true)
            .setting(CacheSettings::default());
        builder.run(invoke_fn(
            move |_| async move { Ok::<_, ToolError>(json!(owner)) },
        ))
    };
    let (ada, bob) = (tool_of("ada"), tool_of("bob"));
    for (tool, expected) in [(&ada, "ada"), (&bob, "bob"), (&ada, "ada")] {
        let outcome = stack.invoke(&mut call(tool)).await.unwrap();
        assert_eq!(outcome.into_reply().unwrap().text(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_is_disabled_keeps_nothing() {
    for (disabled, n_calls) in [(true, 2), (false, 1)] {
        let script = ScriptedExecutor::new([]);
        // Settings that nobody fitted to the tool.
        let mut settings = tool_core::Settings::default();
        settings.set(CacheSettings::default().with_disabled(disabled));
        let mut parts = tool_testkit::TestTool::new("t");
        parts.settings = settings;
        let tool = parts.build(script.clone());
        let stack = CacheLayer::new(1 << 20).layer(script.clone());
        for _ in 0..2 {
            stack.invoke(&mut call(&tool)).await.unwrap();
        }
        assert_eq!(script.n_calls(), n_calls, "disabled: {disabled}");
    }
}

#[tokio::test(start_paused = true)]
async fn hedges_earn_their_budget_without_the_retry_layer() {
    let n_hedges = Arc::new(AtomicUsize::new(0));
    let counted = n_hedges.clone();
    struct Slow(Arc<AtomicUsize>);
    impl Invoke for Slow {
        async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
            self.0.fetch_add(usize::from(cx.is_hedge), Relaxed);
            sleep(2 * SECOND).await;
            Ok(json!(null).into())
        }
    }
    // Settings of retries say nothing about the stack.
    let tool = slow("t")
        .idempotent(true)
        .setting(RetrySettings::default())
        .setting(HedgeSettings::new(HedgeAfter::Time(SECOND)))
        .run(hangs());
    let stack = HedgeLayer::default().layer(Slow(counted));
    let mut calls: Vec<_> = (0..400).map(|_| call(&tool)).collect();
    join_all(calls.iter_mut().map(|cx| stack.invoke(cx))).await;
    assert_eq!(n_hedges.load(Relaxed), 40);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_without_a_deadline_waits_for_a_quarter_of_the_calls_time() {
    let limit = ConcurrencyLimits::for_tool(ConcurrencySettings::new(1));
    let tool = slow("t").setting(limit).run(hangs());
    let stack = ConcurrencyLimitLayer::new().layer(invoke_fn(|_| pending::<Result<Outcome, ToolError>>()));
    let (mut first, mut second) = (call(&tool), call(&tool));
    let start = Instant::now();
    let error = tokio::select! {
        biased;
        _ = stack.invoke(&mut first) => panic!("it hangs"),
        result = stack.invoke(&mut second) => result.unwrap_err(),
    };
    assert_eq!(
        (error.kind(), start.elapsed()),
        (ErrorKind::Overloaded, 10 * SECOND)
    );
}
