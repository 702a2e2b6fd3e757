#[cfg(feature = "otel")]
use opentelemetry::trace::FutureExt;
use tool_core::{CallContext, Event, Instant, Invoke, Observers, Outcome, ToolError};

use crate::{
    log,
    tracer::{Begun, SpanKind, Tracer},
};

/// Tells how a call or an attempt ended, also when nobody waits for the end: dropping it without [`Watched::end`] tells
/// of one that was cancelled.
pub(crate) struct Watched<'a> {
    pub(crate) cx: &'a mut CallContext,
    observers: &'a Observers,
    span: Option<(&'a Tracer, Begun)>,
    kind: SpanKind,
    start: Instant,
    over: bool,
}

impl<'a> Watched<'a> {
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
            over: false,
        }
    }

    /// Runs the call or the attempt, with its span as the active one where the host's SDK made it.
    pub(crate) async fn run<S: Invoke>(&mut self, inner: &S) -> Result<Outcome, ToolError> {
        #[cfg(feature = "otel")]
        if let Some(context) = self.span.as_ref().and_then(|(_, begun)| begun.api_context()) {
            let context = context.clone();
            return inner.invoke(self.cx).with_context(context).await;
        }
        inner.invoke(self.cx).await
    }

    /// Logs the start, in the context of the span.
    pub(crate) fn log_start(&self) {
        #[cfg(feature = "otel")]
        let _active = self.attach();
        log::start(self.cx);
    }

    /// Makes the span of the host's SDK the active one on this thread, so that log records have its ids.
    #[cfg(feature = "otel")]
    fn attach(&self) -> Option<opentelemetry::ContextGuard> {
        let context = self.span.as_ref()?.1.api_context()?;
        Some(context.clone().attach())
    }

    pub(crate) fn end(mut self, result: &Result<Outcome, ToolError>) {
        self.over = true;
        self.tell(Some(result));
    }

    fn tell(&mut self, result: Option<&Result<Outcome, ToolError>>) {
        let is_logged = log::has_end(self.kind, result);
        let is_recorded = self.span.as_ref().is_some_and(|(_, begun)| begun.is_recorded());
        // Looking at the clock is a good part of what watching costs: not for an end that nobody asks about.
        let at = if is_logged || is_recorded || !self.observers.is_empty() {
            self.cx.clock.now()
        } else {
            self.start
        };
        let elapsed = at.since(self.start);
        if is_logged {
            #[cfg(feature = "otel")]
            let _active = self.attach();
            log::end(self.cx, self.kind, result, elapsed);
        }
        if !self.observers.is_empty() {
            let cx = &*self.cx;
            self.observers.emit(&match self.kind {
                SpanKind::Call => Event::CallFinished { cx, result, elapsed },
                SpanKind::Attempt => Event::AttemptFinished {
                    cx,
                    result,
                    elapsed,
                    at,
                },
            });
        }
        if let Some((tracer, begun)) = &mut self.span {
            tracer.end(self.cx, begun, self.kind, elapsed, result);
        }
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.tell(None);
        }
    }
}
