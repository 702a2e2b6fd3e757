//! Metrics and their names.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::json;
use tool_core::{
    Alert, AlertKind, AlertPhase, AlertSubject, BreakerChange, BreakerState, CacheOutcome, Caller, ErrorKind,
    Event, Invoke, Layers, Observe, Observers, Scope, ToolError, ToolState, UpstreamState,
};
use tool_observe::{Gauge, Metrics, SEMANTIC_CONVENTIONS, WatchAttemptLayer, WatchLayer};
use tool_runtime::TokioClock;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

/// Makes a call that `metrics` counts.
async fn run(metrics: &Arc<Metrics>, name: &str, step: ScriptStep) {
    let observers: Observers = [metrics.clone() as Arc<dyn Observe>].into_iter().collect();
    let script = ScriptedExecutor::new([step]);
    let stack = Layers::outermost(WatchLayer::new(observers.clone()))
        .then(WatchAttemptLayer::new(observers))
        .around(script.clone());
    let tool = TestTool::new(name).build(script);
    let mut cx = call(tool, json!({"a": 1}), Arc::new(TokioClock::new()));
    let _ = stack.invoke(&mut cx).await;
}

fn lines(metrics: &Metrics, prefix: &str) -> Vec<String> {
    let text = metrics.render();
    text.lines()
        .filter(|line| line.starts_with(prefix))
        .map(str::to_owned)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn calls_and_attempts_are_counted_by_tool_and_outcome() {
    let metrics = Arc::new(Metrics::new());
    run(
        &metrics,
        "a",
        ScriptStep::After(Duration::from_millis(15), json!({})),
    )
    .await;
    run(
        &metrics,
        "a",
        ScriptStep::Fail(ToolError::new(ErrorKind::Timeout, "late")),
    )
    .await;
    run(&metrics, "b", ScriptStep::Echo).await;
    assert_eq!(
        lines(&metrics, "toolplane_calls_total{"),
        [
            r#"toolplane_calls_total{tool="a",outcome="ok"} 1"#,
            r#"toolplane_calls_total{tool="a",outcome="timeout"} 1"#,
            r#"toolplane_calls_total{tool="b",outcome="ok"} 1"#,
        ]
    );
    assert_eq!(lines(&metrics, "toolplane_attempts_total{").len(), 3);
    assert_eq!(
        lines(&metrics, "toolplane_calls_running{"),
        [
            r#"toolplane_calls_running{tool="a"} 0"#,
            r#"toolplane_calls_running{tool="b"} 0"#
        ]
    );
    let durations = lines(&metrics, r#"toolplane_call_duration_seconds_bucket{tool="a""#);
    let expected = [(0.01, 1), (0.02, 2), (300.0, 2)];
    for (bound, count) in expected {
        let line = format!(r#"toolplane_call_duration_seconds_bucket{{tool="a",le="{bound}"}} {count}"#);
        assert!(durations.contains(&line), "{line} in {durations:?}");
    }
    assert_eq!(
        lines(&metrics, r#"toolplane_call_duration_seconds_sum{tool="a"}"#),
        [r#"toolplane_call_duration_seconds_sum{tool="a"} 0.015"#]
    );
    assert_eq!(
        lines(&metrics, r#"toolplane_argument_bytes_sum{tool="b"}"#),
        [r#"toolplane_argument_bytes_sum{tool="b"} 7"#]
    );
}

#[tokio::test(start_paused = true)]
async fn what_layers_tell_is_counted() {
    let metrics = Metrics::new();
    let upstream = Arc::new(UpstreamState::new("files"));
    let mut tool = TestTool::new("t");
    tool.state = Some(Arc::new(ToolState::new(Some(upstream))));
    let cx = &call(
        tool.build(ScriptedExecutor::new([])),
        json!({}),
        Arc::new(TokioClock::new()),
    );
    let error = &ToolError::new(ErrorKind::Unavailable, "gone");
    let (scope, second) = (Scope::Total, Duration::from_secs(1));
    for event in [
        Event::retried(cx, error, second),
        Event::hedged(cx, second),
        Event::hedge_won(cx),
        Event::rate_limited(cx, scope),
        Event::shed(cx, scope),
        Event::breaker_rejected(cx, Scope::Upstream),
        Event::queueing(cx),
        Event::queueing(cx),
        Event::queued(cx, second),
        Event::cache_used(cx, CacheOutcome::Hit),
        Event::cache_used(cx, CacheOutcome::Shared),
        Event::cache_used(cx, CacheOutcome::Shared),
        Event::replayed(cx),
        Event::breaker_changed(cx, Scope::Tool, &change(BreakerState::Open)),
        Event::breaker_changed(cx, Scope::Upstream, &change(BreakerState::HalfOpen)),
        Event::unresolved(&Caller::local(), error),
    ] {
        metrics.observe(&event);
    }
    metrics.add_gauge(Gauge {
        name: "toolplane_source_up",
        help: "Whether a source answers.",
        label: Some("source"),
        read: Box::new(|| vec![("a\"\\\n".to_owned(), 1.0), ("b".to_owned(), 0.25)]),
    });
    metrics.add_gauge(Gauge {
        name: "toolplane_http_connections_total",
        help: "Connections.",
        label: None,
        read: Box::new(|| vec![(String::new(), 3e12)]),
    });
    let text = metrics.render();
    // Dashboards are built on these names.
    assert_eq!(text, include_str!("page.txt"));
    for line in [
        r#"toolplane_retries_total{tool="t"} 1"#,
        r#"toolplane_hedges_total{tool="t"} 1"#,
        r#"toolplane_hedges_won_total{tool="t"} 1"#,
        r#"toolplane_rate_limited_total{tool="t",scope="total"} 1"#,
        r#"toolplane_shed_total{tool="t",scope="total"} 1"#,
        r#"toolplane_held_back_total{tool="t",scope="upstream"} 1"#,
        r#"toolplane_queue_wait_seconds_sum{tool="t"} 1"#,
        r#"toolplane_queue_length{tool="t"} 1"#,
        r#"toolplane_cache_total{tool="t",outcome="hit"} 1"#,
        r#"toolplane_cache_total{tool="t",outcome="shared"} 2"#,
        r#"toolplane_replays_total{tool="t"} 1"#,
        r#"toolplane_breaker_state{tool="t"} 2"#,
        r#"toolplane_breaker_changes_total{tool="t",state="open"} 1"#,
        r#"toolplane_upstream_breaker_state{upstream="files"} 1"#,
        r#"toolplane_unresolved_calls_total{kind="unavailable"} 1"#,
    ] {
        assert!(text.lines().any(|it| it == line), "{line} in\n{text}");
    }
    // After a reload that created a new state for the tool, the breaker of the tool is closed.
    let breaker = || lines(&metrics, "toolplane_breaker_state{");
    metrics.observe(&Event::call_started(cx));
    assert_eq!(breaker(), [r#"toolplane_breaker_state{tool="t"} 2"#]);
    let other = TestTool::new("t").build(ScriptedExecutor::new([]));
    let other = &call(other, json!({}), Arc::new(TokioClock::new()));
    metrics.observe(&Event::call_started(other));
    assert_eq!(breaker(), [r#"toolplane_breaker_state{tool="t"} 0"#]);
}

/// The state of a breaker disappears when a reload removes its tool or server; its counters stay.
#[test]
fn the_state_of_a_breaker_goes_with_what_it_is_of() {
    let metrics = Metrics::new();
    let mut tool = TestTool::new("t");
    tool.upstream = Some(Arc::new(UpstreamState::new("files")));
    let cx = call(
        tool.build(ScriptedExecutor::new([])),
        json!({}),
        Arc::new(TokioClock::new()),
    );
    for scope in [Scope::Tool, Scope::Upstream] {
        let (cx, change) = (&cx, &change(BreakerState::Open));
        metrics.observe(&Event::breaker_changed(cx, scope, change));
    }
    let states = || {
        let mut states = lines(&metrics, "toolplane_breaker_state{");
        states.extend(lines(&metrics, "toolplane_upstream_breaker_state{"));
        states.len()
    };
    assert_eq!(states(), 2);
    drop(cx);
    assert_eq!(states(), 0);
    assert_eq!(lines(&metrics, "toolplane_breaker_changes_total{").len(), 3);
}

#[test]
fn an_alert_fires_until_it_is_over() {
    let metrics = Metrics::new();
    let observe = |kind, phase, subject: AlertSubject| {
        let alert = &Alert::new(kind, phase, subject, "it fails", SystemTime::UNIX_EPOCH);
        metrics.observe(&Event::alert(alert));
    };
    let counted = || {
        [
            lines(&metrics, "toolplane_alerts_total"),
            lines(&metrics, "toolplane_alert_firing"),
        ]
    };
    let files = AlertSubject::Upstream("files".into());
    // An alert that resolves without having fired, as after a restart, does not count below zero.
    observe(AlertKind::Latency, AlertPhase::Resolved, files.clone());
    let over = r#"toolplane_alerts_total{kind="latency",phase="resolved"} 1"#;
    assert_eq!(counted(), [vec![over], vec![]]);

    observe(AlertKind::SuccessRate, AlertPhase::Firing, files.clone());
    // The failure of a call never resolves, so it is not counted as firing.
    let search = AlertSubject::Tool("search".into());
    observe(AlertKind::Failure, AlertPhase::Firing, search.clone());
    observe(AlertKind::HealthCheck, AlertPhase::Firing, search);
    let fired = r#"toolplane_alerts_total{kind="success_rate",phase="firing"} 1"#;
    let failed = r#"toolplane_alerts_total{kind="failure",phase="firing"} 1"#;
    let unhealthy = r#"toolplane_alerts_total{kind="health_check",phase="firing"} 1"#;
    let unhealthy_now = r#"toolplane_alert_firing{kind="health_check",tool="search"} 1"#;
    assert_eq!(
        counted(),
        [
            vec![fired, over, unhealthy, failed],
            vec![
                unhealthy_now,
                r#"toolplane_alert_firing{kind="success_rate",upstream="files"} 1"#
            ],
        ]
    );

    observe(AlertKind::SuccessRate, AlertPhase::Resolved, files);
    let resolved = r#"toolplane_alerts_total{kind="success_rate",phase="resolved"} 1"#;
    assert_eq!(
        counted(),
        [
            vec![fired, resolved, over, unhealthy, failed],
            vec![
                unhealthy_now,
                r#"toolplane_alert_firing{kind="success_rate",upstream="files"} 0"#
            ],
        ]
    );
}

#[test]
fn no_subject_of_alerts_makes_more_series_than_there_is_room_for() {
    let metrics = Metrics::new();
    for phase in [AlertPhase::Firing, AlertPhase::Resolved] {
        for n in 0..1003 {
            let subject = AlertSubject::Tool(format!("t{n}").into());
            let alert = &Alert::new(AlertKind::Latency, phase, subject, "slow", SystemTime::UNIX_EPOCH);
            metrics.observe(&Event::alert(alert));
        }
        let firing = lines(&metrics, "toolplane_alert_firing");
        assert_eq!(firing.len(), 1001);
        let (others, one) = if phase == AlertPhase::Firing {
            (3, 1)
        } else {
            (0, 0)
        };
        for (name, count) in [("other", others), ("t7", one)] {
            let line = format!(r#"toolplane_alert_firing{{kind="latency",tool="{name}"}} {count}"#);
            assert!(firing.contains(&line), "{line}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_name_makes_more_series_than_there_is_room_for() {
    let metrics = Arc::new(Metrics::new());
    for n in 0..1005 {
        run(&metrics, &format!("t{n}"), ScriptStep::Echo).await;
    }
    run(&metrics, "t7", ScriptStep::Echo).await;
    assert_eq!(lines(&metrics, "toolplane_calls_total{").len(), 1001);
    assert_eq!(
        lines(&metrics, r#"toolplane_calls_total{tool="other""#),
        [r#"toolplane_calls_total{tool="other",outcome="ok"} 5"#]
    );
    assert_eq!(
        lines(&metrics, r#"toolplane_calls_total{tool="t7""#),
        [r#"toolplane_calls_total{tool="t7",outcome="ok"} 2"#]
    );
}

#[test]
fn figures_of_others_are_read_when_somebody_looks() {
    let metrics = Metrics::new();
    metrics.add_gauge(Gauge {
        name: "toolplane_server_up",
        help: "Whether a server answers.",
        label: Some("server"),
        read: Box::new(|| vec![("a\"\\\n".to_owned(), 1.0)]),
    });
    let text = metrics.render();
    let expected = "# HELP toolplane_server_up Whether a server answers.\n# TYPE toolplane_server_up gauge\n\
                    toolplane_server_up{server=\"a\\\"\\\\\\n\"} 1\n";
    assert!(text.ends_with(expected), "{text}");
}

/// The documentation lists each metric.
#[test]
fn every_metric_is_documented() {
    let page = include_str!("../../../../docs/src/how-to/observe.md");
    let text = Metrics::new().render();
    let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    for name in names.filter_map(|line| line.split(' ').next()) {
        assert!(page.contains(&format!("`{name}`")), "{name} is not documented");
    }
}

#[test]
fn the_page_names_the_version_of_the_conventions() {
    let page = include_str!("../../../../docs/src/how-to/observe.md");
    assert!(page.contains(&format!("`{SEMANTIC_CONVENTIONS}`")));
}

fn change(to: BreakerState) -> BreakerChange {
    BreakerChange::new(BreakerState::Closed, to, "5 failures in a row".to_owned(), None)
}
