//! What is logged of a call: its start, its end, and each failed attempt, one line of fields each.
//!
//! Arguments are logged at the level `debug` alone, sanitised; results and secrets never are.

use std::{borrow::Cow, error::Error, time::Duration};

use tool_core::{CallContext, CheckError, Outcome, ToolError, hide_credentials, hide_fields, sanitised};
use tool_scan::escape_line;
use tracing::{Level, Span, debug, enabled, field, info, span, warn};

use crate::{conventions, milliseconds::milliseconds, tracer::SpanKind};

/// The span of a call, for whatever else is logged while it runs.
pub(crate) fn call_span(cx: &CallContext) -> Span {
    span!(
        Level::INFO,
        "call",
        tool = %cx.target.name(),
        principal = %cx.origin.caller.principal,
        tenant = %cx.origin.caller.tenant,
        correlation_id = %cx.correlation_id,
        trace_id = cx.trace.as_ref().map(|trace| field::display(Hex(trace.trace_id))),
    )
}

/// The span of an attempt.
pub(crate) fn attempt_span(cx: &CallContext) -> Span {
    span!(Level::DEBUG, "attempt", number = cx.attempt)
}

/// Logs that a call begins.
pub(crate) fn start(cx: &CallContext) {
    if enabled!(Level::DEBUG) {
        debug!(
            method = conventions::method(&cx.target),
            n_bytes = cx.arguments.raw().len(),
            input = %sanitised(&hide_fields(cx.arguments.raw(), cx.tool().settings().redacted_fields())),
            "started"
        );
    } else {
        info!(
            method = conventions::method(&cx.target),
            n_bytes = cx.arguments.raw().len(),
            "started"
        );
    }
}

/// Whether [`end`] has anything to say of such an end.
pub(crate) fn has_end(kind: SpanKind, result: Option<&Result<Outcome, ToolError>>) -> bool {
    match (kind, result) {
        (SpanKind::Call, Some(Err(_))) => enabled!(Level::WARN),
        (SpanKind::Call, _) => enabled!(Level::INFO),
        (SpanKind::Attempt, Some(Err(_))) => enabled!(Level::DEBUG),
        (SpanKind::Attempt, _) => false,
    }
}

/// Logs an end: of a call the successes for those who want to see everything and the failures for whoever runs it, of
/// an attempt the failures, by which it is not known yet whether the call fails.
pub(crate) fn end(
    cx: &CallContext,
    kind: SpanKind,
    result: Option<&Result<Outcome, ToolError>>,
    elapsed: Duration,
) {
    match (kind, result) {
        (SpanKind::Call, _) => call_end(cx, result, elapsed),
        (SpanKind::Attempt, Some(Err(error))) => failed_attempt(cx, error, elapsed),
        (SpanKind::Attempt, _) => {}
    }
}

fn call_end(cx: &CallContext, result: Option<&Result<Outcome, ToolError>>, elapsed: Duration) {
    let attempts = cx.n_begun();
    let duration_ms = milliseconds(elapsed);
    let outcome = conventions::outcome(result);
    match result {
        Some(Ok(Outcome::Reply(reply))) => {
            let n_bytes = reply.raw().len();
            let message = if reply.is_error {
                "the tool reports a failure"
            } else {
                "answered"
            };
            info!(duration_ms, attempts, outcome, n_bytes, "{message}");
        }
        Some(Ok(_)) => info!(duration_ms, attempts, outcome, "not finished yet"),
        Some(Err(error)) => warn!(
            // The span has these as well, but it is not there at the level at which failures are usually read.
            tool = %cx.target.name(),
            correlation_id = %cx.correlation_id,
            duration_ms,
            attempts,
            kind = %error.kind(),
            may_have_run = error.may_have_run().then_some(true),
            "failed: {}",
            loggable(error)
        ),
        None => info!(duration_ms, attempts, outcome, dispatch = ?cx.dispatch().state(), "cancelled"),
    }
}

fn failed_attempt(cx: &CallContext, error: &ToolError, elapsed: Duration) {
    debug!(
        attempt = cx.attempt,
        duration_ms = milliseconds(elapsed),
        kind = %error.kind(),
        may_have_run = cx.may_have_run().then_some(true),
        dispatch = ?cx.dispatch().state(),
        "attempt failed: {}",
        loggable(error)
    );
}

/// An error's text without the values that a caller sent and without credentials, on one line: it may hold words of an
/// upstream.
pub(crate) fn loggable(error: &ToolError) -> Cow<'_, str> {
    let text = match error.source().and_then(|source| source.downcast_ref()) {
        Some(CheckError::Mismatch(mismatch)) => Cow::Owned(mismatch.masked()),
        _ => hide_credentials(error.log_message().unwrap_or(error.message())),
    };
    match text {
        Cow::Borrowed(text) => escape_line(text),
        Cow::Owned(text) => Cow::Owned(escape_line(&text).into_owned()),
    }
}

/// An id in the digits that traces are written in.
struct Hex(u128);

impl std::fmt::Display for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
