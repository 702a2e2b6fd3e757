//! Four times as many calls as a tool can do, in the standard stack: they come whether or not others have ended.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};
use tool_testkit::{TestTool, executor};
use toolplane::{
    CallRequest, RawJson, Toolplane,
    core::{CallContext, ConcurrencySettings, ErrorKind, Invoke, Metadata, Outcome, Reply, ToolError},
    manifest::Configuration,
    runtime::RetrySettings,
};

const SECOND: Duration = Duration::from_secs(1);
/// Time limit of a call.
const DEADLINE: Duration = Duration::from_secs(4);
/// Number of concurrent calls; each takes a tenth of a second on average.
const PLACES: u32 = 10;
/// Number of calls per second that the tool can serve.
const CAPACITY: u64 = 100;
/// Duration of the load, and the time after which it counts.
const LOAD: Duration = Duration::from_secs(20);
const WARM: Duration = Duration::from_secs(2);

/// A tool that takes its time, and knows how long its calls have waited.
#[derive(Clone)]
struct Works(Arc<Seen>);

struct Seen {
    start: Instant,
    waits: Mutex<Vec<Duration>>,
    n_arrivals: AtomicUsize,
    n_running: AtomicUsize,
    most_running: AtomicUsize,
}

impl Invoke for Works {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let seen = &self.0;
        let began = cx.arguments.value()["began"]
            .as_u64()
            .expect("the test says when");
        let waited = seen.start.elapsed() - Duration::from_micros(began);
        seen.waits.lock().expect("no test panics with it").push(waited);
        let n = seen.n_arrivals.fetch_add(1, Relaxed) as u64;
        let n_running = seen.n_running.fetch_add(1, Relaxed) + 1;
        seen.most_running.fetch_max(n_running, Relaxed);
        cx.dispatch().sent();
        // From 50 to 150 ms, in no order.
        sleep(Duration::from_millis(
            50 + n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 101,
        ))
        .await;
        cx.dispatch().answered();
        seen.n_running.fetch_sub(1, Relaxed);
        Ok(Reply::value(RawJson::from(true)).into())
    }
}

/// Results of a load.
struct Came {
    /// Calls that were answered while it counted.
    n_answered: usize,
    /// Errors of the others, and the time until each.
    refusals: Vec<(ToolError, Duration)>,
    longest_wait: Duration,
    /// Maximum number of calls in flight, waiting and running.
    most_open: usize,
    most_running: usize,
}

/// Generates this number of calls per second, evenly spaced.
async fn load(per_second: u64, queue: u32, retry: Option<RetrySettings>) -> Came {
    let works = Works(Arc::new(Seen {
        start: Instant::now(),
        waits: Mutex::default(),
        n_arrivals: AtomicUsize::new(0),
        n_running: AtomicUsize::new(0),
        most_running: AtomicUsize::new(0),
    }));
    let mut tool = TestTool::new("t").metadata({
        let mut metadata = Metadata::default();
        metadata.concurrency = Some({
            let mut new = ConcurrencySettings::new(PLACES);
            new.queue = queue;
            new
        });
        metadata
    });
    if let Some(retry) = retry {
        tool.descriptor.overrides.set(retry);
    }
    let mut configuration = Configuration::default();
    configuration.defaults.call_timeout = DEADLINE;
    let plane = Toolplane::builder()
        .configuration(configuration)
        .executor(executor("scripted", works.clone()))
        .tool(tool.descriptor)
        .seed(1)
        .build()
        .expect("can be set up");
    let (open, most_open) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let start = works.0.start;
    let mut calls = JoinSet::new();
    for n in 0..per_second * LOAD.as_secs() {
        sleep_until(start + Duration::from_micros(n * 1_000_000 / per_second)).await;
        let (plane, open, most_open) = (plane.clone(), open.clone(), most_open.clone());
        calls.spawn(async move {
            most_open.fetch_max(open.fetch_add(1, Relaxed) + 1, Relaxed);
            let began = start.elapsed();
            let request = CallRequest::new("t")
                .json(json!({"began": began.as_micros() as u64}).to_string())
                .expect("an object");
            let result = plane.call(request).await;
            open.fetch_sub(1, Relaxed);
            (result, start.elapsed(), start.elapsed() - began)
        });
    }
    let (mut n_answered, mut refusals) = (0, Vec::new());
    for (result, ended, took) in calls.join_all().await {
        match result {
            Ok(_) => n_answered += usize::from(ended > WARM && ended <= LOAD),
            Err(error) => refusals.push((error, took)),
        }
    }
    let seen = &works.0;
    assert_eq!(seen.n_running.load(Relaxed), 0);
    Came {
        n_answered,
        refusals,
        longest_wait: seen
            .waits
            .lock()
            .expect("no test panics with it")
            .iter()
            .copied()
            .max()
            .unwrap_or_default(),
        most_open: most_open.load(Relaxed),
        most_running: seen.most_running.load(Relaxed),
    }
}

/// R18, where the queue is bounded by its length and where it is bounded by time alone.
#[tokio::test(start_paused = true)]
async fn four_times_the_load_is_answered_or_refused_at_once_and_as_much_is_done_as_ever() {
    let peak = load(CAPACITY, ConcurrencySettings::QUEUE, None).await;
    assert!(peak.n_answered as u64 >= (LOAD - WARM).as_secs() * CAPACITY * 9 / 10);
    for queue in [50, ConcurrencySettings::QUEUE, 100_000] {
        let came = load(4 * CAPACITY, queue, None).await;
        assert!(
            came.n_answered * 10 >= peak.n_answered * 9,
            "{} calls were answered, and {} without too many others",
            came.n_answered,
            peak.n_answered
        );
        assert!(came.longest_wait <= DEADLINE / 4, "{:?}", came.longest_wait);
        assert_eq!(came.most_running, PLACES as usize);
        // The calls that a quarter of the deadline can serve; more only before durations are known. And the call that
        // is about to be shed.
        let most_waiting = u64::from(queue).min(CAPACITY * (DEADLINE / 4).as_secs() * 5 / 4);
        assert!(
            came.most_open as u64 <= u64::from(PLACES) + most_waiting + 1,
            "{} calls at once",
            came.most_open
        );
        let n_refused = came.refusals.len();
        assert!(n_refused > 5000, "{n_refused}");
        let mut n_late = 0;
        for (error, took) in &came.refusals {
            assert_eq!(error.kind(), ErrorKind::Overloaded, "{error}");
            assert!(error.retry_after().is_some(), "{error}");
            n_late += usize::from(*took > Duration::from_millis(10));
        }
        // Future durations are unknown, only past ones.
        assert!(
            n_late * 100 <= n_refused,
            "{n_late} of {n_refused} waited in vain"
        );
    }
}

/// Refused calls that come again by themselves do not take the place of others.
#[tokio::test(start_paused = true)]
async fn retries_make_an_overload_no_worse() {
    let peak = load(CAPACITY, ConcurrencySettings::QUEUE, None).await;
    let came = load(
        4 * CAPACITY,
        ConcurrencySettings::QUEUE,
        Some(RetrySettings::default()),
    )
    .await;
    assert!(came.n_answered * 10 >= peak.n_answered * 9, "{}", came.n_answered);
    assert!(came.longest_wait <= DEADLINE);
    assert!(
        came.refusals
            .iter()
            .all(|(error, took)| error.kind() == ErrorKind::Overloaded && *took < DEADLINE + SECOND / 10)
    );
}
