use tool_core::{CallContext, Invoke, Layer, NamedLayer, Observers, Outcome, ToolError};
use tracing::Instrument;

use super::guard::WatchGuard;
use crate::{SpanKind, Tracer, logs::call_log};

/// Reports each attempt and its result to observers. Starts an attempt with a dispatch state of its own if no outer layer
/// did.
///
/// Acts on every attempt, with the observers that it was created with. Only [`WatchLayer`](crate::WatchLayer) reports whole calls.
///
/// # Order
/// Inside all layers that repeat an attempt, outside those that limit a single one.
///
/// # Examples
///
/// ```
/// use tool_core::Observers;
/// use tool_observe::WatchAttemptLayer;
///
/// let layer = WatchAttemptLayer::new(Observers::default()).with_tracer(None);
/// # let _ = layer;
/// ```
#[derive(Debug, Clone, Default)]
pub struct WatchAttemptLayer {
    observers: Observers,
    tracer: Option<Tracer>,
}

/// Service of [`WatchAttemptLayer`].
#[derive(Debug, Clone)]
pub struct WatchAttempt<S> {
    settings: WatchAttemptLayer,
    inner: S,
}

impl WatchAttemptLayer {
    /// Creates a layer that notifies these observers.
    #[must_use]
    pub fn new(observers: Observers) -> Self {
        Self {
            observers,
            tracer: None,
        }
    }

    /// Sets the tracer that makes the spans of attempts.
    #[must_use]
    pub fn with_tracer(mut self, tracer: Option<Tracer>) -> Self {
        self.tracer = tracer;
        self
    }
}

impl NamedLayer for WatchAttemptLayer {
    const NAME: &'static str = "attempt";
}

impl<S> Layer<S> for WatchAttemptLayer {
    type Invoke = WatchAttempt<S>;

    fn layer(self, inner: S) -> WatchAttempt<S> {
        WatchAttempt {
            settings: self,
            inner,
        }
    }
}

impl<S: Invoke> Invoke for WatchAttempt<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        cx.begin_attempt();
        let attempt = cx.attempt;
        cx.explain(WatchAttemptLayer::NAME, || format!("attempt {attempt}"));
        let silent = WatchAttemptLayer::default();
        let WatchAttemptLayer { observers, tracer } = if cx.is_dry_run() { &silent } else { &self.settings };
        let span = call_log::attempt_span(cx);
        if observers.is_empty() && tracer.is_none() && span.is_disabled() {
            return self.inner.invoke(cx).await;
        }
        let mut guard = WatchGuard::begin(cx, observers, tracer.as_ref(), SpanKind::Attempt);
        let result = if span.is_disabled() {
            guard.run(&self.inner).await
        } else {
            guard.run(&self.inner).instrument(span.clone()).await
        };
        span.in_scope(|| guard.end(&result));
        result
    }
}
