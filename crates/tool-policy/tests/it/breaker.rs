//! Circuit breaker: the state machine alone, and the layers around a scripted executor on a paused clock.

use std::{
    sync::{Arc, LazyLock},
    thread,
    time::Duration,
};

use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{Instant as TokioInstant, advance, timeout},
};
use tool_core::{
    CallContext, ErrorKind, Instant, Invoke, Jitter, Layers, Outcome, PendingCall, Reply, Tool, ToolError,
    UpstreamState,
};
use tool_policy::{BreakerLayer, BreakerPeekLayer, Breakers, Circuit, CircuitOutcome};
use tool_policy::{BreakerScope, BreakerSettings};
use tool_runtime::TokioClock;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

const SECOND: Duration = Duration::from_secs(1);
static SETTINGS: LazyLock<BreakerSettings> = LazyLock::new(|| {
    BreakerSettings::default()
        .with_per(BreakerScope::Tool)
        .with_max_failures(5)
        .with_failure_percent(50)
        .with_min_calls(10)
        .with_window(Duration::from_secs(30))
        .with_pause(SECOND)
        .with_max_pause(Duration::from_secs(60))
});

fn at(seconds: f64) -> Instant {
    Instant::since_start(Duration::from_secs_f64(seconds))
}

fn report(circuit: &Circuit, verdict: CircuitOutcome, now: Instant) {
    let permit = circuit.acquire(now).expect("it lets calls pass");
    circuit.report(permit, verdict, now, &SETTINGS, &Jitter::seeded(1));
}

/// Opens the circuit, and returns the length of the pause.
fn open(circuit: &Circuit, now: Instant) -> Duration {
    while circuit.peek(now).is_ok() {
        report(circuit, CircuitOutcome::Failure, now);
    }
    let held = circuit.peek(now).expect_err("it is open");
    held.retry_after.expect("no probe is under way")
}

#[test]
fn failures_in_a_row_open_it() {
    for (beside, opens) in [
        (CircuitOutcome::Failure, true),
        (CircuitOutcome::Reachable, true),
        (CircuitOutcome::Unknown, true),
        (CircuitOutcome::Success, false),
    ] {
        let circuit = Circuit::default();
        for _ in 0..4 {
            assert_eq!(circuit.peek(at(0.0)), Ok(()));
            report(&circuit, CircuitOutcome::Failure, at(0.0));
        }
        // A success ends the row; an outcome that does not count leaves it unchanged.
        report(&circuit, beside, at(0.0));
        if beside != CircuitOutcome::Failure {
            report(&circuit, CircuitOutcome::Failure, at(0.0));
        }
        let held = circuit.acquire(at(0.0)).err();
        assert_eq!(held.is_some(), opens, "{beside:?}");
        let pause = held.map_or(SECOND, |held| held.retry_after.unwrap());
        assert!((SECOND..=SECOND * 6 / 5).contains(&pause), "{pause:?}");
    }
}

#[test]
fn half_of_ten_calls_within_the_window_open_it() {
    let alternate = |n_calls: usize, apart: f64| {
        let circuit = Circuit::default();
        let open = (0..n_calls).position(|i| {
            let verdict = if i % 2 == 0 {
                CircuitOutcome::Success
            } else {
                CircuitOutcome::Failure
            };
            report(&circuit, verdict, at(i as f64 * apart));
            circuit.peek(at(i as f64 * apart)).is_err()
        });
        open.map(|i| i + 1)
    };
    assert_eq!(alternate(100, 0.1), Some(10));
    assert_eq!(alternate(100, 5.0), None, "there are never ten calls in 30 s");
}

#[test]
fn the_pause_doubles_up_to_its_end_and_begins_anew() {
    let (circuit, mut now) = (Circuit::default(), at(0.0));
    for expected in [1, 2, 4, 8, 16, 32, 60, 60] {
        let pause = open(&circuit, now);
        let expected = expected * SECOND;
        assert!(
            (expected..=expected * 6 / 5).contains(&pause),
            "{expected:?}: {pause:?}"
        );
        let before = now + (pause - Duration::from_nanos(1));
        assert!(
            circuit.acquire(before).is_err(),
            "nothing passes while it is open"
        );
        now = now + pause;
    }
    report(&circuit, CircuitOutcome::Success, now);
    assert!(open(&circuit, now) <= SECOND * 6 / 5);
}

#[test]
fn a_probe_that_comes_to_nothing_leaves_its_place_to_the_next() {
    let circuit = Circuit::default();
    let now = at(0.0) + open(&circuit, at(0.0));
    for _ in 0..3 {
        let probe = circuit.acquire(now).expect("the pause is over");
        assert!(circuit.acquire(now).is_err(), "one is enough");
        circuit.report(probe, CircuitOutcome::Unknown, now, &SETTINGS, &Jitter::seeded(1));
    }
    report(&circuit, CircuitOutcome::Reachable, now);
    report(&circuit, CircuitOutcome::Failure, now);
    assert_eq!(circuit.peek(now), Ok(()), "one failure does not open it again");
}

#[test]
fn what_began_before_it_opened_is_not_counted_after() {
    let circuit = Circuit::default();
    let mut late: Vec<_> = (0..8).map(|_| circuit.acquire(at(0.0)).unwrap()).collect();
    let later = late.split_off(3);
    let now = at(0.0) + open(&circuit, at(0.0));
    let probe = circuit.acquire(now).unwrap();
    for (permit, verdict) in late.into_iter().zip([
        CircuitOutcome::Failure,
        CircuitOutcome::Success,
        CircuitOutcome::Unknown,
    ]) {
        circuit.report(permit, verdict, now, &SETTINGS, &Jitter::seeded(1));
        assert!(circuit.acquire(now).is_err(), "the probe is still the only one");
    }
    circuit.report(probe, CircuitOutcome::Success, now, &SETTINGS, &Jitter::seeded(1));
    for permit in later {
        circuit.report(
            permit,
            CircuitOutcome::Failure,
            now,
            &SETTINGS,
            &Jitter::seeded(1),
        );
    }
    assert_eq!(circuit.peek(now), Ok(()), "nor once it is closed again");
}

#[test]
fn threads_find_one_probe_among_them() {
    for round in 0..1000 {
        let circuit = Circuit::default();
        let now = at(0.0) + open(&circuit, at(0.0));
        let ask = || (0..2500).filter_map(|_| circuit.acquire(now).ok()).count();
        let n_probes: usize = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(n_probes, 1, "round {round}");
    }
}

fn guarded(name: &str) -> TestTool {
    let mut tool = TestTool::new(name);
    set(&mut tool, |breakers| breakers.tool = *SETTINGS);
    tool
}

/// Changes the breakers of a tool. Those of upstreams have the usual settings.
fn set(tool: &mut TestTool, change: impl FnOnce(&mut Breakers)) {
    let breakers = tool.settings.get::<Breakers>().copied();
    let mut breakers = breakers.unwrap_or(Breakers::from(BreakerSettings::default()));
    change(&mut breakers);
    tool.settings.set(breakers);
}

fn context(tool: &Arc<Tool>, clock: TokioClock) -> CallContext {
    call(tool.clone(), json!({}), Arc::new(clock))
}

fn error(kind: ErrorKind) -> ToolError {
    ToolError::new(kind, "as scripted")
}

fn stack<S: Invoke + 'static>(inner: S) -> impl Invoke + 'static {
    let breaker = BreakerLayer::with_jitter(Jitter::seeded(1));
    Layers::outermost(BreakerPeekLayer::for_breaker(&breaker))
        .then(breaker)
        .around(inner)
}

/// Calls a tool whose calls all fail like this, and returns how many of 20 arrive.
async fn arrivals(tool: TestTool, step: ScriptStep) -> usize {
    let script = ScriptedExecutor::new([step]);
    let (tool, clock) = (tool.build(script.clone()), TokioClock::new());
    let stack = stack(script.clone());
    for _ in 0..20 {
        let _ = stack.invoke(&mut context(&tool, clock)).await;
    }
    script.n_calls()
}

#[tokio::test(start_paused = true)]
async fn only_signs_of_illness_count() {
    for &kind in ErrorKind::ALL {
        let expected = match kind {
            ErrorKind::ResultInvalid
            | ErrorKind::Unavailable
            | ErrorKind::Timeout
            | ErrorKind::UpstreamError
            | ErrorKind::Protocol
            | ErrorKind::OutcomeUnknown => 5,
            _ => 20,
        };
        for step in [ScriptStep::Fail(error(kind)), ScriptStep::FailSent(error(kind))] {
            assert_eq!(arrivals(guarded("t"), step).await, expected, "{kind}");
        }
        let fails = ScriptStep::Fail(error(kind));
        assert_eq!(arrivals(TestTool::new("t"), fails).await, 20, "not configured");
    }
    let failure = Reply::result(raw_json::RawJson::object(), true);
    assert_eq!(arrivals(guarded("t"), ScriptStep::Reply(failure)).await, 20);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_for_how_long_and_that_waiting_in_the_call_is_no_use() {
    let script = ScriptedExecutor::new([ScriptStep::Fail(error(ErrorKind::Unavailable))]);
    let (tool, clock) = (guarded("weather").build(script.clone()), TokioClock::new());
    let stack = stack(script);
    for _ in 0..5 {
        stack
            .invoke(&mut context(&tool, clock))
            .await
            .expect_err("it fails");
    }
    let mut cx = context(&tool, clock);
    cx.record_decisions();
    let refused = stack.invoke(&mut cx).await.expect_err("it is blocked");
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    assert!(
        refused
            .message()
            .starts_with("`weather` is blocked by its circuit breaker for another 1."),
        "{refused}"
    );
    assert!(refused.retry_after() >= Some(SECOND) && !refused.allows_retry());
    assert_eq!(cx.decisions().last().unwrap().layer, "breaker");
}

#[tokio::test(start_paused = true)]
async fn one_probe_of_ten_thousand_calls_is_sent() {
    let mut steps = vec![ScriptStep::Fail(error(ErrorKind::Unavailable)); 5];
    steps.extend([ScriptStep::After(10 * SECOND, json!(1)), ScriptStep::Echo]);
    let script = ScriptedExecutor::new(steps);
    let (tool, clock) = (guarded("t").build(script.clone()), TokioClock::new());
    let stack = Arc::new(stack(script.clone()));
    for _ in 0..5 {
        stack
            .invoke(&mut context(&tool, clock))
            .await
            .expect_err("it fails");
    }
    advance(2 * SECOND).await;
    let mut tasks = JoinSet::new();
    for _ in 0..10_000 {
        let (stack, mut cx) = (stack.clone(), context(&tool, clock));
        tasks.spawn(async move { stack.invoke(&mut cx).await.is_ok() });
    }
    let n_ok = tasks.join_all().await.into_iter().filter(|&ok| ok).count();
    assert_eq!((n_ok, script.n_calls()), (1, 6));
    assert!(
        stack.invoke(&mut context(&tool, clock)).await.is_ok(),
        "it is closed again"
    );
}

/// Probes that fail, are cancelled, hang for their whole time limit, and succeed, each among ten thousand other
/// calls.
#[tokio::test(start_paused = true)]
async fn ten_thousand_calls_send_one_probe_in_every_round() {
    let failure = ScriptStep::Fail(error(ErrorKind::Unavailable));
    let mut steps = vec![failure.clone(); 5];
    let answers = ScriptStep::After(SECOND / 2, json!(1));
    steps.extend([
        failure,
        ScriptStep::Hang(true),
        ScriptStep::Hang(true),
        answers,
        ScriptStep::Echo,
    ]);
    let script = ScriptedExecutor::new(steps);
    let (tool, clock) = (guarded("t").build(script.clone()), TokioClock::new());
    let stack = Arc::new(stack(script.clone()));
    let round = async |patience: Duration| {
        let mut tasks = JoinSet::new();
        for _ in 0..10_000 {
            let (stack, mut cx) = (stack.clone(), context(&tool, clock));
            tasks.spawn(async move { timeout(patience, stack.invoke(&mut cx)).await });
        }
        let ends = tasks.join_all().await;
        ends.iter().filter(|end| matches!(end, Ok(Ok(_)))).count()
    };
    for _ in 0..5 {
        stack
            .invoke(&mut context(&tool, clock))
            .await
            .expect_err("it fails");
    }
    // Number of probes, time since the previous round, and time that callers wait.
    for (n_probes, pause, patience, n_ok) in [
        (1, 2 * SECOND, SECOND, 0),
        (2, 3 * SECOND, SECOND, 0),
        (3, Duration::ZERO, 30 * SECOND, 0),
        (4, 5 * SECOND, SECOND, 1),
    ] {
        advance(pause).await;
        assert_eq!(round(patience).await, n_ok, "round {n_probes}");
        assert_eq!(script.n_calls(), 5 + n_probes);
        if n_probes == 1 {
            advance(SECOND).await;
            assert_eq!(
                (round(SECOND).await, script.n_calls()),
                (0, 6),
                "the pause is twice as long"
            );
        }
    }
    assert!(stack.invoke(&mut context(&tool, clock)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_probe_frees_its_place() {
    let mut steps = vec![ScriptStep::Fail(error(ErrorKind::Unavailable)); 5];
    steps.extend([ScriptStep::Hang(true), ScriptStep::Echo]);
    let script = ScriptedExecutor::new(steps);
    let (tool, clock) = (guarded("t").build(script.clone()), TokioClock::new());
    let stack = stack(script.clone());
    for _ in 0..5 {
        stack
            .invoke(&mut context(&tool, clock))
            .await
            .expect_err("it fails");
    }
    advance(2 * SECOND).await;
    timeout(SECOND, stack.invoke(&mut context(&tool, clock)))
        .await
        .expect_err("the caller leaves");
    assert!(stack.invoke(&mut context(&tool, clock)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_impatient_caller_does_not_count_and_a_hung_tool_does() {
    for (patience, expected) in [(SECOND, 20), (20 * SECOND, 20), (30 * SECOND, 5)] {
        let script = ScriptedExecutor::new([ScriptStep::Hang(true)]);
        let (tool, clock) = (guarded("t").build(script.clone()), TokioClock::new());
        let stack = stack(script.clone());
        for _ in 0..20 {
            let start = TokioInstant::now();
            let _ = timeout(patience, stack.invoke(&mut context(&tool, clock))).await;
            if start.elapsed() < patience {
                break;
            }
        }
        assert_eq!(script.n_calls(), expected, "{patience:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_ill_upstream_takes_all_of_its_tools_with_it_and_a_broken_tool_does_not() {
    for (kind, expected) in [
        (ErrorKind::Unavailable, 0),
        (ErrorKind::Timeout, 0),
        (ErrorKind::OutcomeUnknown, 0),
        (ErrorKind::UpstreamError, 1),
        (ErrorKind::ResultInvalid, 1),
        (ErrorKind::InvalidArguments, 1),
    ] {
        let (upstream, clock) = (Arc::new(UpstreamState::new("files")), TokioClock::new());
        let (broken, sound) = (
            ScriptedExecutor::new([ScriptStep::FailSent(error(kind))]),
            ScriptedExecutor::new([ScriptStep::Echo]),
        );
        let tool = |name: &str, script: &ScriptedExecutor| {
            let mut tool = guarded(name).upstream(&upstream);
            set(&mut tool, |breakers| {
                breakers.upstream.per = BreakerScope::Upstream;
            });
            tool.build(script.clone())
        };
        let (first, second) = (tool("files__a", &broken), tool("files__b", &sound));
        for _ in 0..5 {
            let _ = stack(broken.clone()).invoke(&mut context(&first, clock)).await;
        }
        let result = stack(sound.clone()).invoke(&mut context(&second, clock)).await;
        assert_eq!(sound.n_calls(), expected, "{kind}");
        if let Err(error) = result {
            assert!(
                error
                    .message()
                    .starts_with("the backend of `files__b` is blocked by its circuit breaker"),
                "{error}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_person_closes_nothing() {
    struct Waits;
    impl Invoke for Waits {
        async fn invoke(&self, _: &mut CallContext) -> Result<Outcome, ToolError> {
            Ok(Outcome::Pending(Box::new(PendingCall::new(
                "dry-run",
                "nothing is sent",
            ))))
        }
    }
    let script = ScriptedExecutor::new([ScriptStep::Fail(error(ErrorKind::Unavailable))]);
    let (tool, clock) = (guarded("t").build(script.clone()), TokioClock::new());
    for _ in 0..5 {
        let _ = stack(script.clone()).invoke(&mut context(&tool, clock)).await;
    }
    advance(2 * SECOND).await;
    assert!(stack(Waits).invoke(&mut context(&tool, clock)).await.is_ok());
    let _ = stack(script.clone()).invoke(&mut context(&tool, clock)).await;
    let refused = stack(script.clone()).invoke(&mut context(&tool, clock)).await;
    assert!(!refused.expect_err("the probe failed").allows_retry());
    assert_eq!(script.n_calls(), 6);
}

/// Two tools of one upstream, with breaker settings of their own.
fn siblings(
    first: BreakerSettings,
    second: BreakerSettings,
    scripts: [&ScriptedExecutor; 2],
) -> [Arc<Tool>; 2] {
    let upstream = Arc::new(UpstreamState::new("files"));
    let tool = |name: &str, settings, script: &ScriptedExecutor| {
        let mut tool = guarded(name).upstream(&upstream);
        set(&mut tool, |breakers| {
            breakers.tool = settings;
            breakers.upstream.per = BreakerScope::Upstream;
        });
        tool.build(script.clone())
    };
    [
        tool("files__a", first, scripts[0]),
        tool("files__b", second, scripts[1]),
    ]
}

/// The sliding window of an upstream is its own: a report of a tool with another window does not clear it.
#[tokio::test(start_paused = true)]
async fn tools_with_different_windows_share_the_counts_of_their_upstream() {
    let (well, ill) = (
        ScriptedExecutor::new([ScriptStep::Echo]),
        ScriptedExecutor::new([ScriptStep::FailSent(error(ErrorKind::Unavailable))]),
    );
    let settings = |seconds| SETTINGS.with_max_failures(100).with_window(seconds * SECOND);
    let [first, second] = siblings(settings(30), settings(60), [&well, &ill]);
    let clock = TokioClock::new();
    for n_calls in (2..=10).step_by(2) {
        let done = stack(well.clone()).invoke(&mut context(&first, clock)).await;
        assert!(done.is_ok(), "before call {n_calls}: {done:?}");
        let _ = stack(ill.clone()).invoke(&mut context(&second, clock)).await;
        advance(SECOND).await;
        assert_eq!((well.n_calls(), ill.n_calls()), (n_calls / 2, n_calls / 2));
    }
    let refused = stack(well.clone()).invoke(&mut context(&first, clock)).await;
    let refused = refused.expect_err("half of ten calls failed");
    assert!(
        refused
            .message()
            .starts_with("the backend of `files__a` is blocked by its circuit breaker"),
        "{refused}"
    );
    assert_eq!(well.n_calls(), 5);
}

#[tokio::test(start_paused = true)]
async fn what_a_tool_sets_for_itself_closes_off_no_other() {
    let (well, ill) = (
        ScriptedExecutor::new([ScriptStep::Echo]),
        ScriptedExecutor::new([ScriptStep::FailSent(error(ErrorKind::Unavailable))]),
    );
    let once = SETTINGS.with_max_failures(1);
    let [first, second] = siblings(once, *SETTINGS, [&ill, &well]);
    let clock = TokioClock::new();
    for _ in 0..3 {
        let _ = stack(ill.clone()).invoke(&mut context(&first, clock)).await;
    }
    assert_eq!(ill.n_calls(), 1, "its own breaker is open");
    let done = stack(well.clone()).invoke(&mut context(&second, clock)).await;
    assert!(done.is_ok(), "the other is reachable: {done:?}");
}

#[tokio::test(start_paused = true)]
async fn an_upstream_may_have_no_breaker() {
    let (upstream, clock) = (Arc::new(UpstreamState::new("files")), TokioClock::new());
    let (ill, well) = (
        ScriptedExecutor::new([ScriptStep::FailSent(error(ErrorKind::Unavailable))]),
        ScriptedExecutor::new([ScriptStep::Echo]),
    );
    let tool = |name: &str, script: &ScriptedExecutor| {
        let mut tool = guarded(name).upstream(&upstream);
        set(&mut tool, |breakers| breakers.upstream.disabled = true);
        tool.build(script.clone())
    };
    let (first, second) = (tool("files__a", &ill), tool("files__b", &well));
    for _ in 0..20 {
        let _ = stack(ill.clone()).invoke(&mut context(&first, clock)).await;
    }
    assert_eq!(ill.n_calls(), 5);
    let done = stack(well.clone()).invoke(&mut context(&second, clock)).await;
    assert!(done.is_ok(), "{done:?}");
}

/// By default, only a failed connection counts for the upstream.
#[tokio::test(start_paused = true)]
async fn a_tool_that_fails_holds_back_no_other_and_a_dead_upstream_holds_back_all() {
    let kinds = [
        ErrorKind::Unavailable,
        ErrorKind::Timeout,
        ErrorKind::Protocol,
        ErrorKind::OutcomeUnknown,
    ];
    let steps = kinds.map(|kind| {
        let answered = ScriptStep::FailAnswered(error(kind));
        [
            (answered, false),
            (ScriptStep::FailSent(error(kind)), false),
            (ScriptStep::Fail(error(kind)), true),
        ]
    });
    for (step, is_dead) in steps.into_iter().flatten() {
        let (upstream, clock) = (
            Arc::new(UpstreamState::new("https://a.example")),
            TokioClock::new(),
        );
        let (bad, good) = (
            ScriptedExecutor::new([step.clone()]),
            ScriptedExecutor::new([ScriptStep::Echo]),
        );
        let first = guarded("bad").upstream(&upstream).build(bad.clone());
        let second = guarded("good").upstream(&upstream).build(good.clone());
        for _ in 0..20 {
            let _ = stack(bad.clone()).invoke(&mut context(&first, clock)).await;
        }
        assert_eq!(bad.n_calls(), 5, "{step:?}: its own breaker is open");
        let result = stack(good.clone()).invoke(&mut context(&second, clock)).await;
        assert_eq!(result.is_err(), is_dead, "{step:?}: {result:?}");
        assert_eq!(good.n_calls(), usize::from(!is_dead), "{step:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_says_from_what_to_what_why_and_for_how_long() {
    #[derive(Default)]
    struct Told(std::sync::Mutex<Vec<tool_core::BreakerChange>>);
    impl tool_core::Observe for Told {
        fn observe(&self, event: &tool_core::Event<'_>) {
            if let tool_core::Event::BreakerChanged { change, .. } = event {
                self.0.lock().unwrap().push((*change).clone());
            }
        }
    }
    let (told, clock) = (Arc::new(Told::default()), TokioClock::new());
    let mut steps = vec![ScriptStep::FailAnswered(error(ErrorKind::UpstreamError)); 6];
    steps.push(ScriptStep::Echo);
    let script = ScriptedExecutor::new(steps);
    let tool = guarded("t").build(script.clone());
    let run = async || {
        let mut cx = context(&tool, clock);
        cx.observers = [told.clone() as Arc<dyn tool_core::Observe>]
            .into_iter()
            .collect();
        let _ = stack(script.clone()).invoke(&mut cx).await;
    };
    for _ in 0..5 {
        run().await;
    }
    for pause in [2, 4] {
        advance(pause * SECOND).await;
        run().await;
    }
    let told = told.0.lock().unwrap();
    let shown: Vec<_> = told
        .iter()
        .map(|change| {
            (
                change.from.as_str(),
                change.to.as_str(),
                change.reason.as_str(),
                change.pause.is_some(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            (
                "closed",
                "open",
                "5 failures in a row, the last as `upstream_error`",
                true
            ),
            ("open", "half_open", "a probe is sent", false),
            (
                "half_open",
                "open",
                "the probe failed, the last as `upstream_error`",
                true
            ),
            ("open", "half_open", "a probe is sent", false),
            ("half_open", "closed", "the probe was answered", false),
        ]
    );
}
