use tool_core::{CallContext, Invoke, Layer, NamedLayer, Outcome, Scope, ToolError};

use super::{Breakers, permits::Circuits};

/// Refuses calls at once while a circuit is open, before they enter a queue. It takes no permit and counts nothing.
///
/// # Order
/// Outside the queues; [`BreakerLayer`](super::BreakerLayer) stands inside them.
#[derive(Debug, Clone, Copy, Default)]
pub struct BreakerPeekLayer;

/// Service of [`BreakerPeekLayer`].
#[derive(Debug, Clone)]
pub struct BreakerPeek<S> {
    inner: S,
}

impl NamedLayer for BreakerPeekLayer {
    const NAME: &'static str = "breaker peek";
}

impl<S> Layer<S> for BreakerPeekLayer {
    type Invoke = BreakerPeek<S>;

    fn layer(self, inner: S) -> BreakerPeek<S> {
        BreakerPeek { inner }
    }
}

impl<S: Invoke> Invoke for BreakerPeek<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        if cx.tool().settings().get::<Breakers>().is_some() {
            let circuits = Circuits::for_call(cx);
            let now = cx.clock.now();
            circuits
                .tool
                .peek(now)
                .map_err(|open| open.refuse(cx, Scope::Tool))?;
            if let Some(upstream) = &circuits.upstream {
                upstream
                    .peek(now)
                    .map_err(|open| open.refuse(cx, Scope::Upstream))?;
            }
        }
        self.inner.invoke(cx).await
    }
}
