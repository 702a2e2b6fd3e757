//! Routes in worlds whose tools become slow, fail and recover, beside round robin and a fixed list of fallbacks.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use serde_json::json;
use tokio::time::sleep;
use tool_core::{
    CallContext, Clock, ErrorKind, Instant, Invoke, Jitter, Outcome, RawJson, Reply, Tool, ToolError,
};
use tool_runtime::TokioClock;

use crate::plane::Plane;

/// Number of worlds.
const N_WORLDS: u64 = 12;
/// Number of tools of a world.
const N_TOOLS: usize = 4;
/// Number of calls in a world, and the mean time between two of them.
const N_CALLS: u32 = 1500;
const PAUSE: Duration = Duration::from_millis(400);
/// Deadline of a call.
const DEADLINE: Duration = Duration::from_secs(3);
/// Maximum number of tools for one call.
const MAX_ATTEMPTS: usize = 3;

/// A tool whose latency drifts, and that is out for two spans of time.
#[derive(Clone)]
struct DriftingTool {
    clock: TokioClock,
    /// Latency of each span of 30 seconds.
    latencies: Arc<[Duration]>,
    outages: [Outage; 2],
}

#[derive(Clone, Copy)]
struct Outage {
    from: Duration,
    until: Duration,
    /// `true` if calls are not answered, `false` if they fail at once.
    hangs: bool,
}

const SPAN: Duration = Duration::from_secs(30);

impl DriftingTool {
    fn new(clock: TokioClock, random: &Jitter) -> Self {
        // From 50 ms to 800 ms, evenly on a logarithmic scale; then a random walk by up to a factor of 2.
        let share = |random: &Jitter| random.below(1_000_001) as f64 / 1e6;
        let mut latency = 0.05 * 16_f64.powf(share(random));
        let n_spans = (PAUSE * N_CALLS).as_secs() / SPAN.as_secs() + 1;
        let latencies = (0..n_spans).map(|_| {
            latency = (latency * 2_f64.powf(2.0 * share(random) - 1.0)).clamp(0.02, 2.5);
            Duration::from_secs_f64(latency)
        });
        let latencies = latencies.collect();
        let outage = || {
            let from = random.up_to(PAUSE * N_CALLS);
            Outage {
                from,
                until: from + Duration::from_secs(20) + random.up_to(Duration::from_secs(40)),
                hangs: random.below(2) == 0,
            }
        };
        Self {
            clock,
            latencies,
            outages: [outage(), outage()],
        }
    }
}

impl Invoke for DriftingTool {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let now = self.clock.now().since(Instant::default());
        cx.dispatch().sent();
        let mut outages = self.outages.iter();
        if let Some(outage) = outages.find(|outage| (outage.from..outage.until).contains(&now)) {
            if outage.hangs {
                std::future::pending::<()>().await;
            }
            sleep(Duration::from_millis(20)).await;
            cx.dispatch().answered();
            return Err(ToolError::new(ErrorKind::Unavailable, "out"));
        }
        let span = (now.as_secs() / SPAN.as_secs()) as usize;
        sleep(self.latencies[span.min(self.latencies.len() - 1)]).await;
        cx.dispatch().answered();
        Ok(Reply::value(RawJson::from("done")).into())
    }
}

/// Way to find a tool for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strategy {
    Route,
    RoundRobin,
    FixedList,
}

/// Calls as their callers saw them.
#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    n_calls: u32,
    n_failed: u32,
    /// Time of all calls, also of those that failed.
    total: Duration,
}

impl Seen {
    fn add(&mut self, other: Self) {
        self.n_calls += other.n_calls;
        self.n_failed += other.n_failed;
        self.total += other.total;
    }

    fn mean(&self) -> Duration {
        self.total / self.n_calls
    }
}

/// Runs a world by one strategy.
async fn world(seed: u64, strategy: Strategy) -> Seen {
    let plane = Plane::new();
    let random = Jitter::seeded(seed);
    let names: Vec<String> = (0..N_TOOLS).map(|index| format!("tool_{index}")).collect();
    for name in &names {
        plane.add(name, |_| {}, DriftingTool::new(plane.clock, &random));
    }
    let route = plane.route(json!({"capability": "search", "priority": ["speed", "reliability"]}));
    let mut at = Duration::ZERO;
    let calls = (0..N_CALLS).map(|number| {
        // Between none and twice the mean.
        at += random.up_to(2 * PAUSE);
        let (at, plane, route, names) = (at, &plane, &route, &names);
        async move {
            sleep(at).await;
            let start = plane.clock.now();
            let is_answered = match strategy {
                Strategy::Route => one(plane, route, DEADLINE).await,
                Strategy::RoundRobin => in_turn(plane, names, number as usize).await,
                Strategy::FixedList => in_turn(plane, names, 0).await,
            };
            Seen {
                n_calls: 1,
                n_failed: u32::from(!is_answered),
                total: plane.clock.now().since(start),
            }
        }
    });
    let mut seen = Seen::default();
    for one in join_all(calls.collect::<Vec<_>>()).await {
        seen.add(one);
    }
    seen
}

/// Calls one tool. Returns `true` if it answered.
async fn one(plane: &Plane, tool: &Arc<Tool>, limit: Duration) -> bool {
    let mut cx = plane.cx(tool);
    cx.tighten_deadline(limit);
    plane.call_with(&mut cx).await.is_ok()
}

/// Calls tools in their order from this one on, until one answers: each has half of the time that is left, the last all of it.
async fn in_turn(plane: &Plane, names: &[String], first: usize) -> bool {
    let start = plane.clock.now();
    for attempt in 0..MAX_ATTEMPTS {
        let tool = plane.get(&names[(first + attempt) % names.len()]);
        let left = DEADLINE.saturating_sub(plane.clock.now().since(start));
        let limit = if attempt + 1 < MAX_ATTEMPTS {
            left / 2
        } else {
            left
        };
        if one(plane, &tool, limit).await {
            return true;
        }
    }
    false
}

/// A route is faster and fails less than both, over all worlds and in most of them.
#[tokio::test(start_paused = true)]
async fn a_route_is_faster_and_fails_less_than_round_robin_and_a_fixed_list() {
    let strategies = [Strategy::Route, Strategy::RoundRobin, Strategy::FixedList];
    let mut totals = [Seen::default(); 3];
    let mut n_fastest = 0;
    for seed in 0..N_WORLDS {
        let mut means = Vec::new();
        for (total, strategy) in totals.iter_mut().zip(strategies) {
            let seen = world(seed, strategy).await;
            means.push(seen.mean());
            total.add(seen);
        }
        n_fastest += u32::from(means[0] < means[1] && means[0] < means[2]);
    }
    let figures: Vec<String> = totals
        .iter()
        .zip(strategies)
        .map(|(seen, strategy)| {
            format!(
                "{strategy:?}: mean {:?}, failed {} of {}",
                seen.mean(),
                seen.n_failed,
                seen.n_calls
            )
        })
        .collect();
    let told = format!("{figures:#?}, fastest in {n_fastest} of {N_WORLDS}");
    let [route, others @ ..] = totals;
    for other in others {
        assert!(route.mean() < other.mean(), "{told}");
        assert!(route.n_failed < other.n_failed, "{told}");
    }
    // In a few worlds, the first tool of the list happens to be the best one most of the time.
    assert!(n_fastest >= 10, "{told}");
}

/// Equal seeds give equal histories.
#[tokio::test(start_paused = true)]
async fn a_world_is_the_same_each_time() {
    let seen = world(3, Strategy::Route).await;
    let again = world(3, Strategy::Route).await;
    assert_eq!((seen.n_failed, seen.total), (again.n_failed, again.total));
}
