//! Events that observers receive, also for cancelled calls.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alerts;
mod alone;
mod arguments;
mod health;
mod logs;
mod metrics;
#[cfg(feature = "otel")]
mod otel;
#[cfg(feature = "otel")]
mod otel_metrics;

mod spans;
mod usage;
mod webhook;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use tokio::time::{sleep, timeout};
use tool_core::{CallContext, ErrorKind, Event, Invoke, Layers, Observe, Observers, ToolError};
use tool_observe::{WatchAttemptLayer, WatchLayer};
use tool_runtime::TokioClock;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

/// Observer that records a line of text for each event.
#[derive(Default)]
struct EventRecorder(Mutex<Vec<String>>);

impl Observe for EventRecorder {
    fn observe(&self, event: &Event<'_>) {
        let line = match event {
            Event::CallStarted { cx, .. } => format!("{} started", cx.tool().name()),
            Event::CallFinished {
                cx, result, elapsed, ..
            } => {
                format!(
                    "call {} after {elapsed:?} and {} attempts",
                    ending(*result),
                    cx.attempt
                )
            }
            Event::AttemptFinished {
                cx, result, elapsed, ..
            } => {
                format!("attempt {} {} after {elapsed:?}", cx.attempt, ending(*result))
            }
            _ => unreachable!("no layer here raises an alert"),
        };
        self.0.lock().expect("no test panics with it").push(line);
    }
}

fn ending(result: Option<&Result<tool_core::Outcome, ToolError>>) -> String {
    match result {
        Some(Ok(_)) => "ok".to_owned(),
        Some(Err(error)) => error.kind().to_string(),
        None => "dropped".to_owned(),
    }
}

fn watched(script: &ScriptedExecutor) -> (impl Invoke, Arc<EventRecorder>, CallContext) {
    let recorder = Arc::new(EventRecorder::default());
    let observers: Observers = [recorder.clone() as Arc<dyn Observe>].into_iter().collect();
    let stack = Layers::outermost(WatchLayer::new(observers.clone()))
        .then(WatchAttemptLayer::new(observers))
        .around(script.clone());
    let cx = call(
        TestTool::new("echo").build(script.clone()),
        json!({}),
        Arc::new(TokioClock::new()),
    );
    (stack, recorder, cx)
}

#[tokio::test(start_paused = true)]
async fn a_call_is_told_from_start_to_end() {
    let script = ScriptedExecutor::new([ScriptStep::After(Duration::from_secs(2), json!(1))]);
    let (stack, recorder, mut cx) = watched(&script);
    stack.invoke(&mut cx).await.unwrap();
    assert_eq!(
        *recorder.0.lock().unwrap(),
        [
            "echo started",
            "attempt 1 ok after 2s",
            "call ok after 2s and 1 attempts"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_told_with_its_kind() {
    let script = ScriptedExecutor::new([ScriptStep::Fail(ToolError::new(ErrorKind::Unavailable, "gone"))]);
    let (stack, recorder, mut cx) = watched(&script);
    stack.invoke(&mut cx).await.unwrap_err();
    assert_eq!(
        *recorder.0.lock().unwrap(),
        [
            "echo started",
            "attempt 1 unavailable after 0ns",
            "call unavailable after 0ns and 1 attempts"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_told_as_well() {
    let script = ScriptedExecutor::new([ScriptStep::Hang(true)]);
    let (stack, recorder, mut cx) = watched(&script);
    timeout(Duration::from_secs(3), stack.invoke(&mut cx))
        .await
        .unwrap_err();
    assert_eq!(
        *recorder.0.lock().unwrap(),
        [
            "echo started",
            "attempt 1 dropped after 3s",
            "call dropped after 3s and 1 attempts"
        ]
    );
    sleep(Duration::from_secs(60)).await;
    assert_eq!(recorder.0.lock().unwrap().len(), 3, "nothing is told twice");
}
