use tool_core::{
    CallContext, CorrelationId, Event, Invoke, Layer, NamedLayer, Observers, Outcome, ToolError,
};
use tracing::Instrument;
use uuid::Uuid;

use super::guard::WatchGuard;
use crate::{SpanKind, Tracer, logs::call_log};

/// Watches whole calls: opens the call's span, logs its start and end and reports both to observers.
///
/// Acts on every call. It gives its observers to the call, so that all inner layers report their events to them, and a call
/// without a correlation id gets a random one. Only [`WatchAttemptLayer`](crate::WatchAttemptLayer) reports attempts.
///
/// # Order
/// Outermost, so that it sees everything that happens to a call.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use tool_core::{Observe, Observers};
/// use tool_observe::{Metrics, WatchLayer};
///
/// let metrics = Arc::new(Metrics::new());
/// let observers: Observers = [metrics.clone() as Arc<dyn Observe>].into_iter().collect();
/// let layer = WatchLayer::new(observers);
/// # let _ = layer;
/// ```
#[derive(Debug, Clone, Default)]
pub struct WatchLayer {
    observers: Observers,
    tracer: Option<Tracer>,
}

/// Service of [`WatchLayer`].
#[derive(Debug, Clone)]
pub struct Watch<S> {
    settings: WatchLayer,
    inner: S,
}

impl WatchLayer {
    /// Creates a layer that notifies these observers.
    #[must_use]
    pub fn new(observers: Observers) -> Self {
        Self {
            observers,
            tracer: None,
        }
    }

    /// Sets the tracer that makes the spans of calls.
    #[must_use]
    pub fn with_tracer(mut self, tracer: Option<Tracer>) -> Self {
        self.tracer = tracer;
        self
    }
}

impl NamedLayer for WatchLayer {
    const NAME: &'static str = "watch";
}

impl<S> Layer<S> for WatchLayer {
    type Invoke = Watch<S>;

    fn layer(self, inner: S) -> Watch<S> {
        Watch {
            settings: self,
            inner,
        }
    }
}

impl<S: Invoke> Invoke for Watch<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let silent = WatchLayer::default();
        let WatchLayer { observers, tracer } = if cx.is_dry_run() { &silent } else { &self.settings };
        cx.observers = observers.clone();
        if cx.correlation_id == CorrelationId(0) {
            // Whoever made the context gave it none, and all records of the call are found by it.
            cx.correlation_id = CorrelationId(Uuid::new_v4().as_u128());
        }
        observers.emit(&Event::call_started(cx));
        let correlation_id = cx.correlation_id;
        cx.explain(WatchLayer::NAME, || format!("correlation id {correlation_id}"));
        let mut guard = WatchGuard::begin(cx, observers, tracer.as_ref(), SpanKind::Call);
        let span = call_log::call_span(guard.cx);
        let result = if span.is_disabled() {
            guard.run(&self.inner).await
        } else {
            span.in_scope(|| guard.log_start());
            guard.run(&self.inner).instrument(span.clone()).await
        };
        span.in_scope(|| guard.end(&result));
        result
    }
}
