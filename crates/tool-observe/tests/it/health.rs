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

/// A book and a tool whose attempts it hears of.
pub(crate) struct Ward {
    pub(crate) book: Arc<HealthTracker>,
    pub(crate) clock: Arc<dyn Clock>,
    observers: Observers,
}

impl Ward {
    pub(crate) fn new() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::new());
        let book = Arc::new(HealthTracker::new(clock.clone(), HealthTracker::DEFAULT_WINDOW));
        let observers = [book.clone() as Arc<dyn Observe>].into_iter().collect();
        Self {
            book,
            clock,
            observers,
        }
    }

    /// Calls the tool once, for so long at most.
    pub(crate) async fn call(&self, tool: &Arc<Tool>, step: ScriptStep, patience: Duration) {
        let stack = Layers::outermost(WatchAttemptLayer::new(self.observers.clone()))
            .around(ScriptedExecutor::new([step]));
        let mut cx = call(tool.clone(), json!({}), self.clock.clone());
        // How it ends is for the book to know.
        let _ = timeout(patience, stack.invoke(&mut cx)).await;
    }

    pub(crate) async fn calls(&self, tool: &Arc<Tool>, n: usize, step: &ScriptStep) {
        for _ in 0..n {
            self.call(tool, step.clone(), Duration::from_secs(3600)).await;
        }
    }

    pub(crate) fn report(&self, tool: &Arc<Tool>) -> HealthReport {
        Health::tool(&*self.book, tool.name())
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
    let ward = Ward::new();
    assert_eq!(ward.book.tool("weather"), HealthReport::UNKNOWN);
    assert_eq!(ward.book.reports(), []);
}

#[tokio::test(start_paused = true)]
async fn the_figures_are_those_of_the_attempts() {
    let (ward, tool) = (Ward::new(), tool("weather"));
    ward.calls(&tool, 18, &takes(1)).await;
    ward.calls(&tool, 1, &takes(20)).await;
    ward.calls(&tool, 1, &fails(ErrorKind::Unavailable)).await;
    let report = ward.report(&tool);
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
    for kind in ErrorKind::ALL {
        let (ward, tool) = (Ward::new(), tool("weather"));
        ward.calls(&tool, 1, &fails(kind)).await;
        let report = ward.report(&tool);
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
    let (ward, tool) = (Ward::new(), tool("weather"));
    let mut reply = Reply::value(json!("no such city").into());
    reply.is_error = true;
    ward.calls(&tool, 3, &ScriptStep::Reply(reply)).await;
    let report = ward.report(&tool);
    assert_eq!((report.n_calls, report.n_failures, report.n_reported), (3, 0, 3));
    assert_eq!(report.status, HealthStatus::Healthy);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_given_up_counts_only_if_the_tool_had_its_time() {
    let (ward, tool) = (Ward::new(), tool("weather"));
    for (seconds, n_expected) in [(5, 0), (26, 0), (28, 1)] {
        ward.call(&tool, ScriptStep::Hang(true), Duration::from_secs(seconds))
            .await;
        assert_eq!(
            ward.report(&tool).n_failures,
            n_expected,
            "after {seconds} s of 30"
        );
    }
    ward.call(&tool, ScriptStep::Hang(false), Duration::from_secs(29))
        .await;
    assert_eq!(ward.report(&tool).n_failures, 1, "it never got there");
}

#[tokio::test(start_paused = true)]
async fn what_was_five_minutes_ago_is_forgotten() {
    let (ward, tool) = (Ward::new(), tool("weather"));
    ward.calls(&tool, 10, &fails(ErrorKind::Unavailable)).await;
    advance(Duration::from_secs(269)).await;
    ward.calls(&tool, 10, &ScriptStep::Echo).await;
    assert_eq!(
        ward.report(&tool).status,
        HealthStatus::Unhealthy,
        "nine tenths still count"
    );
    advance(Duration::from_secs(32)).await;
    let report = ward.report(&tool);
    assert_eq!((report.n_calls, report.status), (10, HealthStatus::Healthy));
    advance(Duration::from_secs(300)).await;
    assert_eq!(ward.report(&tool), HealthReport::UNKNOWN);
}

#[tokio::test(start_paused = true)]
async fn another_window_keeps_what_is_within_it() {
    let (ward, tool) = (Ward::new(), tool("weather"));
    advance(Duration::from_secs(10_000)).await;
    ward.calls(&tool, 3, &fails(ErrorKind::Unavailable)).await;
    advance(Duration::from_secs(200)).await;
    ward.calls(&tool, 5, &takes(1)).await;
    let before = ward.report(&tool);
    assert_eq!((before.n_calls, before.n_failures), (8, 3));
    ward.book.set_window(Duration::from_secs(3600));
    assert_eq!(ward.book.window(), Duration::from_secs(3600));
    assert_eq!(ward.report(&tool), before, "all of it is within an hour");
    advance(Duration::from_secs(400)).await;
    ward.calls(&tool, 1, &ScriptStep::Echo).await;
    assert_eq!(
        ward.report(&tool).n_calls,
        9,
        "five minutes would have been forgotten"
    );
    ward.book.set_window(Duration::from_secs(60));
    assert_eq!(ward.report(&tool).n_calls, 1);
    advance(Duration::from_secs(60)).await;
    assert_eq!(ward.report(&tool), HealthReport::UNKNOWN);
}

#[tokio::test(start_paused = true)]
async fn a_shorter_window_forgets_what_is_older() {
    let (ward, tool) = (Ward::new(), tool("weather"));
    ward.calls(&tool, 3, &fails(ErrorKind::Unavailable)).await;
    advance(Duration::from_secs(200)).await;
    ward.calls(&tool, 5, &takes(1)).await;
    ward.book.set_window(Duration::from_secs(60));
    let report = ward.report(&tool);
    assert_eq!((report.n_calls, report.n_failures), (5, 0));
    assert_eq!(report.mean, Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn one_broken_tool_does_not_make_its_server_ill() {
    let ward = Ward::new();
    let upstream = Arc::new(UpstreamState::new("files"));
    let of_server = |name| {
        TestTool::new(name)
            .upstream(&upstream)
            .build(ScriptedExecutor::new([]))
    };
    let (broken, sound) = (of_server("broken"), of_server("sound"));
    ward.calls(&broken, 10, &fails(ErrorKind::UpstreamError)).await;
    ward.calls(&sound, 10, &ScriptStep::Echo).await;
    assert_eq!(ward.report(&broken).status, HealthStatus::Unhealthy);
    let server = ward.book.upstream("files");
    assert_eq!((server.n_calls, server.status), (20, HealthStatus::Healthy));
    ward.calls(&sound, 10, &fails(ErrorKind::Unavailable)).await;
    assert_eq!(ward.book.upstream("files").status, HealthStatus::Unhealthy);
}

#[tokio::test(start_paused = true)]
async fn a_reload_keeps_the_figures_and_a_tool_that_goes_takes_them_with_it() {
    let ward = Ward::new();
    let state = Arc::new(ToolState::default());
    let snapshot = |description: &str| {
        let mut tool = TestTool::new("weather");
        tool.descriptor.description = description.to_owned();
        tool.state = Some(state.clone());
        tool.build(ScriptedExecutor::new([]))
    };
    let (before, after) = (snapshot("one"), snapshot("another"));
    ward.calls(&before, 2, &ScriptStep::Echo).await;
    ward.calls(&after, 1, &ScriptStep::Echo).await;
    assert_eq!(ward.book.tool("weather").n_calls, 3);
    // Another book over the same state, as after a reload that changed more.
    let (another, name) = (Ward::new(), AlertSubject::Tool("weather".into()));
    another.calls(&after, 1, &ScriptStep::Echo).await;
    assert_eq!(another.book.report(&name).unwrap().n_calls, 4);
    drop((before, after, state));
    assert_eq!(ward.book.report(&name), None);
    assert_eq!(ward.book.reports(), []);
}

#[tokio::test(start_paused = true)]
async fn checks_are_part_of_it() {
    let (ward, tool) = (Ward::new(), tool("weather"));
    let took = Duration::from_millis(3);
    ward.book.record_tool_check(&tool, true, took);
    assert_eq!(ward.report(&tool).status, HealthStatus::Healthy);
    for expected in [
        HealthStatus::Degraded,
        HealthStatus::Degraded,
        HealthStatus::Unhealthy,
    ] {
        ward.book.record_tool_check(&tool, false, took);
        assert_eq!(ward.report(&tool).status, expected);
    }
    ward.book.record_tool_check(&tool, true, took);
    assert_eq!(ward.report(&tool).status, HealthStatus::Healthy);
}
