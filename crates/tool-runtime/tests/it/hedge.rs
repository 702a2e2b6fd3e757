//! Hedges alone, around tools that are slow or fail, on a paused clock.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use raw_json::RawJson;
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{Instant, advance, sleep, timeout},
};
use tool_core::{
    CallContext, ConcurrencySettings, DispatchState, ErrorKind, Event, Health, HealthReport, Invoke, Layer,
    Layers, Metadata, Observe, Observers, Outcome, Progress, Reply, Resume, Scopes, TaskMode, Tool,
    ToolError, Trust,
};
use tool_runtime::{ConcurrencyLimitLayer, ConcurrencyLimits, HedgeLayer, RetryLayer, TokioClock};
use tool_runtime::{HedgeAfter, HedgePercent, HedgeSettings, RetrySettings};
use tool_testkit::{ScriptedExecutor, TestTool, call};

const MS: Duration = Duration::from_millis(1);
/// Delay before the hedge in these tests.
const AFTER: Duration = Duration::from_millis(200);

/// Duration and result of an attempt.
type Fate = (Duration, Result<&'static str, ErrorKind>);

/// Backend with one fate for first attempts and another one for hedges.
#[derive(Clone)]
struct Fated {
    first: Fate,
    beside: Fate,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    n_first: AtomicUsize,
    n_beside: AtomicUsize,
    n_running: AtomicUsize,
    /// `_meta` of the hedges.
    metas: Mutex<Vec<String>>,
}

struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Fated {
    fn new(first: Fate, beside: Fate) -> Self {
        Self {
            first,
            beside,
            seen: Arc::default(),
        }
    }

    /// Returns the numbers of first attempts and of hedges that arrived.
    fn arrivals(&self) -> (usize, usize) {
        (self.seen.n_first.load(Relaxed), self.seen.n_beside.load(Relaxed))
    }

    fn n_running(&self) -> usize {
        self.seen.n_running.load(Relaxed)
    }
}

impl Invoke for Fated {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        self.seen.n_running.fetch_add(1, Relaxed);
        let _running = Running(&self.seen.n_running);
        cx.dispatch().sent();
        let (took, result) = if cx.is_hedge {
            self.seen.n_beside.fetch_add(1, Relaxed);
            let meta = cx.extras.meta.as_ref().map(ToString::to_string);
            self.seen.metas.lock().unwrap().extend(meta);
            assert!(cx.origin.ask.is_none() && cx.origin.progress.is_none());
            self.beside
        } else {
            self.seen.n_first.fetch_add(1, Relaxed);
            self.first
        };
        sleep(took).await;
        match result {
            Ok(text) => {
                cx.dispatch().answered();
                Ok(Reply::value(RawJson::from(text)).into())
            }
            Err(kind) => Err(ToolError::new(kind, "as it is fated")),
        }
    }
}

fn idempotent() -> Metadata {
    {
        let mut metadata = Metadata::default();
        metadata.idempotent = Some(true);
        metadata
    }
}

fn hedged() -> TestTool {
    let mut tool = TestTool::new("t").metadata(idempotent());
    tool.settings.set(HedgeSettings::new(HedgeAfter::Time(AFTER)));
    tool
}

fn context(tool: &Arc<Tool>) -> CallContext {
    let mut cx = call(tool.clone(), json!({}), Arc::new(TokioClock::new()));
    cx.record_decisions();
    cx
}

fn text(result: Result<Outcome, ToolError>) -> Result<String, ErrorKind> {
    match result {
        Ok(Outcome::Reply(reply)) => Ok(reply.raw().string().unwrap()),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.kind()),
    }
}

/// Calls a hedged tool with these fates. Returns its result, its duration and the layer's last decision.
async fn run(fated: &Fated, tool: TestTool) -> (Result<String, ErrorKind>, Duration, String) {
    let mut cx = context(&tool.build(ScriptedExecutor::new([])));
    let start = Instant::now();
    let result = HedgeLayer::default().layer(fated.clone()).invoke(&mut cx).await;
    assert_eq!(fated.n_running(), 0, "no attempt outlives its call");
    let note = cx.decisions().last().map(|note| note.decision.clone());
    (text(result), start.elapsed(), note.unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn the_first_answer_counts_whoever_has_it() {
    let slow = (5000 * MS, Ok("first"));
    for (first, beside, expected, took, arrivals, note) in [
        (
            slow,
            (100 * MS, Ok("beside")),
            "beside",
            300,
            (1, 1),
            "which answered first",
        ),
        (
            (500 * MS, Ok("first")),
            slow,
            "first",
            500,
            (1, 1),
            "which did not answer first",
        ),
        (
            (100 * MS, Ok("first")),
            slow,
            "first",
            100,
            (1, 0),
            "ended before 200 ms",
        ),
        // A failed hedge is dropped.
        (
            (500 * MS, Ok("first")),
            (100 * MS, Err(ErrorKind::Unavailable)),
            "first",
            500,
            (1, 1),
            "which did not answer first",
        ),
        // If the first attempt fails, the hedge may finish.
        (
            (250 * MS, Err(ErrorKind::Unavailable)),
            (100 * MS, Ok("beside")),
            "beside",
            300,
            (1, 1),
            "which answered first",
        ),
    ] {
        let fated = Fated::new(first, beside);
        let (result, elapsed, noted) = run(&fated, hedged()).await;
        assert_eq!((result, elapsed), (Ok(expected.to_owned()), took * MS));
        assert_eq!(fated.arrivals(), arrivals);
        assert!(noted.ends_with(note), "{noted}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_failure_counts_when_all_have_failed() {
    for (first, beside, expected, took, arrivals) in [
        (
            (250, ErrorKind::Unavailable),
            (100, ErrorKind::Timeout),
            ErrorKind::Unavailable,
            300,
            (1, 1),
        ),
        (
            (500, ErrorKind::Timeout),
            (100, ErrorKind::Unavailable),
            ErrorKind::Timeout,
            500,
            (1, 1),
        ),
        // Without a running hedge there is nothing to wait for, and an attempt that fails at once is not hedged.
        (
            (250, ErrorKind::Denied),
            (900, ErrorKind::Denied),
            ErrorKind::Denied,
            250,
            (1, 1),
        ),
        (
            (10, ErrorKind::Unavailable),
            (100, ErrorKind::Timeout),
            ErrorKind::Unavailable,
            10,
            (1, 0),
        ),
    ] {
        let fated = Fated::new((first.0 * MS, Err(first.1)), (beside.0 * MS, Err(beside.1)));
        let (result, elapsed, _) = run(&fated, hedged()).await;
        assert_eq!((result, elapsed), (Err(expected), took * MS));
        assert_eq!(fated.arrivals(), arrivals);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_hedged_that_the_operator_did_not_declare_repeatable() {
    let slow = (1000 * MS, Ok("first"));
    let mut foreign = hedged();
    foreign.descriptor.origin.trust = Trust::Upstream;
    let mut without = hedged();
    without.settings.remove::<HedgeSettings>();
    let read_only = {
        let mut metadata = Metadata::default();
        metadata.read_only = Some(true);
        metadata
    };
    for (what, tool, expected) in [
        ("declared", hedged(), 1),
        ("declared in the other way", hedged().metadata(read_only), 1),
        ("not declared", hedged().metadata(Metadata::default()), 0),
        ("by a server's own word", foreign, 0),
        ("not configured", without, 0),
    ] {
        let fated = Fated::new(slow, slow);
        run(&fated, tool).await.0.unwrap();
        assert_eq!(fated.arrivals(), (1, expected), "{what}");
    }
}

/// A change of the call by its caller.
type Change = Box<dyn Fn(&mut CallContext)>;

#[tokio::test(start_paused = true)]
async fn what_is_more_than_a_plain_call_gets_no_company() {
    let slow = (1000 * MS, Ok("first"));
    let repeated = RawJson::from(json!({RetryLayer::META_KEY: 1}));
    let resume = Arc::new(Resume::new(RawJson::object()));
    let changes: [(&str, Change); 4] = [
        ("a plain call", Box::new(|_| {})),
        (
            "repeated",
            Box::new(move |cx| cx.extras.meta = Some(repeated.clone())),
        ),
        (
            "another round",
            Box::new(move |cx| cx.extras.resume = Some(resume.clone())),
        ),
        (
            "a task",
            Box::new(|cx| cx.extras.task = Some(TaskMode::Requested(RawJson::object()))),
        ),
    ];
    for (number, (what, change)) in changes.iter().enumerate() {
        let fated = Fated::new(slow, slow);
        let mut cx = context(&hedged().build(ScriptedExecutor::new([])));
        change(&mut cx);
        HedgeLayer::default()
            .layer(fated.clone())
            .invoke(&mut cx)
            .await
            .unwrap();
        assert_eq!(fated.arrivals(), (1, usize::from(number == 0)), "{what}");
    }
}

/// Receiver of progress that ignores it.
struct Unread;

impl Progress for Unread {
    fn report(&self, _: RawJson) {}
}

#[tokio::test(start_paused = true)]
async fn a_hedge_says_that_it_repeats_and_its_answer_is_that_of_the_call() {
    let fated = Fated::new((5000 * MS, Ok("first")), (MS, Ok("beside")));
    let mut cx = context(&hedged().build(ScriptedExecutor::new([])));
    cx.origin.progress = Some(Arc::new(Unread));
    cx.extras.meta = Some(RawJson::from(json!({"mine": 1})));
    HedgeLayer::default()
        .layer(fated.clone())
        .invoke(&mut cx)
        .await
        .unwrap();
    assert_eq!(
        *fated.seen.metas.lock().unwrap(),
        [r#"{"mine":1,"dev.toolplane/retry-attempt":1}"#]
    );
    assert_eq!(cx.dispatch().state(), DispatchState::Answered);
    assert_eq!(cx.extras.meta.unwrap().to_string(), r#"{"mine":1}"#);
}

#[tokio::test(start_paused = true)]
async fn there_are_as_many_as_there_may_be() {
    let fated = Fated::new((5000 * MS, Ok("first")), (900 * MS, Ok("beside")));
    let mut tool = hedged();
    let hedge = *tool.settings.get::<HedgeSettings>().expect("it is hedged");
    tool.settings.set(hedge.with_max(3));
    let (result, took, _) = run(&fated, tool).await;
    assert_eq!((result, took), (Ok("beside".to_owned()), 1100 * MS));
    assert_eq!(fated.arrivals(), (1, 3), "after 200, 400 and 600 ms");
}

#[tokio::test(start_paused = true)]
async fn all_attempts_end_with_their_call() {
    let never = (1_000_000 * MS, Ok("never"));
    let fated = Fated::new(never, never);
    let mut cx = context(&hedged().build(ScriptedExecutor::new([])));
    let stack = HedgeLayer::default().layer(fated.clone());
    let given_up = timeout(1000 * MS, stack.invoke(&mut cx)).await;
    assert!(given_up.is_err());
    assert_eq!((fated.arrivals(), fated.n_running()), ((1, 1), 0));
}

#[tokio::test(start_paused = true)]
async fn hedges_are_a_tenth_of_the_calls_however_slow_they_are_and_share_that_with_retries() {
    for retries in [false, true] {
        let fails = (1000 * MS, Err(ErrorKind::Unavailable));
        let fated = Fated::new(fails, fails);
        let mut tool = hedged();
        if retries {
            tool.settings.set(RetrySettings::default());
        }
        let tool = tool.build(ScriptedExecutor::new([]));
        let stack = Arc::new(
            Layers::outermost(RetryLayer::default())
                .then(HedgeLayer::default())
                .around(fated.clone()),
        );
        let mut calls = JoinSet::new();
        for _ in 0..2000 {
            let (stack, mut cx) = (stack.clone(), context(&tool));
            calls.spawn(async move { stack.invoke(&mut cx).await.is_ok() });
            // 100 calls a second.
            advance(10 * MS).await;
        }
        calls.join_all().await;
        let (n_first, n_beside) = fated.arrivals();
        let more = n_first + n_beside - 2000;
        assert!(more <= 210, "{more} more than there were calls");
        assert!(more >= 150 && n_beside > 0, "they are used: {more}, {n_beside}");
        assert_eq!(n_first > 2000, retries);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hedge_waits_for_no_place() {
    let fated = Fated::new((5000 * MS, Ok("first")), (MS, Ok("beside")));
    for (max, expected) in [(1, "first"), (2, "beside")] {
        let mut tool = hedged();
        tool.settings.set(ConcurrencyLimits(Scopes {
            tool: Some(ConcurrencySettings::new(max)),
            ..Scopes::default()
        }));
        let mut cx = context(&tool.build(ScriptedExecutor::new([])));
        let stack = Layers::outermost(HedgeLayer::default())
            .then(ConcurrencyLimitLayer::new())
            .around(fated.clone());
        let result = stack.invoke(&mut cx).await;
        assert_eq!(text(result), Ok(expected.to_owned()), "{max} places");
    }
    assert_eq!(fated.arrivals(), (2, 1));
}

/// Health report with this number and duration of attempts.
struct Known(Mutex<(u64, Duration)>, AtomicUsize);

impl Health for Known {
    fn tool(&self, name: &str) -> HealthReport {
        assert_eq!(name, "t");
        self.1.fetch_add(1, Relaxed);
        let (n_calls, p95) = *self.0.lock().unwrap();
        let mut report = HealthReport::UNKNOWN;
        (report.n_calls, report.p95, report.p99) = (n_calls, p95, 2 * p95);
        report
    }

    fn upstream(&self, _: &str) -> HealthReport {
        HealthReport::UNKNOWN
    }
}

#[tokio::test(start_paused = true)]
async fn a_percentile_is_that_of_the_attempts_that_are_known_and_a_tenth() {
    for (n_calls, p95, percent, expected) in [
        (20, 30 * MS, HedgePercent::P95, 33),
        (20, 30 * MS, HedgePercent::P99, 66),
        (19, 30 * MS, HedgePercent::P95, 500),
        (0, Duration::ZERO, HedgePercent::P95, 500),
        (1000, Duration::ZERO, HedgePercent::P95, 1),
    ] {
        let known = Arc::new(Known(Mutex::new((n_calls, p95)), AtomicUsize::new(0)));
        let fated = Fated::new((5000 * MS, Ok("first")), (7 * MS, Ok("beside")));
        let mut tool = hedged();
        tool.settings.set(HedgeSettings::new(HedgeAfter::Percentile {
            percent,
            at_first: 500 * MS,
        }));
        let tool = tool.build(ScriptedExecutor::new([]));
        let stack = HedgeLayer::new(known.clone()).layer(fated);
        let start = Instant::now();
        let clock = Arc::new(TokioClock::new());
        for _ in 0..2 {
            let mut cx = call(tool.clone(), json!({}), clock.clone());
            stack.invoke(&mut cx).await.unwrap();
        }
        assert_eq!(start.elapsed(), 2 * (expected + 7) * MS, "{n_calls} {p95:?}");
        if 2 * expected < 1000 {
            assert_eq!(known.1.load(Relaxed), 1, "it is not asked for each call");
        }
        *known.0.lock().unwrap() = (1000, 90 * MS);
        advance(1000 * MS).await;
        let start = Instant::now();
        stack.invoke(&mut call(tool, json!({}), clock)).await.unwrap();
        let changed = if percent == HedgePercent::P95 { 99 } else { 198 };
        assert_eq!(
            start.elapsed(),
            (changed + 7) * MS,
            "it changes with what is known"
        );
    }
}

/// Records events of hedges.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Observe for Told {
    fn observe(&self, event: &Event<'_>) {
        let line = match event {
            Event::Hedged { cx, after, .. } => format!("hedged after {after:?}: {}", cx.is_hedge),
            Event::HedgeWon { .. } => "won".to_owned(),
            _ => return,
        };
        self.0.lock().unwrap().push(line);
    }
}

#[tokio::test(start_paused = true)]
async fn observers_are_told_of_hedges() {
    let told = Arc::new(Told::default());
    for beside in [100, 9000] {
        let fated = Fated::new((1000 * MS, Ok("first")), (beside * MS, Ok("beside")));
        let mut cx = context(&hedged().build(ScriptedExecutor::new([])));
        cx.observers = [told.clone() as Arc<dyn Observe>]
            .into_iter()
            .collect::<Observers>();
        HedgeLayer::default().layer(fated).invoke(&mut cx).await.unwrap();
    }
    let hedged = "hedged after 200ms: true";
    assert_eq!(*told.0.lock().unwrap(), [hedged, "won", hedged]);
}
