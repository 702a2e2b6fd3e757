use tool_core::{CallContext, Invoke, Layer, Observers, Outcome, ToolError};

use crate::watch::{Scope, Watched};

/// Begins an attempt, with a dispatch mark of its own, and tells observers how it ended.
///
/// # Order
/// Inside whatever repeats an attempt, outside whatever bounds one.
#[derive(Debug, Clone, Default)]
pub struct WatchAttempt {
    observers: Observers,
}

/// The layer of [`WatchAttempt`].
#[derive(Debug, Clone)]
pub struct WatchingAttempt<S> {
    observers: Observers,
    inner: S,
}

impl WatchAttempt {
    /// A layer that tells these observers.
    #[must_use]
    pub fn new(observers: Observers) -> Self {
        Self { observers }
    }
}

impl<S> Layer<S> for WatchAttempt {
    type Invoke = WatchingAttempt<S>;

    fn layer(self, inner: S) -> WatchingAttempt<S> {
        WatchingAttempt {
            observers: self.observers,
            inner,
        }
    }
}

impl<S: Invoke> Invoke for WatchingAttempt<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        cx.next_attempt();
        let attempt = cx.attempt;
        cx.note("attempt", || format!("attempt {attempt}"));
        if self.observers.is_empty() {
            return self.inner.invoke(cx).await;
        }
        let watched = Watched::begin(cx, &self.observers, Scope::Attempt);
        let result = self.inner.invoke(watched.cx).await;
        watched.end(&result);
        result
    }
}
