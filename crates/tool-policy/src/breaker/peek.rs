use tool_core::{CallContext, Instant, Invoke, Layer, NamedLayer, Outcome, Scope, Tool, ToolError};

use super::{
    BreakerLayer, CircuitOpen,
    permits::{Circuits, enabled},
};

/// Refuses calls at once while a circuit is open, before they enter a queue. It takes no permit and counts nothing.
///
/// Does nothing alone: a [`BreakerLayer`] in the same stack opens the circuits, so it is created for one. Like that layer, it does
/// nothing for a tool until its `Settings` contain [`Breakers`](crate::Breakers).
///
/// # Order
/// Outside the queues; [`BreakerLayer`] stands inside them.
///
/// # Examples
/// ```
/// use tool_core::{Invoke, Layers};
/// use tool_policy::{BreakerLayer, BreakerPeekLayer, RateLimitLayer};
///
/// fn stack<S: Invoke>(executor: S) -> impl Invoke {
///     let breaker = BreakerLayer::default();
///     Layers::outermost(BreakerPeekLayer::for_breaker(&breaker))
///         .then(RateLimitLayer::new())
///         .then(breaker)
///         .around(executor)
/// }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct BreakerPeekLayer {
    _of_breaker: (),
}

/// Service of [`BreakerPeekLayer`].
#[derive(Debug, Clone)]
pub struct BreakerPeek<S> {
    inner: S,
}

impl BreakerPeekLayer {
    /// Creates a layer that peeks at the circuits which this breaker opens.
    #[must_use]
    pub const fn for_breaker(_breaker: &BreakerLayer) -> Self {
        Self { _of_breaker: () }
    }

    /// Checks that a call of a tool could pass its circuits now, without making one.
    ///
    /// # Errors
    /// The circuit that lets no call pass, if the tool has breakers: its own or that of its upstream.
    pub fn peek(tool: &Tool, now: Instant) -> Result<(), (Scope, CircuitOpen)> {
        if enabled(tool).is_none() {
            return Ok(());
        }
        let circuits = Circuits::of_tool(tool);
        circuits.tool.peek(now).map_err(|open| (Scope::Tool, open))?;
        match &circuits.upstream {
            Some(upstream) => upstream.peek(now).map_err(|open| (Scope::Upstream, open)),
            None => Ok(()),
        }
    }
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
        BreakerPeekLayer::peek(cx.tool(), cx.clock.now()).map_err(|(scope, open)| open.refuse(cx, scope))?;
        self.inner.invoke(cx).await
    }
}
