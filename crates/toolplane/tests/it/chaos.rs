//! Faults on purpose in the standard stack: the chaos test, and the critical scenarios whose layers there are.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use tokio::time::{Instant, advance};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, executor};
use toolplane::{
    CallRequest, RawJson, Toolplane,
    core::{
        CallContext, ErrorKind, Event, Health, Invoke, Metadata, Observe, Outcome, Overrides, Reply,
        ToolError,
    },
    faults::{ChaosLayer, ChaosPlan, ChaosRule, InjectedFault, InjectedLatency},
    policy::{BreakerSettings, Breakers},
    runtime::RetrySettings,
};

/// The settings of the scenario: a fifth of all attempts fails, and some are slow.
fn storm(seed: u64, faults: &[InjectedFault]) -> ChaosLayer {
    let mut rule = ChaosRule::default();
    rule.failure_rate = 0.2;
    rule.faults = faults.to_vec();
    rule.latency = Some(InjectedLatency::new(0.3, Duration::from_secs(5)));
    ChaosLayer::new(ChaosPlan::new(seed, [rule]))
}

fn plane(chaos: ChaosLayer, script: &ScriptedExecutor, overrides: Overrides) -> Toolplane {
    let metadata = {
        let mut metadata = Metadata::default();
        metadata.idempotent = Some(true);
        metadata
    };
    let mut tool = TestTool::new("test").metadata(metadata);
    tool.descriptor.overrides = overrides;
    Toolplane::builder()
        .executor(Arc::new(script.clone()))
        .tool(tool.descriptor)
        .chaos(chaos)
        .build()
        .expect("usable")
}

/// Counts the successes of 50 calls.
async fn n_successes(plane: &Toolplane) -> usize {
    let mut n_successes = 0;
    for _ in 0..50 {
        n_successes += usize::from(plane.call(CallRequest::new("test")).await.is_ok());
    }
    n_successes
}

#[tokio::test(start_paused = true)]
async fn fifty_calls_at_a_fifth_of_failures() {
    for seed in 0..20 {
        let plane = plane(
            storm(seed, InjectedFault::USUAL),
            &ScriptedExecutor::new([]),
            Overrides::default(),
        );
        let n_successes = n_successes(&plane).await;
        assert!(
            n_successes > 30 && n_successes < 50,
            "{n_successes} with seed {seed}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn with_retries_nearly_all_of_them_succeed() {
    // Refused credentials do not pass by being tried again.
    let passing = [
        InjectedFault::Timeout,
        InjectedFault::Network,
        InjectedFault::RateLimit,
        InjectedFault::ServerError,
    ];
    let retry = RetrySettings::default().with_max_attempts(5);
    let mut n_all = 0;
    for seed in 0..20 {
        let overrides = Overrides::default().with(retry);
        n_all += n_successes(&plane(
            storm(seed, &passing),
            &ScriptedExecutor::new([]),
            overrides,
        ))
        .await;
    }
    assert!(n_all >= 990, "{n_all} of 1,000");
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_is_the_same_history() {
    let history = async || {
        let plane = plane(
            storm(11, InjectedFault::ALL),
            &ScriptedExecutor::new([]),
            Overrides::default(),
        );
        let mut history = Vec::new();
        for _ in 0..50 {
            let result = plane.call(CallRequest::new("test")).await;
            history.push(match result {
                Ok(Outcome::Reply(reply)) => reply.raw().to_string(),
                Ok(other) => format!("{other:?}"),
                Err(error) => error.to_string(),
            });
        }
        history
    };
    assert_eq!(history().await, history().await);
}

/// Runs, and notes which call it was.
#[derive(Clone, Default)]
struct Ledger(Arc<Mutex<Vec<u128>>>);

impl Invoke for Ledger {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        cx.dispatch().sent();
        self.0
            .lock()
            .expect("no test panics with it")
            .push(cx.correlation_id.0);
        cx.dispatch().answered();
        Ok(Reply::value(RawJson::object()).into())
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_not_run_twice_never_does() {
    let ledger = Ledger::default();
    let mut rule = ChaosRule::default();
    rule.failure_rate = 0.5;
    rule.faults = InjectedFault::ALL.to_vec();
    let mut tool = TestTool::new("pay");
    tool.descriptor.overrides.set(RetrySettings::default());
    let plane = Toolplane::builder()
        .executor(executor("scripted", ledger.clone()))
        .tool(tool.descriptor)
        .chaos(ChaosLayer::new(ChaosPlan::new(3, [rule])))
        .build()
        .expect("usable");
    let mut n_unknown = 0;
    for _ in 0..500 {
        let result = plane.call(CallRequest::new("pay")).await;
        n_unknown += usize::from(result.is_err_and(|error| error.kind() == ErrorKind::OutcomeUnknown));
    }
    let ran = ledger.0.lock().unwrap();
    let once: BTreeSet<_> = ran.iter().collect();
    assert_eq!(once.len(), ran.len(), "a call ran twice");
    assert!(
        n_unknown > 20 && once.len() > 200,
        "{n_unknown} unknown, {} ran",
        once.len()
    );
}

/// Times at which attempts ended.
#[derive(Default)]
struct Instants(Mutex<Vec<Instant>>);

impl Observe for Instants {
    fn observe(&self, event: &Event<'_>) {
        if let Event::AttemptFinished { .. } = event {
            self.0
                .lock()
                .expect("no test panics with it")
                .push(Instant::now());
        }
    }
}

/// The pauses of a call that fails twice and succeeds the third time.
async fn pauses(seed: u64) -> [Duration; 2] {
    let fails = || ScriptStep::Fail(ToolError::new(ErrorKind::Unavailable, "nobody answers"));
    let script = ScriptedExecutor::new([fails(), fails(), ScriptStep::Value(json!("there"))]);
    let mut tool = TestTool::new("test");
    tool.descriptor.overrides.set(RetrySettings::default());
    let instants = Arc::new(Instants::default());
    let plane = Toolplane::builder()
        .executor(Arc::new(script.clone()))
        .tool(tool.descriptor)
        .observer(instants.clone())
        .seed(seed)
        .build()
        .expect("usable");
    plane
        .call(CallRequest::new("test"))
        .await
        .expect("the third attempt");
    assert_eq!(script.n_calls(), 3);
    let instants = instants.0.lock().expect("no test panics with it");
    let [first, second, third] = instants[..] else {
        panic!("{instants:?}")
    };
    [second - first, third - second]
}

/// Critical scenario 1: a tool fails twice and succeeds the third time.
#[tokio::test(start_paused = true)]
async fn transient_failures_are_tried_again_after_growing_pauses() {
    const N_SEEDS: u32 = 200;
    let mut sums = [Duration::ZERO; 2];
    for seed in 0..N_SEEDS {
        let pauses = pauses(seed.into()).await;
        // Full jitter: up to 200 ms, then up to 400 ms; the runtime's clock counts milliseconds.
        assert!(
            pauses[0].as_millis() <= 201 && pauses[1].as_millis() <= 401,
            "{pauses:?} with seed {seed}"
        );
        for (sum, pause) in sums.iter_mut().zip(pauses) {
            *sum += pause;
        }
    }
    let [first, second] = sums.map(|sum| sum / N_SEEDS);
    assert!(!first.is_zero(), "there is a pause");
    let growth = second.as_secs_f64() / first.as_secs_f64();
    assert!((1.6..=2.4).contains(&growth), "{first:?}, then {second:?}");
}

/// Critical scenario 2: a tool fails past the threshold.
#[tokio::test(start_paused = true)]
async fn a_breaker_opens_under_chaos_and_closes_when_it_is_over() {
    let mut rule = ChaosRule::default();
    rule.failure_rate = 1.0;
    rule.faults = vec![InjectedFault::Network];
    let chaos = ChaosLayer::new(ChaosPlan::new(1, [rule]));
    let overrides = Overrides::default().with(Breakers::from(BreakerSettings::default()));
    let script = ScriptedExecutor::new([]);
    let plane = plane(chaos.clone(), &script, overrides);
    let mut n_refused = 0;
    for _ in 0..20 {
        let error = plane.call(CallRequest::new("test")).await.expect_err("all fail");
        n_refused += usize::from(error.message().contains("blocked by its circuit breaker"));
    }
    assert_eq!(n_refused, 15, "five failures open it");
    assert_eq!(
        plane.health().tool("test").n_calls,
        5,
        "nothing arrived while it was open"
    );
    chaos.stop();
    advance(Duration::from_secs(2)).await;
    plane.call(CallRequest::new("test")).await.expect("the probe");
    plane.call(CallRequest::new("test")).await.expect("it is closed");
    assert_eq!(script.n_calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn chaos_shows_and_dry_runs_meet_none() {
    let script = ScriptedExecutor::new([]);
    let chaos = storm(42, InjectedFault::USUAL);
    let plane = plane(chaos.clone(), &script, Overrides::default());
    assert_eq!(plane.readiness().chaos, Some(42));
    for _ in 0..50 {
        plane.dry_run(CallRequest::new("test")).await.result.expect("dry");
    }
    chaos.stop();
    assert_eq!(plane.readiness().chaos, None);
}
