use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::time::{advance, timeout};
use tool_core::{
    AlertSubject, Clock, ErrorKind, Health, HealthReport, HealthStatus, Invoke, Layers, Observe, Observers,
    Reply, Tool, ToolError, ToolState, UpstreamState,
};
use tool_observe::{HealthTracker, WatchAttemptLayer};
use tool_runtime::TokioClock;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

/// Health tracker and the observers that report attempts to it.
pub(crate) struct TrackerFixture {
    pub(crate) tracker: Arc<HealthTracker>,
    pub(crate) clock: Arc<dyn Clock>,
    observers: Observers,
}

impl TrackerFixture {
    pub(crate) fn new() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::new());
        let tracker = Arc::new(HealthTracker::new(clock.clone(), HealthTracker::DEFAULT_WINDOW));
        let observers = [tracker.clone() as Arc<dyn Observe>].into_iter().collect();
        Self {
            tracker,
            clock,
            observers,
        }
    }

    /// Calls the tool once, and cancels the call after `patience`.
    pub(crate) async fn call(&self, tool: &Arc<Tool>, step: ScriptStep, patience: Duration) {
        let stack = Layers::outermost(WatchAttemptLayer::new(self.observers.clone()))
            .around(ScriptedExecutor::new([step]));
        let mut cx = call(tool.clone(), json!({}), self.clock.clone());
        // The result does not matter here: the tracker counts it.
        let _ = timeout(patience, stack.invoke(&mut cx)).await;
    }

    pub(crate) async fn calls(&self, tool: &Arc<Tool>, n: usize, step: &ScriptStep) {
        for _ in 0..n {
            self.call(tool, step.clone(), Duration::from_secs(3600)).await;
        }
    }

    pub(crate) fn report(&self, tool: &Arc<Tool>) -> HealthReport {
        Health::tool(&*self.tracker, tool.name())
    }
}

pub(crate) fn tool(name: &str) -> Arc<Tool> {
    TestTool::new(name).build(ScriptedExecutor::new([]))
}

pub(crate) fn fails(kind: ErrorKind) -> ScriptStep {
    ScriptStep::FailSent(ToolError::new(kind, "it does not work"))
}

pub(crate) fn takes(seconds: u64) -> ScriptStep {
    ScriptStep::After(Duration::from_secs(seconds), json!(1))
}

#[tokio::test(start_paused = true)]
async fn nothing_is_known_of_what_was_never_called() {
    let fixture = TrackerFixture::new();
    assert_eq!(fixture.tracker.tool("weather"), HealthReport::UNKNOWN);
    assert_eq!(fixture.tracker.reports(), []);
}

#[tokio::test(start_paused = true)]
async fn the_figures_are_those_of_the_attempts() {
    let (fixture, tool) = (TrackerFixture::new(), tool("weather"));
    fixture.calls(&tool, 18, &takes(1)).await;
    fixture.calls(&tool, 1, &takes(20)).await;
    fixture.calls(&tool, 1, &fails(ErrorKind::Unavailable)).await;
    let report = fixture.report(&tool);
    assert_eq!((report.n_calls, report.n_failures), (20, 1));
    assert_eq!(report.success_rate(), Some(0.95));
    assert_eq!(report.status, HealthStatus::Degraded);
    assert_eq!(report.mean, Duration::from_millis(1900));
    for (percentile, exact) in [(report.p50, 1.0), (report.p95, 1.0), (report.p99, 20.0)] {
        let off = (percentile.as_secs_f64() - exact).abs() / exact;
        assert!(off <= 1.0 / 32.0, "{percentile:?} for {exact} s");
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_speaks_against_the_tool_is_a_failure() {
    for &kind in ErrorKind::ALL {
        let (fixture, tool) = (TrackerFixture::new(), tool("weather"));
        fixture.calls(&tool, 1, &fails(kind)).await;
        let report = fixture.report(&tool);
        let expected = u64::from(kind.counts_for_health());
        assert_eq!(
            (report.n_calls, report.n_failures),
            (expected, expected),
            "{kind}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_in_the_tools_own_words_is_an_answer_and_is_counted_apart() {
    let (fixture, tool) = (TrackerFixture::new(), tool("weather"));
    let mut reply = Reply::value(json!("no such city").into());
    reply.is_error = true;
    fixture.calls(&tool, 3, &ScriptStep::Reply(reply)).await;
    let report = fixture.report(&tool);
    assert_eq!((report.n_calls, report.n_failures, report.n_reported), (3, 0, 3));
    assert_eq!(report.status, HealthStatus::Healthy);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_given_up_counts_only_if_the_tool_had_its_time() {
    let (fixture, tool) = (TrackerFixture::new(), tool("weather"));
    for (seconds, n_expected) in [(5, 0), (26, 0), (28, 1)] {
        fixture
            .call(&tool, ScriptStep::Hang(true), Duration::from_secs(seconds))
            .await;
        assert_eq!(
            fixture.report(&tool).n_failures,
            n_expected,
            "after {seconds} s of 30"
        );
    }
    fixture
        .call(&tool, ScriptStep::Hang(false), Duration::from_secs(29))
        .await;
    assert_eq!(fixture.report(&tool).n_failures, 1, "it never got there");
}

#[tokio::test(start_paused = true)]
async fn what_was_five_minutes_ago_is_forgotten() {
    let (fixture, tool) = (TrackerFixture::new(), tool("weather"));
    fixture.calls(&tool, 10, &fails(ErrorKind::Unavailable)).await;
    advance(Duration::from_secs(269)).await;
    fixture.calls(&tool, 10, &ScriptStep::Echo).await;
    assert_eq!(
        fixture.report(&tool).status,
        HealthStatus::Unhealthy,
        "nine tenths still count"
    );
    advance(Duration::from_secs(32)).await;
    let report = fixture.report(&tool);
    assert_eq!((report.n_calls, report.status), (10, HealthStatus::Healthy));
    advance(Duration::from_secs(300)).await;
    assert_eq!(fixture.report(&tool), HealthReport::UNKNOWN);
}

#[tokio::test(start_paused = true)]
async fn another_window_keeps_what_is_within_it() {
    let (fixture, tool) = (TrackerFixture::new(), tool("weather"));
    advance(Duration::from_secs(10_000)).await;
    fixture.calls(&tool, 3, &fails(ErrorKind::Unavailable)).await;
    advance(Duration::from_secs(200)).await;
    fixture.calls(&tool, 5, &takes(1)).await;
    let before = fixture.report(&tool);
    assert_eq!((before.n_calls, before.n_failures), (8, 3));
    fixture.tracker.set_window(Duration::from_secs(3600));
    assert_eq!(fixture.tracker.window(), Duration::from_secs(3600));
    assert_eq!(fixture.report(&tool), before, "all of it is within an hour");
    advance(Duration::from_secs(400)).await;
    fixture.calls(&tool, 1, &ScriptStep::Echo).await;
    assert_eq!(
        fixture.report(&tool).n_calls,
        9,
        "five minutes would have been forgotten"
    );
    fixture.tracker.set_window(Duration::from_secs(60));
    assert_eq!(fixture.report(&tool).n_calls, 1);
    advance(Duration::from_secs(60)).await;
    assert_eq!(fixture.report(&tool), HealthReport::UNKNOWN);
}

#[tokio::test(start_paused = true)]
async fn a_shorter_window_forgets_what_is_older() {
    let (fixture, tool) = (TrackerFixture::new(), tool("weather"));
    fixture.calls(&tool, 3, &fails(ErrorKind::Unavailable)).await;
    advance(Duration::from_secs(200)).await;
    fixture.calls(&tool, 5, &takes(1)).await;
    fixture.tracker.set_window(Duration::from_secs(60));
    let report = fixture.report(&tool);
    assert_eq!((report.n_calls, report.n_failures), (5, 0));
    assert_eq!(report.mean, Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn one_broken_tool_does_not_make_its_server_ill() {
    let fixture = TrackerFixture::new();
    let upstream = Arc::new(UpstreamState::new("files"));
    let of_server = |name| {
        TestTool::new(name)
            .upstream(&upstream)
            .build(ScriptedExecutor::new([]))
    };
    let (broken, sound) = (of_server("broken"), of_server("sound"));
    fixture.calls(&broken, 10, &fails(ErrorKind::UpstreamError)).await;
    fixture.calls(&sound, 10, &ScriptStep::Echo).await;
    assert_eq!(fixture.report(&broken).status, HealthStatus::Unhealthy);
    let server = fixture.tracker.upstream("files");
    assert_eq!((server.n_calls, server.status), (20, HealthStatus::Healthy));
    fixture.calls(&sound, 10, &fails(ErrorKind::Unavailable)).await;
    assert_eq!(fixture.tracker.upstream("files").status, HealthStatus::Unhealthy);
}

#[tokio::test(start_paused = true)]
async fn a_reload_keeps_the_figures_and_a_tool_that_goes_takes_them_with_it() {
    let fixture = TrackerFixture::new();
    let state = Arc::new(ToolState::default());
    let snapshot = |description: &str| {
        let mut tool = TestTool::new("weather");
        tool.descriptor.description = description.to_owned();
        tool.state = Some(state.clone());
        tool.build(ScriptedExecutor::new([]))
    };
    let (before, after) = (snapshot("one"), snapshot("another"));
    fixture.calls(&before, 2, &ScriptStep::Echo).await;
    fixture.calls(&after, 1, &ScriptStep::Echo).await;
    assert_eq!(fixture.tracker.tool("weather").n_calls, 3);
    // A second tracker over the same state, as after a reload that changed more.
    let (another, name) = (TrackerFixture::new(), AlertSubject::Tool("weather".into()));
    another.calls(&after, 1, &ScriptStep::Echo).await;
    assert_eq!(another.tracker.report(&name).unwrap().n_calls, 4);
    drop((before, after, state));
    assert_eq!(fixture.tracker.report(&name), None);
    assert_eq!(fixture.tracker.reports(), []);
}

#[tokio::test(start_paused = true)]
async fn checks_are_part_of_it() {
    let (fixture, tool) = (TrackerFixture::new(), tool("weather"));
    let took = Duration::from_millis(3);
    fixture.tracker.record_tool_check(&tool, true, took);
    assert_eq!(fixture.report(&tool).status, HealthStatus::Healthy);
    for expected in [
        HealthStatus::Degraded,
        HealthStatus::Degraded,
        HealthStatus::Unhealthy,
    ] {
        fixture.tracker.record_tool_check(&tool, false, took);
        assert_eq!(fixture.report(&tool).status, expected);
    }
    fixture.tracker.record_tool_check(&tool, true, took);
    assert_eq!(fixture.report(&tool).status, HealthStatus::Healthy);
}
