use std::{borrow::Cow, error::Error, time::Duration};

use tool_core::{CallContext, CheckError, Event, Invoke, Layer, Observers, Outcome, ToolError};
use tracing::{Instrument, Level, Span, debug, enabled, field, info, span, warn};

use crate::watch::{Scope, Watched};

/// Watches whole calls: opens the call's span, tells observers of its start and end.
///
/// # Order
/// Outermost, so that nothing happens to a call unseen.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    observers: Observers,
}

/// The layer of [`Watch`].
#[derive(Debug, Clone)]
pub struct Watching<S> {
    observers: Observers,
    inner: S,
}

impl Watch {
    /// A layer that tells these observers.
    #[must_use]
    pub fn new(observers: Observers) -> Self {
        Self { observers }
    }
}

impl<S> Layer<S> for Watch {
    type Invoke = Watching<S>;

    fn layer(self, inner: S) -> Watching<S> {
        Watching {
            observers: self.observers,
            inner,
        }
    }
}

impl<S: Invoke> Invoke for Watching<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let span = call_span(cx);
        cx.observers = self.observers.clone();
        self.observers.tell(&Event::CallStarted { cx });
        let correlation_id = cx.correlation_id;
        cx.note("watch", || format!("correlation id {correlation_id}"));
        let watched = Watched::begin(cx, &self.observers, Scope::Call);
        let result = if span.is_disabled() {
            self.inner.invoke(watched.cx).await
        } else {
            self.inner.invoke(watched.cx).instrument(span.clone()).await
        };
        span.in_scope(|| watched.end(&result));
        result
    }
}

/// The one span of a call. Arguments and results are never recorded: they may hold anything.
fn call_span(cx: &CallContext) -> Span {
    span!(
        Level::INFO,
        "call",
        tool = %cx.tool().name(),
        principal = %cx.caller.principal,
        tenant = %cx.caller.tenant,
        correlation_id = %cx.correlation_id,
        traceparent = cx.trace.as_ref().map(|trace| field::display(&trace.traceparent)),
    )
}

/// Whether [`log_end`] has anything to say of such an end.
pub(crate) fn logs_end(result: Option<&Result<Outcome, ToolError>>) -> bool {
    match result {
        Some(Err(_)) => enabled!(Level::WARN),
        _ => enabled!(Level::INFO),
    }
}

/// Logs how a call ended: success for those who want to see everything, failures for whoever runs it.
pub(crate) fn log_end(cx: &CallContext, result: Option<&Result<Outcome, ToolError>>, elapsed: Duration) {
    let attempts = cx.attempt;
    match result {
        Some(Ok(Outcome::Reply(reply))) if reply.is_error => {
            info!(
                ?elapsed,
                attempts,
                n_bytes = reply.raw().len(),
                "the tool reports a failure"
            );
        }
        Some(Ok(Outcome::Reply(reply))) => info!(?elapsed, attempts, n_bytes = reply.raw().len(), "answered"),
        Some(Ok(_)) => debug!(?elapsed, attempts, "not finished yet"),
        Some(Err(error)) => warn!(
            // The span has these as well, but it is not there at the level at which failures are usually read.
            tool = %cx.tool().name(),
            correlation_id = %cx.correlation_id,
            ?elapsed,
            attempts,
            kind = %error.kind(),
            "failed: {}",
            loggable(error)
        ),
        None => info!(?elapsed, attempts, dispatch = ?cx.dispatch().state(), "cancelled"),
    }
}

/// An error's text without the values that a caller sent.
fn loggable(error: &ToolError) -> Cow<'_, str> {
    match error.source().and_then(|source| source.downcast_ref()) {
        Some(CheckError::Mismatch(mismatch)) => Cow::Owned(mismatch.masked()),
        _ => Cow::Borrowed(error.message()),
    }
}
