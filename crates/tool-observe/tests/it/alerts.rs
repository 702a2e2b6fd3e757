use std::{sync::Arc, time::Duration};

use tokio::time::advance;
use tool_core::{Alert, AlertKind, ErrorKind, HealthStatus, Tool, UpstreamState};
use tool_observe::{AlertMonitor, AlertSettings};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};

use crate::health::{TrackerFixture, fails, takes, tool};

/// Formats each alert as subject, kind and phase.
fn in_words(alerts: &[Alert]) -> Vec<String> {
    let words = |alert: &Alert| {
        let (kind, phase) = (alert.kind.as_str(), alert.phase.as_str());
        format!("{} {kind} {phase}", alert.subject)
    };
    alerts.iter().map(words).collect()
}

fn monitor() -> AlertMonitor {
    AlertMonitor::new(AlertSettings::default())
}

const NOTHING: [&str; 0] = [];

#[tokio::test(start_paused = true)]
async fn it_fires_once_and_is_over_once() {
    let (fixture, tool, monitor) = (TrackerFixture::new(), tool("weather"), monitor());
    fixture.calls(&tool, 9, &fails(ErrorKind::Timeout)).await;
    assert_eq!(
        in_words(&monitor.check(&fixture.tracker)),
        NOTHING,
        "nine calls are too few"
    );
    fixture.calls(&tool, 1, &fails(ErrorKind::Timeout)).await;
    let alerts = monitor.check(&fixture.tracker);
    assert_eq!(in_words(&alerts), ["tool `weather` success_rate firing"]);
    assert_eq!(
        alerts[0].message,
        "10 of 10 attempts failed in the last 5 min: 0.0 % succeeded"
    );
    assert_eq!(alerts[0].health.unwrap().status, HealthStatus::Unhealthy);
    assert_eq!(in_words(&monitor.check(&fixture.tracker)), NOTHING);
    // 92.6 %: above the threshold of 90 %, but below the 95 % that resolve the alert.
    fixture.calls(&tool, 125, &ScriptStep::Echo).await;
    assert_eq!(in_words(&monitor.check(&fixture.tracker)), NOTHING);
    // 95 %
    fixture.calls(&tool, 65, &ScriptStep::Echo).await;
    assert_eq!(
        in_words(&monitor.check(&fixture.tracker)),
        ["tool `weather` success_rate resolved"]
    );
    assert_eq!(in_words(&monitor.check(&fixture.tracker)), NOTHING);
}

#[tokio::test(start_paused = true)]
async fn figures_that_swing_around_the_threshold_raise_one_alert() {
    let (fixture, tool, monitor) = (TrackerFixture::new(), tool("weather"), monitor());
    fixture.calls(&tool, 80, &ScriptStep::Echo).await;
    let mut n_alerts = 0;
    for _ in 0..20 {
        fixture.calls(&tool, 10, &fails(ErrorKind::Timeout)).await;
        n_alerts += monitor.check(&fixture.tracker).len();
        fixture.calls(&tool, 90, &ScriptStep::Echo).await;
        n_alerts += monitor.check(&fixture.tracker).len();
    }
    assert_eq!(n_alerts, 1);
}

#[tokio::test(start_paused = true)]
async fn it_stays_quiet_for_a_while_after_its_end() {
    let (fixture, tool, monitor) = (TrackerFixture::new(), tool("weather"), monitor());
    let ill = fails(ErrorKind::Protocol);
    fixture.calls(&tool, 10, &ill).await;
    assert_eq!(monitor.check(&fixture.tracker).len(), 1);
    // The window is empty after five minutes.
    advance(Duration::from_secs(301)).await;
    assert_eq!(
        in_words(&monitor.check(&fixture.tracker)),
        ["tool `weather` success_rate resolved"]
    );
    advance(Duration::from_secs(290)).await;
    fixture.calls(&tool, 10, &ill).await;
    assert_eq!(
        in_words(&monitor.check(&fixture.tracker)),
        NOTHING,
        "it was over a short time ago"
    );
    advance(Duration::from_secs(11)).await;
    assert_eq!(
        in_words(&monitor.check(&fixture.tracker)),
        ["tool `weather` success_rate firing"]
    );
}

#[tokio::test(start_paused = true)]
async fn slow_tools_raise_one_as_well() {
    let (fixture, tool, monitor) = (TrackerFixture::new(), tool("weather"), monitor());
    fixture.calls(&tool, 10, &takes(5)).await;
    assert_eq!(
        in_words(&monitor.check(&fixture.tracker)),
        NOTHING,
        "5 s are not more than 5 s"
    );
    fixture.calls(&tool, 10, &takes(6)).await;
    assert_eq!(
        in_words(&monitor.check(&fixture.tracker)),
        ["tool `weather` latency firing"]
    );
    fixture.calls(&tool, 5, &takes(2)).await;
    assert_eq!(
        in_words(&monitor.check(&fixture.tracker)),
        NOTHING,
        "4.8 s are not well below 5 s"
    );
    fixture.calls(&tool, 15, &takes(2)).await;
    assert_eq!(
        in_words(&monitor.check(&fixture.tracker)),
        ["tool `weather` latency resolved"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_is_one_alert_not_one_for_each_tool() {
    let (fixture, monitor) = (TrackerFixture::new(), monitor());
    let upstream = Arc::new(UpstreamState::new("files"));
    let tools: Vec<Arc<Tool>> = ["read", "write", "list"]
        .map(|name| {
            TestTool::new(name)
                .upstream(&upstream)
                .build(ScriptedExecutor::new([]))
        })
        .into();
    for tool in &tools {
        fixture.calls(tool, 10, &fails(ErrorKind::Unavailable)).await;
    }
    assert_eq!(
        in_words(&monitor.check(&fixture.tracker)),
        ["upstream `files` success_rate firing"]
    );
    // The server is healthy again, but two of its tools are not.
    for _ in 0..60 {
        fixture.calls(&tools[1], 10, &ScriptStep::Echo).await;
    }
    assert_eq!(
        in_words(&monitor.check(&fixture.tracker)),
        [
            "upstream `files` success_rate resolved",
            "tool `list` success_rate firing",
            "tool `read` success_rate firing"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn checks_that_fail_again_and_again_raise_one() {
    let (fixture, tool, monitor) = (TrackerFixture::new(), tool("weather"), monitor());
    let mut phases = Vec::new();
    for succeeded in [false, false, true, false, false, false, false, true] {
        fixture
            .tracker
            .record_tool_check(&tool, succeeded, Duration::ZERO);
        phases.extend(monitor.check(&fixture.tracker).into_iter().map(|alert| {
            assert_eq!(alert.kind, AlertKind::HealthCheck);
            alert.phase.as_str()
        }));
    }
    assert_eq!(phases, ["firing", "resolved"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_is_over() {
    let (fixture, tool, monitor) = (TrackerFixture::new(), tool("weather"), monitor());
    fixture.calls(&tool, 10, &fails(ErrorKind::Unavailable)).await;
    assert_eq!(monitor.check(&fixture.tracker).len(), 1);
    drop(tool);
    let alerts = monitor.check(&fixture.tracker);
    assert_eq!(in_words(&alerts), ["tool `weather` success_rate resolved"]);
    assert_eq!(alerts[0].message, "it was removed");
    assert_eq!(in_words(&monitor.check(&fixture.tracker)), NOTHING);
}

#[tokio::test(start_paused = true)]
async fn other_thresholds_hold_from_the_next_look_and_what_fires_is_remembered() {
    let (fixture, tool, monitor) = (TrackerFixture::new(), tool("weather"), monitor());
    fixture.calls(&tool, 2, &fails(ErrorKind::Timeout)).await;
    fixture.calls(&tool, 8, &ScriptStep::Echo).await;
    assert_eq!(
        in_words(&monitor.check(&fixture.tracker)),
        ["tool `weather` success_rate firing"]
    );
    let mut settings = AlertSettings::default();
    settings.success_rate = 0.75;
    monitor.reconfigure(settings);
    assert_eq!(
        in_words(&monitor.check(&fixture.tracker)),
        NOTHING,
        "80 % is above the threshold, and not well above"
    );
    settings.success_rate = 0.50;
    settings.cooldown = Duration::from_secs(60);
    monitor.reconfigure(settings);
    assert_eq!(
        in_words(&monitor.check(&fixture.tracker)),
        ["tool `weather` success_rate resolved"]
    );
    monitor.reconfigure(AlertSettings::default());
    assert_eq!(
        in_words(&monitor.check(&fixture.tracker)),
        NOTHING,
        "it stays quiet"
    );
    advance(Duration::from_secs(61)).await;
    settings.success_rate = 0.90;
    monitor.reconfigure(settings);
    assert_eq!(
        in_words(&monitor.check(&fixture.tracker)),
        ["tool `weather` success_rate firing"],
        "for the cooldown of now"
    );
}
