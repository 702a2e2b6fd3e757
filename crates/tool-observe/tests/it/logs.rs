//! Log lines of calls, as JSON.

use std::{
    io,
    sync::{Arc, Mutex},
    time::SystemTime,
};

use serde_json::{Value, json};
use tool_core::{
    AccessDecision, AccessVerdict, AccessedResource, AccessingCall, Alert, AlertKind, AlertPhase,
    AlertSubject, BreakerChange, BreakerState, CallContext, CorrelationId, ErrorKind, Event, Instant, Invoke,
    Layers, Observe, Scope, ToolError, UpstreamState,
};
use tool_observe::{AccessLog, AlertLog, BreakerLog, WatchAttemptLayer, WatchLayer};
use tool_runtime::TokioClock;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};
use tracing::{Level, instrument::WithSubscriber};

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a call with these arguments and returns its log lines at a level.
async fn logged(level: Level, arguments: Value, step: ScriptStep) -> Vec<Value> {
    let buffer = Buffer::default();
    let to = buffer.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(move || to.clone())
        .json()
        .flatten_event(true)
        .finish();
    let script = ScriptedExecutor::new([step]);
    let stack = Layers::outermost(WatchLayer::default())
        .then(WatchAttemptLayer::default())
        .around(script.clone());
    let tool = TestTool::new("echo").build(script);
    let mut cx: CallContext = call(tool, arguments, Arc::new(TokioClock::new()));
    cx.correlation_id = CorrelationId(7);
    let _ = stack.invoke(&mut cx).with_subscriber(subscriber).await;
    let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn an_alert_begins_as_a_warning_and_ends_as_information() {
    let buffer = Buffer::default();
    let to = buffer.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || to.clone())
        .json()
        .flatten_event(true)
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        for &phase in AlertPhase::ALL {
            let subject = AlertSubject::Tool("echo".into());
            let alert = &Alert::new(AlertKind::Latency, phase, subject, "slow", SystemTime::UNIX_EPOCH);
            AlertLog.observe(&Event::alert(alert));
        }
    });
    let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let said: Vec<_> = lines
        .iter()
        .map(|line| ["level", "alert", "phase", "subject", "message"].map(|key| line[key].as_str().unwrap()))
        .collect();
    assert_eq!(
        said,
        [
            ["WARN", "latency", "firing", "echo", "tool `echo`: slow"],
            ["INFO", "latency", "resolved", "echo", "tool `echo`: slow"],
        ]
    );
}

fn messages(lines: &[Value]) -> Vec<&str> {
    lines
        .iter()
        .map(|line| line["message"].as_str().unwrap())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn at_info_start_and_end_are_logged_without_arguments() {
    let lines = logged(Level::INFO, json!({"city": "Oslo"}), ScriptStep::Echo).await;
    assert_eq!(messages(&lines), ["started", "answered"]);
    for line in &lines {
        assert_eq!(line["span"]["tool"], "echo");
        assert_eq!(line["span"]["correlation_id"], "00000000000000000000000000000007");
        assert!(!line.to_string().contains("Oslo"), "{line}");
    }
    assert_eq!(lines[1]["outcome"], "ok");
    assert_eq!(lines[1]["attempts"], 1);
    assert!(lines[1]["duration_ms"].is_number());
}

#[tokio::test(start_paused = true)]
async fn at_debug_arguments_are_logged_without_secrets() {
    let arguments = json!({"auth": {"apiKey": "hunter2"}, "city": "Oslo", "list": [{"password": "hunter2"}]});
    let lines = logged(
        Level::DEBUG,
        arguments,
        ScriptStep::Value(json!({"token": "hunter2"})),
    )
    .await;
    assert_eq!(
        lines[0]["input"],
        r#"{"auth":"[hidden]","city":"Oslo","list":[{"password":"[hidden]"}]}"#
    );
    assert!(!Value::from(lines).to_string().contains("hunter2"));
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_logged_for_whoever_reads_warnings_alone() {
    let error = ToolError::new(
        ErrorKind::Unavailable,
        "nobody answers\n2026 INFO forged \u{1b}[31m",
    );
    let lines = logged(Level::WARN, json!({}), ScriptStep::Fail(error.clone())).await;
    assert_eq!(
        messages(&lines),
        [r"failed: nobody answers\n2026 INFO forged \u{1b}[31m"]
    );
    assert_eq!(lines[0]["tool"], "echo");
    assert_eq!(lines[0]["correlation_id"], "00000000000000000000000000000007");
    assert_eq!(lines[0]["kind"], "unavailable");
    let lines = logged(Level::DEBUG, json!({}), ScriptStep::Fail(error)).await;
    assert_eq!(lines[1]["attempt"], 1, "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_logged_with_addresses_and_without_credentials() {
    let error = ToolError::new(
        ErrorKind::Unavailable,
        "https://ada:hunter2@10.1.2.3/v1 refused Authorization: Bearer hunter2.A1",
    );
    let lines = logged(Level::DEBUG, json!({}), ScriptStep::Fail(error)).await;
    let said = "failed: https://[redacted]@10.1.2.3/v1 refused Authorization: Bearer [redacted]";
    assert_eq!(messages(&lines)[1..], [format!("attempt {said}").as_str(), said]);
}

#[test]
fn a_breaker_that_opens_is_a_warning_with_all_that_is_known() {
    let buffer = Buffer::default();
    let to = buffer.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || to.clone())
        .json()
        .flatten_event(true)
        .finish();
    let mut tool = TestTool::new("t");
    tool.upstream = Some(Arc::new(UpstreamState::new("files")));
    let cx = &call(
        tool.build(ScriptedExecutor::new([])),
        json!({}),
        Arc::new(TokioClock::new()),
    );
    let change = |from, to, pause| BreakerChange::new(from, to, "5 failures in a row".to_owned(), pause);
    let open = change(
        BreakerState::Closed,
        BreakerState::Open,
        Some(std::time::Duration::from_secs(2)),
    );
    let closed = change(BreakerState::HalfOpen, BreakerState::Closed, None);
    tracing::subscriber::with_default(subscriber, || {
        for (scope, change) in [
            (Scope::Tool, &open),
            (Scope::Upstream, &open),
            (Scope::Tool, &closed),
        ] {
            BreakerLog.observe(&Event::breaker_changed(cx, scope, change));
        }
    });
    let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let message = |line: usize| lines[line]["message"].as_str().unwrap_or_default().to_owned();
    assert_eq!(
        message(0),
        "the breaker of the tool `t` is open for 2.0s: 5 failures in a row"
    );
    assert_eq!(
        message(1),
        "the breaker of the upstream `files` is open for 2.0s: 5 failures in a row"
    );
    assert_eq!(
        message(2),
        "the breaker of the tool `t` is closed: 5 failures in a row"
    );
    assert_eq!(
        (&lines[0]["level"], &lines[2]["level"]),
        (&json!("WARN"), &json!("INFO"))
    );
    for (key, expected) in [
        ("tool", "t"),
        ("upstream", "files"),
        ("from", "closed"),
        ("to", "open"),
    ] {
        assert_eq!(lines[0][key], *expected);
    }
    assert_eq!(
        (&lines[0]["pause_ms"], &lines[1]["of"]),
        (&json!(2000), &json!("upstream"))
    );
}

#[test]
fn an_access_is_one_line_whatever_the_program_asked_for() {
    let buffer = Buffer::default();
    let to = buffer.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || to.clone())
        .json()
        .flatten_event(true)
        .finish();
    let mut cx = call(
        TestTool::new("fetch").build(ScriptedExecutor::new([])),
        json!({}),
        Arc::new(TokioClock::new()),
    );
    cx.correlation_id = CorrelationId(7);
    let decided = |subject, host: &str, verdict| {
        AccessDecision::new(
            subject,
            AccessedResource::host(host, 443),
            verdict,
            Instant::default(),
        )
    };
    let token = format!("ghp_{}", "a".repeat(36));
    let denied = || AccessVerdict::Denied("no rule names it".to_owned());
    let tool = || AlertSubject::Tool("fetch".into());
    let accesses = [
        decided(tool(), "api.example.com", AccessVerdict::Allowed).with_call(Some(AccessingCall::new(&cx))),
        decided(AlertSubject::Upstream("files".into()), "::1", denied()),
        decided(tool(), &format!("{token}.evil.example\n\u{1b}[2J"), denied()),
        decided(tool(), &"x".repeat(5000), denied()),
    ];
    tracing::subscriber::with_default(subscriber, || {
        for access in &accesses {
            AccessLog.observe(&Event::access_decided(access));
        }
    });
    let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 4, "{text}");
    for (key, expected) in [
        ("level", "INFO"),
        ("subject", "tool"),
        ("name", "fetch"),
        ("kind", "host"),
        ("resource", "api.example.com:443"),
        ("verdict", "allowed"),
        ("correlation_id", "00000000000000000000000000000007"),
    ] {
        assert_eq!(lines[0][key], expected, "{text}");
    }
    for (key, expected) in [
        ("level", "WARN"),
        ("subject", "upstream"),
        ("name", "files"),
        ("resource", "[::1]:443"),
        ("verdict", "denied"),
        ("reason", "no rule names it"),
    ] {
        assert_eq!(lines[1][key], expected, "{text}");
    }
    assert!(lines[1]["correlation_id"].is_null(), "{text}");
    let hostile = lines[2]["message"].as_str().unwrap();
    assert!(
        !hostile.contains(&token) && !hostile.contains(['\n', '\u{1b}']),
        "{hostile:?}"
    );
    assert!(hostile.contains("[redacted]"), "{hostile:?}");
    let long = lines[3]["resource"].as_str().unwrap();
    assert_eq!(long.chars().count(), 257, "{long}");
}
