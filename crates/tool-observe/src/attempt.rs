use tool_core::{CallContext, Invoke, Layer, Observers, Outcome, ToolError};
use tracing::Instrument;

use crate::{
    log,
    tracer::{SpanKind, Tracer},
    watch::Watched,
};

/// Tells observers of each attempt that is made, and how it ended. Starts one, with a dispatch mark of its own, if no layer
/// around did.
///
/// # Order
/// Inside whatever repeats an attempt, outside whatever bounds one.
#[derive(Debug, Clone, Default)]
pub struct WatchAttemptLayer {
    observers: Observers,
    tracer: Option<Tracer>,
}

/// The layer of [`WatchAttemptLayer`].
#[derive(Debug, Clone)]
pub struct WatchAttempt<S> {
    settings: WatchAttemptLayer,
    inner: S,
}

impl WatchAttemptLayer {
    /// A layer that tells these observers.
    #[must_use]
    pub fn new(observers: Observers) -> Self {
        Self {
            observers,
            tracer: None,
        }
    }

    /// The same layer, which also has spans made.
    #[must_use]
    pub fn tracer(mut self, tracer: Option<Tracer>) -> Self {
        self.tracer = tracer;
        self
    }
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
        cx.explain("attempt", || format!("attempt {attempt}"));
        let nobody = WatchAttemptLayer::default();
        let WatchAttemptLayer { observers, tracer } = if cx.is_dry_run() { &nobody } else { &self.settings };
        let span = log::attempt_span(cx);
        if observers.is_empty() && tracer.is_none() && span.is_disabled() {
            return self.inner.invoke(cx).await;
        }
        let mut watched = Watched::begin(cx, observers, tracer.as_ref(), SpanKind::Attempt);
        let result = if span.is_disabled() {
            watched.run(&self.inner).await
        } else {
            watched.run(&self.inner).instrument(span.clone()).await
        };
        span.in_scope(|| watched.end(&result));
        result
    }
}
