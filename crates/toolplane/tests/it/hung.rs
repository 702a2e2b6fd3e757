//! One of five tools hangs, in the standard stack: how long calls of the others take then.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};
use tool_testkit::{TestTool, executor};
use toolplane::runtime::ConcurrencyLimits;
use toolplane::{
    CallRequest, RawJson, Toolplane,
    core::{
        CallContext, ConcurrencySettings, ErrorKind, Invoke, Metadata, Outcome, Reply, Scopes, ToolError,
    },
    manifest::Configuration,
};

/// Number of callers, each with one call at a time of one tool.
const CALLERS: usize = 200;
/// Duration of the load.
const LASTS: Duration = Duration::from_secs(60);
/// Pause of a caller after an answer or a failure.
const PAUSE: Duration = Duration::from_millis(500);
/// Time limit of a call.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of concurrent calls of the hanging tool, and of all tools. Without a limit of its own, the hanging
/// tool would take every permit.
const MOST: u32 = 4;
const TOTAL: u32 = 32;

const HUNG: &str = "hung";
const TOOLS: [&str; 5] = [HUNG, "one", "two", "three", "four"];

/// Slow tools, one of which may hang.
#[derive(Clone, Default)]
struct Works(Arc<Seen>);

#[derive(Default)]
struct Seen {
    hangs: AtomicBool,
    n_arrivals: AtomicU64,
    /// Calls of the hanging tool.
    n_running: AtomicUsize,
    most_running: AtomicUsize,
}

/// A call under way of the tool that hangs.
struct Running<'a>(&'a Seen);

impl<'a> Running<'a> {
    fn begin(seen: &'a Seen) -> Self {
        let n_running = seen.n_running.fetch_add(1, Relaxed) + 1;
        seen.most_running.fetch_max(n_running, Relaxed);
        Self(seen)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.n_running.fetch_sub(1, Relaxed);
    }
}

impl Invoke for Works {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let seen = &*self.0;
        let _running = (cx.target.name() == HUNG).then(|| Running::begin(seen));
        cx.dispatch().sent();
        if cx.target.name() == HUNG && seen.hangs.load(Relaxed) {
            std::future::pending::<()>().await;
        }
        // From 20 to 80 ms, in no order.
        let n = seen.n_arrivals.fetch_add(1, Relaxed);
        let took = 20 + n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 61;
        sleep(Duration::from_millis(took)).await;
        cx.dispatch().answered();
        Ok(Reply::value(RawJson::from(true)).into())
    }
}

/// Durations of calls.
#[derive(Default)]
struct Took {
    hung: Vec<Duration>,
    others: Vec<Duration>,
}

fn p99(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

fn plane(works: &Works) -> Toolplane {
    let mut configuration = Configuration::default();
    configuration.defaults.call_timeout = TIMEOUT;
    configuration.defaults.overrides.set(ConcurrencyLimits(Scopes {
        total: Some(ConcurrencySettings::new(TOTAL)),
        ..Scopes::default()
    }));
    let builder = Toolplane::builder()
        .configuration(configuration)
        .executor(executor("scripted", works.clone()))
        .seed(1);
    let tools = TOOLS.map(|name| {
        let limit = {
            let mut new = ConcurrencySettings::new(MOST);
            new.queue = 8;
            new
        };
        let metadata = {
            let mut metadata = Metadata::default();
            metadata.concurrency = (name == HUNG).then_some(limit);
            metadata
        };
        TestTool::new(name).metadata(metadata).descriptor
    });
    let builder = tools.into_iter().fold(builder, toolplane::Builder::tool);
    builder.build().expect("can be set up")
}

/// Calls all tools for a while.
async fn load(hangs: bool) -> Took {
    let works = Works::default();
    works.0.hangs.store(hangs, Relaxed);
    let plane = plane(&works);
    let start = Instant::now();
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (plane, name) = (plane.clone(), TOOLS[caller % TOOLS.len()]);
        callers.spawn(async move {
            // Not all at once.
            sleep(PAUSE * caller as u32 / CALLERS as u32).await;
            let mut times = Vec::new();
            while start.elapsed() < LASTS {
                let began = Instant::now();
                let result = plane.call(CallRequest::new(name)).await;
                times.push(began.elapsed());
                match result {
                    Ok(_) => {}
                    Err(error) if name == HUNG => assert!(
                        matches!(error.kind(), ErrorKind::Overloaded | ErrorKind::OutcomeUnknown),
                        "{error}"
                    ),
                    Err(error) => panic!("`{name}` failed: {error}"),
                }
                sleep(PAUSE).await;
            }
            (name, times)
        });
    }
    let mut took = Took::default();
    for (name, times) in callers.join_all().await {
        let all = if name == HUNG {
            &mut took.hung
        } else {
            &mut took.others
        };
        all.extend(times);
    }
    let seen = &works.0;
    assert_eq!(seen.n_running.load(Relaxed), 0);
    assert!(seen.most_running.load(Relaxed) <= MOST as usize);
    took
}

/// R07.
#[tokio::test(start_paused = true)]
async fn calls_of_other_tools_take_no_longer_while_one_hangs() {
    let (well, ill) = (load(false).await, load(true).await);
    let (baseline, others) = (p99(well.others), p99(ill.others));
    assert!(
        baseline >= Duration::from_millis(70),
        "{baseline:?}: the tools take their time"
    );
    assert!(
        others <= baseline * 3 / 2,
        "{others:?} while one hangs, and {baseline:?} without"
    );
    let hung = p99(ill.hung);
    assert!(
        hung <= TIMEOUT * 105 / 100,
        "{hung:?}: the limit of time ends every call"
    );
}
