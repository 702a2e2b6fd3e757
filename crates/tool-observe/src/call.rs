use tool_core::{CallContext, Event, Invoke, Layer, Observers, Outcome, ToolError};
use tracing::Instrument;

use crate::{
    log,
    tracer::{SpanKind, Tracer},
    watch::Watched,
};

/// Watches whole calls: opens the call's span, logs its start and end and tells observers of them.
///
/// # Order
/// Outermost, so that nothing happens to a call unseen.
#[derive(Debug, Clone, Default)]
pub struct WatchLayer {
    observers: Observers,
    tracer: Option<Tracer>,
}

/// The layer of [`WatchLayer`].
#[derive(Debug, Clone)]
pub struct Watch<S> {
    settings: WatchLayer,
    inner: S,
}

impl WatchLayer {
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
        let nobody = WatchLayer::default();
        let WatchLayer { observers, tracer } = if cx.is_dry_run() { &nobody } else { &self.settings };
        cx.observers = observers.clone();
        observers.emit(&Event::CallStarted { cx });
        let correlation_id = cx.correlation_id;
        cx.explain("watch", || format!("correlation id {correlation_id}"));
        let mut watched = Watched::begin(cx, observers, tracer.as_ref(), SpanKind::Call);
        let span = log::call_span(watched.cx);
        let result = if span.is_disabled() {
            watched.run(&self.inner).await
        } else {
            span.in_scope(|| watched.log_start());
            watched.run(&self.inner).instrument(span.clone()).await
        };
        span.in_scope(|| watched.end(&result));
        result
    }
}
