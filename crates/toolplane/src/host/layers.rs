//! Layers of the host program.

use std::{fmt, sync::Arc};

use futures_util::future::Either;
use tool_core::{CallContext, DynInvoke, Invoke, Layer, NamedLayer, Outcome, ToolError};

/// Place in the stack for a layer of the host program: see [`Builder::layer`](crate::Builder::layer).
///
/// Both places are for calls of every kind: tools of every executor and of every server, prompts, resources, completions and
/// requests about tasks; see [`Target`](tool_core::Target). A call of a fallback tool passes them as a call of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Place {
    /// Around a whole call, inside of admission and validation: the caller may make the call, and its arguments are valid.
    /// Outside of idempotency, quotas, approvals, fallbacks, the cache and retries: once for each call, whatever answers it.
    Call,
    /// Around the backend, once for each attempt, so for each retry and each hedged attempt. Not for answers of the cache.
    /// Inside of the timeout, redaction and result validation: time that the layer takes counts for the attempt, secrets in
    /// whatever it adds are hidden, and a result that it changes is checked.
    Attempt,
}

impl Place {
    /// All places, outermost first.
    pub const ALL: &'static [Self] = &[Self::Call, Self::Attempt];

    /// Returns the name of the place among the [`LAYERS`](crate::LAYERS).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Call => CallLayers::NAME,
            Self::Attempt => AttemptLayers::NAME,
        }
    }
}

/// Wraps the services inside a layer.
type Wrap = Box<dyn FnOnce(Arc<dyn DynInvoke>) -> Arc<dyn DynInvoke> + Send + Sync>;

/// Layers of the host program at one place, outermost first.
#[derive(Default)]
struct HostLayers(Vec<Wrap>);

/// Layers at [`Place::Call`].
#[derive(Debug, Default)]
pub(crate) struct CallLayers(HostLayers);

/// Layers at [`Place::Attempt`].
#[derive(Debug, Default)]
pub(crate) struct AttemptLayers(HostLayers);

/// Service of the layers at one place. Without layers it is the inner service and boxes nothing.
pub(crate) enum HostLayered<S> {
    Plain(S),
    Layered(Arc<dyn DynInvoke>),
}

/// Layers of the host program by their places.
#[derive(Debug, Default)]
pub(crate) struct PlacedLayers {
    pub(crate) call: CallLayers,
    pub(crate) attempt: AttemptLayers,
}

impl PlacedLayers {
    /// Adds a layer inside of those that its place has.
    pub(crate) fn push<L>(&mut self, place: Place, layer: L)
    where
        L: Layer<Arc<dyn DynInvoke>> + Send + Sync + 'static,
        L::Invoke: Invoke + 'static,
    {
        let HostLayers(layers) = match place {
            Place::Call => &mut self.call.0,
            Place::Attempt => &mut self.attempt.0,
        };
        layers.push(Box::new(|inner| Arc::new(layer.layer(inner))));
    }
}

impl HostLayers {
    fn around<S: Invoke + 'static>(self, inner: S) -> HostLayered<S> {
        if self.0.is_empty() {
            return HostLayered::Plain(inner);
        }
        let innermost: Arc<dyn DynInvoke> = Arc::new(inner);
        let layers = self.0.into_iter().rev();
        HostLayered::Layered(layers.fold(innermost, |inner, wrap| wrap(inner)))
    }
}

impl NamedLayer for CallLayers {
    const NAME: &'static str = "call layers";
}

impl NamedLayer for AttemptLayers {
    const NAME: &'static str = "attempt layers";
}

impl<S: Invoke + 'static> Layer<S> for CallLayers {
    type Invoke = HostLayered<S>;

    fn layer(self, inner: S) -> HostLayered<S> {
        self.0.around(inner)
    }
}

impl<S: Invoke + 'static> Layer<S> for AttemptLayers {
    type Invoke = HostLayered<S>;

    fn layer(self, inner: S) -> HostLayered<S> {
        self.0.around(inner)
    }
}

impl<S: Invoke> Invoke for HostLayered<S> {
    fn invoke(&self, cx: &mut CallContext) -> impl Future<Output = Result<Outcome, ToolError>> + Send {
        match self {
            Self::Plain(inner) => Either::Left(inner.invoke(cx)),
            Self::Layered(outermost) => Either::Right(async move { outermost.invoke_boxed(cx).await }),
        }
    }
}

impl fmt::Debug for HostLayers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostLayers({})", self.0.len())
    }
}
