//! Usage: what is recorded, and that nothing of it is lost.

use std::{
    ops::RangeInclusive,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use serde_json::json;
use tokio::time::sleep;
use tool_core::{
    BoxFuture, CacheOutcome, CallContext, Caller, Clock, DailyUsage, DailyUsageError, ErrorKind, Event,
    Instant, Invoke, Layers, Metadata, Mode, Observe, Observers, Outcome, PendingCall, Tool, ToolError,
    UpstreamState, UsageFigures, UsageKey, UtcDay,
};
use tool_observe::{MemoryUsage, UsageRecorder, UsageSettings, WatchAttemptLayer, WatchLayer};
use tool_runtime::TokioClock;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

async fn memory() -> ((), Arc<dyn DailyUsage>, Arc<dyn DailyUsage>) {
    let usage = MemoryUsage::default();
    ((), Arc::new(usage.clone()), Arc::new(usage))
}

tool_store_suite::usage_tests!(memory);

/// The day of all calls.
const TODAY: UtcDay = UtcDay::from_number(20_000);

/// Clock on whose time line it is always noon of one day.
#[derive(Debug)]
struct OneDay(TokioClock);

impl Clock for OneDay {
    fn now(&self) -> Instant {
        self.0.now()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(u64::from(TODAY.number()) * 86_400 + 43_200)
    }
}

fn recorder(usage: &MemoryUsage) -> UsageRecorder {
    UsageRecorder::new(Arc::new(usage.clone()), UsageSettings::default())
}

/// Tool that costs a quarter of a dollar, on the server `shop`.
fn tool(name: &str, script: ScriptedExecutor) -> Arc<Tool> {
    let mut metadata = Metadata::default();
    metadata.cost_per_call = Some(0.25);
    let tool = TestTool::new(name).metadata(metadata);
    tool.upstream(&Arc::new(UpstreamState::new("shop"))).build(script)
}

fn context(tool: &Arc<Tool>, principal: &str) -> CallContext {
    let mut cx = call(tool.clone(), json!({"a": 1}), Arc::new(OneDay(TokioClock::new())));
    cx.origin.caller = Arc::new(Caller::new(principal));
    cx
}

/// Makes calls of a tool by a principal, one for each step.
async fn run(
    recorder: &UsageRecorder,
    name: &str,
    principal: &str,
    steps: impl IntoIterator<Item = ScriptStep>,
) {
    for step in steps {
        let script = ScriptedExecutor::new([step]);
        let observers: Observers = [Arc::new(recorder.clone()) as Arc<dyn Observe>]
            .into_iter()
            .collect();
        let stack = Layers::outermost(WatchLayer::new(observers.clone()))
            .then(WatchAttemptLayer::new(observers))
            .around(script.clone());
        let mut cx = context(&tool(name, script), principal);
        let _ = stack.invoke(&mut cx).await;
    }
}

/// Returns the figures of all days, by principal and tool.
async fn figures(usage: &MemoryUsage) -> Vec<(String, UsageFigures)> {
    let days = UtcDay::FIRST..=UtcDay::from_number(u32::MAX);
    let read = usage.read(days).await.expect("it works");
    let named = |(key, figures): (UsageKey, UsageFigures)| {
        let server = key.server.as_deref().unwrap_or("none");
        (format!("{} {} {server}", key.principal, key.tool), figures)
    };
    read.into_iter().map(named).collect()
}

#[tokio::test(start_paused = true)]
async fn calls_are_counted_for_each_tool_and_principal() {
    let usage = MemoryUsage::default();
    let recorder = recorder(&usage);
    let failure = |kind| ToolError::new(kind, "no");
    let steps = [
        ScriptStep::After(Duration::from_millis(30), json!("four")),
        ScriptStep::FailAnswered(failure(ErrorKind::UpstreamError)),
        ScriptStep::Fail(failure(ErrorKind::RateLimited)),
    ];
    run(&recorder, "buy", "ada", steps).await;
    run(&recorder, "buy", "bob", [ScriptStep::Echo]).await;
    assert!(
        figures(&usage).await.is_empty(),
        "nothing is written before a second"
    );
    sleep(Duration::from_secs(2)).await;
    let all = figures(&usage).await;
    let names: Vec<_> = all.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["ada buy shop", "bob buy shop"]);
    let ada = &all[0].1;
    let counts = (ada.n_calls, ada.n_errors, ada.n_cached, ada.n_attempts);
    // What was not sent is no attempt, and costs nothing.
    assert_eq!((counts, ada.cost), ((3, 2, 0, 2), 500_000_000));
    assert_eq!(ada.argument_bytes, 3 * r#"{"a":1}"#.len() as u64);
    assert!(ada.result_bytes > 0);
    assert_eq!(ada.latencies.count(), 3);
    assert_eq!(ada.time, Duration::from_millis(30));
    assert_eq!((all[1].1.n_calls, all[1].1.n_errors), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_goes_on_or_is_tried_out_is_not_counted() {
    let usage = MemoryUsage::default();
    let recorder = recorder(&usage);
    let pending = Outcome::Pending(PendingCall::new("p1", "it waits").into());
    run(&recorder, "buy", "ada", [ScriptStep::Outcome(pending)]).await;
    let observers: Observers = [Arc::new(recorder.clone()) as Arc<dyn Observe>]
        .into_iter()
        .collect();
    let script = ScriptedExecutor::new([]);
    let stack = Layers::outermost(WatchLayer::new(observers)).around(script.clone());
    let mut cx = context(&tool("buy", script), "ada");
    cx.mode = Mode::DryRun;
    let _ = stack.invoke(&mut cx).await;
    recorder.flush().await.expect("it works");
    let all = figures(&usage).await;
    assert!(all.iter().all(|(_, figures)| figures.n_calls == 0), "{all:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_a_cache_counts_as_such_and_says_nothing_of_the_latency() {
    let usage = MemoryUsage::default();
    let recorder = recorder(&usage);
    let cx = context(&tool("buy", ScriptedExecutor::new([])), "ada");
    for outcome in [
        CacheOutcome::Hit,
        CacheOutcome::Miss,
        CacheOutcome::Shared,
        CacheOutcome::Bypassed,
    ] {
        recorder.observe(&Event::cache_used(&cx, outcome));
    }
    recorder.observe(&Event::replayed(&cx));
    let reply = Ok(Outcome::from(json!("four")));
    for _ in 0..3 {
        recorder.observe(&Event::call_finished(&cx, Some(&reply), Duration::from_secs(1)));
    }
    // A call whose future was dropped.
    recorder.observe(&Event::call_finished(&cx, None, Duration::from_secs(1)));
    recorder.flush().await.expect("it works");
    let [(_, figures)] = &figures(&usage).await[..] else {
        panic!("one key");
    };
    assert_eq!((figures.n_calls, figures.n_errors, figures.n_cached), (4, 0, 3));
    assert_eq!((figures.cost, figures.saved_cost), (0, 750_000_000));
    assert_eq!(
        (figures.latencies.count(), figures.saved_time()),
        (0, Duration::ZERO)
    );
}

/// Storage that fails after this number of additions.
struct Failing(MemoryUsage, AtomicUsize);

impl DailyUsage for Failing {
    fn add<'a>(
        &'a self,
        figures: &'a [(UsageKey, UsageFigures)],
    ) -> BoxFuture<'a, Result<(), DailyUsageError>> {
        let one_less = |n_left: usize| n_left.checked_sub(1);
        match self.1.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less) {
            Ok(_) => self.0.add(figures),
            Err(_) => Box::pin(async { Err(DailyUsageError::new("it is off")) }),
        }
    }

    fn read(
        &self,
        days: RangeInclusive<UtcDay>,
    ) -> BoxFuture<'_, Result<Vec<(UsageKey, UsageFigures)>, DailyUsageError>> {
        self.0.read(days)
    }

    fn forget(&self, before: UtcDay) -> BoxFuture<'_, Result<(), DailyUsageError>> {
        self.0.forget(before)
    }
}

#[tokio::test(start_paused = true)]
async fn a_storage_that_does_not_work_loses_nothing() {
    let usage = MemoryUsage::default();
    let storage = Arc::new(Failing(usage.clone(), AtomicUsize::new(0)));
    let recorder = UsageRecorder::new(storage.clone(), UsageSettings::default());
    run(&recorder, "buy", "ada", [ScriptStep::Echo]).await;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(recorder.flush().await, Err(DailyUsageError::new("it is off")));
    run(&recorder, "buy", "ada", [ScriptStep::Echo]).await;
    storage.1.store(usize::MAX, Ordering::SeqCst);
    sleep(Duration::from_secs(2)).await;
    let all = figures(&usage).await;
    assert_eq!((all.len(), all[0].1.n_calls, all[0].1.n_attempts), (1, 2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_storage_that_fails_in_the_middle_counts_nothing_twice() {
    let usage = MemoryUsage::default();
    let storage = Arc::new(Failing(usage.clone(), AtomicUsize::new(1)));
    let recorder = UsageRecorder::new(storage.clone(), UsageSettings::default());
    let reply = Ok(Outcome::from(json!("four")));
    let tool = tool("buy", ScriptedExecutor::new([]));
    for n in 0..1200 {
        let cx = context(&tool, &format!("p{n}"));
        recorder.observe(&Event::call_finished(&cx, Some(&reply), Duration::ZERO));
    }
    recorder.flush().await.expect_err("the second part fails");
    let n_stored = figures(&usage).await.len();
    assert!((1..1200).contains(&n_stored), "{n_stored}");
    storage.1.store(usize::MAX, Ordering::SeqCst);
    recorder.flush().await.expect("it works");
    let all = figures(&usage).await;
    assert!(all.len() == 1200 && all.iter().all(|(_, figures)| figures.n_calls == 1));
}

#[tokio::test(start_paused = true)]
async fn the_number_of_keys_that_wait_is_limited() {
    let usage = MemoryUsage::default();
    let recorder = recorder(&usage);
    let reply = Ok(Outcome::from(json!("four")));
    let tool = tool("buy", ScriptedExecutor::new([]));
    for n in 0..10_005 {
        let cx = context(&tool, &format!("p{n}"));
        recorder.observe(&Event::call_finished(&cx, Some(&reply), Duration::ZERO));
    }
    recorder.flush().await.expect("it works");
    assert_eq!(figures(&usage).await.len(), 10_000);
    let cx = context(&tool, "p10004");
    recorder.observe(&Event::call_finished(&cx, Some(&reply), Duration::ZERO));
    recorder.flush().await.expect("it works");
    assert_eq!(figures(&usage).await.len(), 10_001);
}

#[tokio::test(start_paused = true)]
async fn settings_say_whether_and_how_long_usage_is_kept() {
    let usage = MemoryUsage::default();
    let recorder = recorder(&usage);
    let mut figures_of_a_call = UsageFigures::default();
    figures_of_a_call.n_calls = 1;
    let earlier = [1, 2, 40].map(|n_days| {
        let key = UsageKey::new(TODAY.days_before(n_days), "default", "ada", "old");
        (key, figures_of_a_call.clone())
    });
    usage.add(&earlier).await.expect("it works");
    let mut settings = UsageSettings::default();
    settings.is_enabled = false;
    recorder.reconfigure(settings);
    run(&recorder, "buy", "ada", [ScriptStep::Echo]).await;
    recorder.flush().await.expect("it works");
    assert_eq!(figures(&usage).await.len(), 3, "nothing is recorded");
    settings.is_enabled = true;
    settings.retention_days = 2;
    recorder.reconfigure(settings);
    run(&recorder, "buy", "ada", [ScriptStep::Echo]).await;
    recorder.flush().await.expect("it works");
    let left = figures(&usage).await;
    let left: Vec<_> = left.iter().map(|(name, _)| &**name).collect();
    assert_eq!(left, ["ada old none", "ada buy shop"], "yesterday and today");
}
