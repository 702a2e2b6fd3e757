//! Concurrency limit: running, waiting and refused calls.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use serde_json::json;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tool_core::{
    CallContext, Caller, ConcurrencySettings, ErrorKind, Invoke, Layer, Layers, Mode, Outcome, Scopes, Tool,
    ToolError, UpstreamState,
};
use tool_runtime::{ConcurrencyLimitLayer, ConcurrencyLimits, DeadlineLayer, TokioClock};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

const SECOND: Duration = Duration::from_secs(1);

fn limit(max: u32, queue: u32) -> ConcurrencySettings {
    {
        let mut new = ConcurrencySettings::new(max);
        new.queue = queue;
        new
    }
}

/// Changes the limits of a tool.
fn set(tool: &mut TestTool, change: impl FnOnce(&mut Scopes<ConcurrencySettings>)) {
    let mut limits = tool
        .settings
        .get::<ConcurrencyLimits>()
        .copied()
        .unwrap_or_default();
    change(&mut limits.0);
    tool.settings.set(limits);
}

fn tool(script: &ScriptedExecutor, limits: impl FnOnce(&mut Scopes<ConcurrencySettings>)) -> Arc<Tool> {
    let mut tool = TestTool::new("slow");
    set(&mut tool, limits);
    tool.build(script.clone())
}

fn context(tool: &Arc<Tool>, principal: &str) -> CallContext {
    let mut cx = call(tool.clone(), json!({}), Arc::new(TokioClock::new()));
    cx.origin.caller = Arc::new(Caller::new(principal));
    cx
}

type Called = JoinHandle<Result<Outcome, ToolError>>;

/// Starts a call, and lets it run until it waits.
async fn begin(layer: &ConcurrencyLimitLayer, script: &ScriptedExecutor, mut cx: CallContext) -> Called {
    let stack = layer.clone().layer(script.clone());
    let called = tokio::spawn(async move { stack.invoke(&mut cx).await });
    for _ in 0..4 {
        tokio::task::yield_now().await;
    }
    called
}

fn takes(duration: Duration) -> ScriptedExecutor {
    ScriptedExecutor::new([ScriptStep::After(duration, json!(1))])
}

#[tokio::test(start_paused = true)]
async fn no_more_run_at_once_than_allowed_and_all_have_their_turn() {
    let (layer, script) = (ConcurrencyLimitLayer::new(), takes(SECOND));
    let tool = tool(&script, |limits| limits.tool = Some(limit(3, 100)));
    let start = Instant::now();
    let calls = (0..9).map(|_| begin(&layer, &script, context(&tool, "ann")));
    let calls = join_all(calls).await;
    assert_eq!((script.n_running(), script.n_calls()), (3, 3));
    for called in calls {
        called.await.expect("no panic").expect("has its turn");
    }
    assert_eq!(start.elapsed(), 3 * SECOND, "three at a time");
}

#[tokio::test(start_paused = true)]
async fn one_more_than_the_queue_holds_is_refused_at_once_with_a_hint() {
    let (layer, script) = (ConcurrencyLimitLayer::new(), takes(SECOND));
    let tool = tool(&script, |limits| limits.tool = Some(limit(1, 2)));
    let mut calls = Vec::new();
    for _ in 0..3 {
        calls.push(begin(&layer, &script, context(&tool, "ann")).await);
    }
    let start = Instant::now();
    let stack = layer.clone().layer(script.clone());
    let error = stack
        .invoke(&mut context(&tool, "ann"))
        .await
        .expect_err("the queue is full");
    assert_eq!(
        (error.kind(), start.elapsed()),
        (ErrorKind::Overloaded, Duration::ZERO)
    );
    assert!(error.retry_after().is_some());
    assert_eq!(
        error.message(),
        "too many calls of `slow` at once: 1 are running and 2 are waiting"
    );
    join_all(calls).await;
    assert!(stack.invoke(&mut context(&tool, "ann")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn who_comes_first_is_served_first() {
    let (layer, script) = (ConcurrencyLimitLayer::new(), takes(SECOND));
    let tool = tool(&script, |limits| limits.tool = Some(limit(1, 10)));
    let start = Instant::now();
    let mut calls = Vec::new();
    for n in 1..=4 {
        let called = begin(&layer, &script, context(&tool, "ann")).await;
        calls.push(async move {
            called.await.expect("no panic").expect("has its turn");
            (n, start.elapsed())
        });
    }
    let ends = join_all(calls).await;
    assert_eq!(ends, [1, 2, 3, 4].map(|n: u32| (n, n * SECOND)));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_waiter_frees_its_place_and_a_dropped_call_its_own() {
    let (layer, script) = (
        ConcurrencyLimitLayer::new(),
        ScriptedExecutor::new([ScriptStep::Hang(false)]),
    );
    let tool = tool(&script, |limits| limits.tool = Some(limit(1, 1)));
    let running = begin(&layer, &script, context(&tool, "ann")).await;
    let waiting = begin(&layer, &script, context(&tool, "ann")).await;
    let refused = begin(&layer, &script, context(&tool, "ann")).await;
    assert!(refused.await.expect("no panic").is_err(), "the queue is full");
    waiting.abort();
    let _ = waiting.await;
    let next = begin(&layer, &script, context(&tool, "ann")).await;
    assert!(!next.is_finished(), "it waits in the place that is free");
    running.abort();
    let _ = running.await;
    tokio::task::yield_now().await;
    assert_eq!((script.n_calls(), script.n_running()), (2, 1), "the next runs");
    next.abort();
}

#[tokio::test(start_paused = true)]
async fn thousands_of_calls_that_are_dropped_at_any_time_leave_nothing_behind() {
    let (layer, script) = (ConcurrencyLimitLayer::new(), takes(7 * SECOND / 1000));
    let tool = tool(&script, |limits| {
        limits.tool = Some(limit(3, 2000));
        limits.principal = Some(limit(2, 2000));
        limits.total = Some(limit(2, 2000));
    });
    let calls = (0..2000_u64).map(|n| {
        let stack = layer.clone().layer(script.clone());
        let mut cx = context(&tool, ["ann", "bob", "eve"][(n % 3) as usize]);
        tokio::spawn(async move {
            sleep(Duration::from_millis(n * 31 % 97)).await;
            let patience = Duration::from_millis(n * 17 % 59);
            timeout(patience, stack.invoke(&mut cx)).await.is_ok()
        })
    });
    let n_done = join_all(calls)
        .await
        .into_iter()
        .filter(|done| matches!(done, Ok(true)))
        .count();
    assert!(n_done > 10, "some were in time: {n_done}");
    assert_eq!(script.n_running(), 0);
    let start = Instant::now();
    let calls = (0..2).map(|_| begin(&layer, &script, context(&tool, "ann")));
    for called in join_all(calls).await {
        called.await.expect("no panic").expect("has a place");
    }
    assert_eq!(start.elapsed(), 7 * SECOND / 1000, "both places are free");
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_a_quarter_of_its_time_or_as_long_as_is_said() {
    for (wait, left, expected, kind) in [
        (None, 40 * SECOND, 10 * SECOND, ErrorKind::Overloaded),
        (Some(3 * SECOND), 40 * SECOND, 3 * SECOND, ErrorKind::Overloaded),
        (Some(60 * SECOND), 40 * SECOND, 40 * SECOND, ErrorKind::Timeout),
    ] {
        let (layer, script) = (
            ConcurrencyLimitLayer::new(),
            ScriptedExecutor::new([ScriptStep::Hang(true)]),
        );
        let tool = tool(&script, |limits| {
            limits.tool = Some({
                let mut new = limit(1, 9);
                new.wait = wait;
                new
            });
        });
        let running = begin(&layer, &script, context(&tool, "ann")).await;
        let mut cx = context(&tool, "ann");
        cx.deadline = Some(cx.clock.now() + left);
        let start = Instant::now();
        let stack = Layers::outermost(DeadlineLayer)
            .then(layer)
            .around(script.clone());
        let error = stack.invoke(&mut cx).await.expect_err("no permit becomes free");
        assert_eq!((error.kind(), start.elapsed()), (kind, expected), "{wait:?}");
        assert_eq!(script.n_calls(), 1, "the second was not sent");
        running.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_would_wait_in_vain_is_refused_at_once() {
    let (layer, script) = (ConcurrencyLimitLayer::new(), takes(SECOND));
    let tool = tool(&script, |limits| limits.tool = Some(limit(1, 100)));
    let call = |left: Duration| {
        let mut cx = context(&tool, "ann");
        cx.deadline = Some(cx.clock.now() + left);
        cx
    };
    // The duration of calls is unknown at first: each waits for as long as it may.
    let mut calls = Vec::new();
    for _ in 0..3 {
        calls.push(begin(&layer, &script, call(40 * SECOND)).await);
    }
    calls.remove(0).await.expect("no panic").expect("has its turn");
    // One call runs and one waits: the expected wait of the next is two seconds or a little more.
    for (left, expected) in [(9 * SECOND, Some(ErrorKind::Overloaded)), (11 * SECOND, None)] {
        let start = Instant::now();
        let called = begin(&layer, &script, call(left)).await;
        assert_eq!(called.is_finished(), expected.is_some(), "{left:?}");
        if expected.is_some() {
            let error = called.await.expect("no panic").expect_err("refused");
            assert_eq!((Some(error.kind()), start.elapsed()), (expected, Duration::ZERO));
            assert_eq!(
                error.message(),
                "too many calls of `slow` at once: the expected wait is about 2.5 s, and the call may wait for 2.25 s"
            );
            assert_eq!(error.retry_after(), Some(2 * SECOND));
        } else {
            calls.push(called);
        }
    }
    for called in calls {
        called.await.expect("no panic").expect("has its turn");
    }
    // The first waiter waits in any case: the running call may end at any time.
    let running = begin(&layer, &script, call(40 * SECOND)).await;
    let first = begin(&layer, &script, call(SECOND)).await;
    assert!(!first.is_finished());
    running.await.expect("no panic").expect("is answered");
    assert!(first.await.expect("no panic").is_err());
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_tool_that_hangs_keeps_no_other_tool_from_running() {
    let layer = ConcurrencyLimitLayer::new();
    let (hung, well) = (ScriptedExecutor::new([ScriptStep::Hang(true)]), takes(SECOND));
    let limits = |limits: &mut Scopes<ConcurrencySettings>| {
        limits.tool = Some(limit(2, 100));
        limits.total = Some(limit(3, 100));
    };
    let (hung_tool, well_tool) = (tool(&hung, limits), tool(&well, limits));
    let waiting = (0..50).map(|_| begin(&layer, &hung, context(&hung_tool, "ann")));
    let waiting = join_all(waiting).await;
    assert_eq!(hung.n_running(), 2, "no more than its limit");
    let start = Instant::now();
    let stack = layer.clone().layer(well.clone());
    assert!(stack.invoke(&mut context(&well_tool, "ann")).await.is_ok());
    assert_eq!(start.elapsed(), SECOND, "the other did not wait");
    waiting.iter().for_each(JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn a_greedy_principal_leaves_room_for_others() {
    let (layer, script) = (ConcurrencyLimitLayer::new(), takes(SECOND));
    let tool = tool(&script, |limits| {
        limits.tool = Some(limit(3, 100));
        limits.principal = Some(limit(2, 100));
    });
    let greedy = (0..20).map(|_| begin(&layer, &script, context(&tool, "ann")));
    let greedy = join_all(greedy).await;
    let start = Instant::now();
    let stack = layer.clone().layer(script.clone());
    assert!(stack.invoke(&mut context(&tool, "bob")).await.is_ok());
    assert_eq!(start.elapsed(), SECOND, "bob did not wait");
    greedy.iter().for_each(JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn tools_of_one_upstream_share_its_places() {
    let (layer, script) = (ConcurrencyLimitLayer::new(), takes(SECOND));
    let upstream = Arc::new(UpstreamState::new("files"));
    let tools = ["read", "list"].map(|name| {
        let mut tool = TestTool::new(name);
        set(&mut tool, |limits| limits.upstream = Some(limit(1, 10)));
        tool.upstream = Some(upstream.clone());
        tool.build(script.clone())
    });
    let start = Instant::now();
    let calls = tools
        .iter()
        .map(|tool| begin(&layer, &script, context(tool, "ann")));
    for called in join_all(calls).await {
        called.await.expect("no panic").expect("has its turn");
    }
    assert_eq!(start.elapsed(), 2 * SECOND, "one after the other");
}

#[tokio::test(start_paused = true)]
async fn another_limit_counts_what_runs_already() {
    let (layer, script) = (ConcurrencyLimitLayer::new(), takes(SECOND));
    let mut test_tool = TestTool::new("slow");
    test_tool.state = Some(Arc::default());
    let mut with = |max| {
        set(&mut test_tool, |limits| limits.tool = Some(limit(max, 10)));
        test_tool.clone().build(script.clone())
    };
    let (two, one, four) = (with(2), with(1), with(4));
    let mut calls = Vec::new();
    for tool in [&two, &two, &one] {
        calls.push(begin(&layer, &script, context(tool, "ann")).await);
    }
    assert_eq!(script.n_running(), 2, "a smaller limit waits for both");
    calls.push(begin(&layer, &script, context(&four, "ann")).await);
    assert_eq!(script.n_running(), 4, "a larger one lets in who waits already");
    join_all(calls).await;
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_takes_no_place() {
    let script = ScriptedExecutor::new([ScriptStep::Hang(false)]);
    let tool = tool(&script, |limits| limits.tool = Some(limit(1, 0)));
    let layer = ConcurrencyLimitLayer::new();
    let dry = || {
        let mut cx = context(&tool, "ann");
        cx.mode = Mode::DryRun;
        cx
    };
    let calls = (0..3).map(|_| begin(&layer, &script, dry()));
    let calls = join_all(calls).await;
    assert_eq!(script.n_running(), 3);
    calls.iter().for_each(JoinHandle::abort);
}
