//! Each execution layer alone, around a scripted executor, on a paused clock.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::time::{Instant, advance};
use tool_core::{CallContext, Clock, ErrorKind, Invoke, Layer, Layers, Metadata, Outcome, ToolError};
use tool_runtime::{Deadline, Timeout, TokioClock};
use tool_testkit::{Script, Step, TestTool, call};

const SECOND: Duration = Duration::from_secs(1);

fn context(script: &Script, tool: TestTool) -> CallContext {
    call(tool.build(script.clone()), json!({}), Arc::new(TokioClock::new()))
}

fn is_reply(result: &Result<Outcome, ToolError>) -> bool {
    matches!(result, Ok(Outcome::Reply(_)))
}

#[tokio::test(start_paused = true)]
async fn the_deadline_ends_a_call_that_never_answers() {
    let script = Script::new([Step::Hang(false)]);
    let mut cx = context(&script, TestTool::new("slow").limits(7 * SECOND, 30 * SECOND));
    let start = Instant::now();
    let error = Deadline
        .layer(script.clone())
        .invoke(&mut cx)
        .await
        .expect_err("it hangs");
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(start.elapsed(), 7 * SECOND);
    assert_eq!(script.n_running(), 0, "the call's future is dropped");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_sent_ends_unknown_unless_declared_repeatable() {
    let repeatable = Metadata {
        read_only: Some(true),
        ..Metadata::default()
    };
    for (metadata, expected) in [
        (Metadata::default(), ErrorKind::OutcomeUnknown),
        (repeatable, ErrorKind::Timeout),
    ] {
        let script = Script::new([Step::Hang(true)]);
        let mut cx = context(&script, TestTool::new("slow").metadata(metadata));
        let error = Timeout.layer(script).invoke(&mut cx).await.expect_err("it hangs");
        assert_eq!(error.kind(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn the_callers_deadline_counts_if_it_is_earlier() {
    let script = Script::new([Step::Hang(false)]);
    let mut cx = context(&script, TestTool::new("slow"));
    cx.deadline = Some(cx.clock.now() + 2 * SECOND);
    let start = Instant::now();
    let stack = Layers::outermost(Deadline).then(Timeout).around(script);
    let error = stack.invoke(&mut cx).await.expect_err("it hangs");
    assert_eq!((error.kind(), start.elapsed()), (ErrorKind::Timeout, 2 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_in_the_past_sends_nothing() {
    let script = Script::new([Step::Echo]);
    let mut cx = context(&script, TestTool::new("late"));
    cx.deadline = Some(cx.clock.now() + SECOND);
    advance(2 * SECOND).await;
    let error = Deadline
        .layer(script.clone())
        .invoke(&mut cx)
        .await
        .expect_err("too late");
    assert_eq!((error.kind(), script.n_calls()), (ErrorKind::Timeout, 0));
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_time_passes_both_limits() {
    let script = Script::new([Step::After(4 * SECOND, json!({"ok": true}))]);
    let mut cx = context(&script, TestTool::new("slow").limits(6 * SECOND, 5 * SECOND));
    let stack = Layers::outermost(Deadline).then(Timeout).around(script);
    assert!(is_reply(&stack.invoke(&mut cx).await));
}

#[tokio::test(start_paused = true)]
async fn the_attempt_ends_before_the_call_does() {
    let script = Script::new([Step::Hang(false)]);
    let mut cx = context(&script, TestTool::new("slow").limits(60 * SECOND, 5 * SECOND));
    let start = Instant::now();
    let stack = Layers::outermost(Deadline).then(Timeout).around(script);
    let error = stack.invoke(&mut cx).await.expect_err("it hangs");
    assert_eq!((error.kind(), start.elapsed()), (ErrorKind::Timeout, 5 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn the_clock_is_the_runtimes() {
    let clock = TokioClock::new();
    let start = clock.now();
    advance(3 * SECOND).await;
    assert_eq!(clock.now().since(start), 3 * SECOND);
    assert_eq!(start.since(clock.now()), Duration::ZERO);
}
