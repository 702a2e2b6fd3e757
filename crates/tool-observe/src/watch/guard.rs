#[cfg(feature = "otel")]
use opentelemetry::trace::FutureExt;
use tool_core::{CallContext, Event, Instant, Invoke, Observers, Outcome, ToolError};

use crate::{SpanKind, Tracer, logs::call_log, spans::StartedSpan};

/// Guard that reports the end of a call or an attempt. Dropping it without [`WatchGuard::end`] reports a cancellation.
pub(crate) struct WatchGuard<'a> {
    pub(crate) cx: &'a mut CallContext,
    observers: &'a Observers,
    span: Option<(&'a Tracer, StartedSpan)>,
    kind: SpanKind,
    start: Instant,
    is_reported: bool,
}

impl<'a> WatchGuard<'a> {
    pub(crate) fn begin(
        cx: &'a mut CallContext,
        observers: &'a Observers,
        tracer: Option<&'a Tracer>,
        kind: SpanKind,
    ) -> Self {
        let start = cx.clock.now();
        let span = tracer.map(|tracer| (tracer, tracer.begin(cx, kind, start)));
        Self {
            cx,
            observers,
            span,
            kind,
            start,
            is_reported: false,
        }
    }

    /// Runs the call or the attempt. A span of the host's SDK is the active span meanwhile.
    pub(crate) async fn run<S: Invoke>(&mut self, inner: &S) -> Result<Outcome, ToolError> {
        #[cfg(feature = "otel")]
        if let Some(context) = self.span.as_ref().and_then(|(_, span)| span.api_context()) {
            let context = context.clone();
            return inner.invoke(self.cx).with_context(context).await;
        }
        inner.invoke(self.cx).await
    }

    /// Logs the start, in the context of the span.
    pub(crate) fn log_start(&self) {
        #[cfg(feature = "otel")]
        let _active = self.attach();
        call_log::start(self.cx);
    }

    /// Makes the span of the host's SDK the active span of this thread, so that log records carry its ids.
    #[cfg(feature = "otel")]
    fn attach(&self) -> Option<opentelemetry::ContextGuard> {
        let context = self.span.as_ref()?.1.api_context()?;
        Some(context.clone().attach())
    }

    pub(crate) fn end(mut self, result: &Result<Outcome, ToolError>) {
        self.is_reported = true;
        self.report(Some(result));
    }

    fn report(&mut self, result: Option<&Result<Outcome, ToolError>>) {
        let is_logged = call_log::has_end(self.kind, result);
        let is_recorded = self.span.as_ref().is_some_and(|(_, span)| span.is_recorded());
        // Reading the clock is a large part of the cost of watching, so it is skipped if no one uses the end time.
        let at = if is_logged || is_recorded || !self.observers.is_empty() {
            self.cx.clock.now()
        } else {
            self.start
        };
        let elapsed = at.since(self.start);
        if is_logged {
            #[cfg(feature = "otel")]
            let _active = self.attach();
            call_log::end(self.cx, self.kind, result, elapsed);
        }
        if !self.observers.is_empty() {
            let cx = &*self.cx;
            self.observers.emit(&match self.kind {
                SpanKind::Call => Event::call_finished(cx, result, elapsed),
                SpanKind::Attempt => Event::attempt_finished(cx, result, elapsed, at),
            });
        }
        if let Some((tracer, span)) = &mut self.span {
            tracer.end(self.cx, span, self.kind, elapsed, result);
        }
    }
}

impl Drop for WatchGuard<'_> {
    fn drop(&mut self) {
        if !self.is_reported {
            self.report(None);
        }
    }
}
