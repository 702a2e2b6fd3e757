//! Log lines of calls: start, end, and each failed attempt, one line of fields each.
//!
//! Arguments are logged at level `debug` only, sanitised. Results and secrets are never logged.

use std::{borrow::Cow, time::Duration};

use tool_core::{CallContext, Outcome, ToolError, hide_credentials, hide_fields, sanitize_arguments};
use tool_scan::escape_line;
use tracing::{Level, Span, debug, enabled, field, info, span, warn};

use crate::{SpanKind, conventions, milliseconds::milliseconds};

/// Target of log lines and their spans, which operators filter by.
const TARGET: &str = "tool_observe::log";

/// Returns the `tracing` span of a call, which adds its fields to all lines that are logged during the call.
pub(crate) fn call_span(cx: &CallContext) -> Span {
    span!(
        target: TARGET,
        Level::INFO,
        "call",
        tool = %cx.target.name(),
        principal = %cx.origin.caller.principal,
        tenant = %cx.origin.caller.tenant,
        correlation_id = %cx.correlation_id,
        trace_id = cx.trace.as_ref().map(|trace| field::display(Hex(trace.trace_id))),
    )
}

/// Returns the `tracing` span of an attempt.
pub(crate) fn attempt_span(cx: &CallContext) -> Span {
    span!(target: TARGET, Level::DEBUG, "attempt", number = cx.attempt)
}

/// Logs the start of a call.
pub(crate) fn start(cx: &CallContext) {
    if enabled!(target: TARGET, Level::DEBUG) {
        debug!(
            target: TARGET,
            method = conventions::method(&cx.target),
            n_bytes = cx.arguments.raw().len(),
            input = %sanitize_arguments(&hide_fields(cx.arguments.raw(), cx.tool().settings().redacted_fields())),
            "started"
        );
    } else {
        info!(
            target: TARGET,
            method = conventions::method(&cx.target),
            n_bytes = cx.arguments.raw().len(),
            "started"
        );
    }
}

/// Returns `true` if [`end`] writes a line for this result.
pub(crate) fn has_end(kind: SpanKind, result: Option<&Result<Outcome, ToolError>>) -> bool {
    match (kind, result) {
        (SpanKind::Call, Some(Err(_))) => enabled!(target: TARGET, Level::WARN),
        (SpanKind::Call, _) => enabled!(target: TARGET, Level::INFO),
        (SpanKind::Attempt, Some(Err(_))) => enabled!(target: TARGET, Level::DEBUG),
        (SpanKind::Attempt, _) => false,
    }
}

/// Logs the end of a call or an attempt. Failed calls are logged at level `warn`, other calls at `info`, and failed
/// attempts at `debug`, since the call may still succeed.
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
            info!(target: TARGET, duration_ms, attempts, outcome, n_bytes, "{message}");
        }
        Some(Ok(_)) => info!(target: TARGET, duration_ms, attempts, outcome, "not finished yet"),
        Some(Err(error)) => warn!(
            target: TARGET,
            // The span has these fields as well, but it is disabled at the level at which failures are usually read.
            tool = %cx.target.name(),
            correlation_id = %cx.correlation_id,
            duration_ms,
            attempts,
            kind = %error.kind(),
            may_have_run = error.may_have_run().then_some(true),
            "failed: {}",
            loggable(error)
        ),
        None => {
            let dispatch = cx.dispatch().state();
            info!(target: TARGET, duration_ms, attempts, outcome, ?dispatch, "cancelled");
        }
    }
}

fn failed_attempt(cx: &CallContext, error: &ToolError, elapsed: Duration) {
    debug!(
        target: TARGET,
        attempt = cx.attempt,
        duration_ms = milliseconds(elapsed),
        kind = %error.kind(),
        may_have_run = cx.may_have_run().then_some(true),
        dispatch = ?cx.dispatch().state(),
        "attempt failed: {}",
        loggable(error)
    );
}

/// Returns an error's text on one line, without values that a caller sent and without credentials. It may contain text of
/// an upstream.
pub(crate) fn loggable(error: &ToolError) -> Cow<'_, str> {
    match hide_credentials(error.log_message().unwrap_or(error.message())) {
        Cow::Borrowed(text) => escape_line(text),
        Cow::Owned(text) => Cow::Owned(escape_line(&text).into_owned()),
    }
}

/// Trace id, displayed as 32 hexadecimal digits.
struct Hex(u128);

impl std::fmt::Display for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
