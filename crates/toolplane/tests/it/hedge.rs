//! Hedges in the standard stack, as configured.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tool_testkit::executor;
use toolplane::{
    CallRequest, RawJson, Toolplane,
    core::{CallContext, Invoke, Outcome, Reply, ToolError},
    manifest::{LoadOptions, Syntax, load},
    observe::Metrics,
};

const MS: Duration = Duration::from_millis(1);

/// Tool that answers in 10 ms, and regularly in 5 s.
#[derive(Clone)]
struct Varies {
    slow: usize,
    n_attempts: Arc<AtomicUsize>,
    n_running: Arc<AtomicUsize>,
}

impl Varies {
    fn new(slow: usize) -> Self {
        Self {
            slow,
            n_attempts: Arc::default(),
            n_running: Arc::default(),
        }
    }
}

struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Invoke for Varies {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        self.n_running.fetch_add(1, Relaxed);
        let _running = Running(self.n_running.clone());
        let is_slow = self.n_attempts.fetch_add(1, Relaxed).is_multiple_of(self.slow);
        cx.dispatch().sent();
        sleep(if is_slow { 5000 * MS } else { 10 * MS }).await;
        cx.dispatch().answered();
        Ok(Reply::value(RawJson::from(is_slow)).into())
    }
}

fn plane(varies: &Varies, settings: &str, metrics: &Arc<Metrics>) -> Toolplane {
    let yaml = format!("tools: {{t: {{description: d, {settings}, executor: {{kind: varies}}}}}}");
    let loaded = load(&LoadOptions::new().text("toolplane.yaml", Syntax::Yaml, yaml)).expect("usable");
    Toolplane::builder()
        .loaded(&loaded)
        .executor(executor("varies", varies.clone()))
        .observer(metrics.clone())
        .build()
        .expect("can be set up")
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_is_answered_by_its_hedge_and_explained() {
    let (varies, metrics) = (Varies::new(2), Arc::new(Metrics::new()));
    let plane = plane(&varies, "idempotent: true, hedge: {after: 200ms}", &metrics);
    let start = Instant::now();
    let explained = plane.call_explained(CallRequest::new("t")).await;
    let Ok(Outcome::Reply(reply)) = explained.result else {
        panic!("{:?}", explained.result)
    };
    assert_eq!((reply.raw().as_str(), start.elapsed()), ("false", 210 * MS));
    assert_eq!(varies.n_running.load(Relaxed), 0, "the slow one is cancelled");
    let notes: Vec<_> = explained
        .decisions
        .iter()
        .map(|note| format!("{}: {}", note.layer, note.decision))
        .collect();
    for expected in [
        "attempt: attempt 1",
        "attempt: attempt 2",
        "hedge: a second attempt after 200 ms, which answered first",
    ] {
        assert!(notes.iter().any(|note| note == expected), "{expected}: {notes:?}");
    }
    let text = metrics.render();
    for line in [
        r#"toolplane_hedges_total{tool="t"} 1"#,
        r#"toolplane_hedges_won_total{tool="t"} 1"#,
        r#"toolplane_attempts_total{tool="t",outcome="ok"} 1"#,
        r#"toolplane_attempts_total{tool="t",outcome="cancelled"} 1"#,
    ] {
        assert!(text.lines().any(|it| it == line), "{line} in\n{text}");
    }
    let dry = plane.dry_run(CallRequest::new("t")).await;
    assert!(matches!(dry.result, Ok(Outcome::Pending(_))), "{:?}", dry.result);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_takes_both_attempts_with_it() {
    let (varies, metrics) = (Varies::new(1), Arc::new(Metrics::new()));
    let plane = plane(&varies, "read_only: true, hedge: {after: 200ms}", &metrics);
    let given_up = timeout(1000 * MS, plane.call(CallRequest::new("t"))).await;
    assert!(given_up.is_err());
    assert_eq!(
        (varies.n_attempts.load(Relaxed), varies.n_running.load(Relaxed)),
        (2, 0)
    );
}

/// Counts the calls that take longer than a second, out of a thousand at a hundred per second.
async fn slow_calls(settings: &str) -> (usize, usize) {
    let (varies, metrics) = (Varies::new(20), Arc::new(Metrics::new()));
    let plane = plane(&varies, settings, &metrics);
    let mut calls = JoinSet::new();
    for _ in 0..1000 {
        let plane = plane.clone();
        calls.spawn(async move {
            let start = Instant::now();
            plane.call(CallRequest::new("t")).await.expect("is answered");
            start.elapsed() > 1000 * MS
        });
        sleep(10 * MS).await;
    }
    let n_slow = calls.join_all().await.into_iter().filter(|slow| *slow).count();
    assert_eq!(varies.n_running.load(Relaxed), 0);
    (n_slow, varies.n_attempts.load(Relaxed))
}

#[tokio::test(start_paused = true)]
async fn slow_calls_become_few_for_a_tenth_more_attempts() {
    assert_eq!(slow_calls("idempotent: true").await, (50, 1000));
    for after in ["100ms", "p95, at_first: 100ms", "p99, at_first: 100ms"] {
        let settings = format!("idempotent: true, hedge: {{after: {after}}}");
        let (n_slow, n_attempts) = slow_calls(&settings).await;
        assert!(n_slow <= 10, "{after}: {n_slow} slow calls");
        assert!(n_attempts <= 1100, "{after}: {n_attempts} attempts of 1000 calls");
    }
}
