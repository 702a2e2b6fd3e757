use std::sync::Arc;

use crate::{BoxFuture, CallContext, Outcome, ToolError};

/// Something that can be called: a prepared tool, or a layer around one.
///
/// # Cancellation
/// Dropping the future cancels the call. An implementation keeps nothing running that it cannot stop then.
pub trait Invoke: Send + Sync {
    /// Makes the call.
    ///
    /// # Errors
    /// When there is no result: see [`ErrorKind`](crate::ErrorKind).
    fn invoke(&self, cx: &mut CallContext) -> impl Future<Output = Result<Outcome, ToolError>> + Send;
}

/// [`Invoke`] as a trait object: implemented for whatever implements that.
pub trait DynInvoke: Send + Sync {
    /// Makes the call: see [`Invoke::invoke`].
    fn invoke_boxed<'a>(&'a self, cx: &'a mut CallContext) -> BoxFuture<'a, Result<Outcome, ToolError>>;
}

impl<I: Invoke> DynInvoke for I {
    fn invoke_boxed<'a>(&'a self, cx: &'a mut CallContext) -> BoxFuture<'a, Result<Outcome, ToolError>> {
        Box::pin(self.invoke(cx))
    }
}

impl<I: Invoke + ?Sized> Invoke for Arc<I> {
    fn invoke(&self, cx: &mut CallContext) -> impl Future<Output = Result<Outcome, ToolError>> + Send {
        (**self).invoke(cx)
    }
}

/// A layer's settings: put around something that can be called, they give the layer itself.
pub trait Layer<S> {
    /// The layer around `S`.
    type Invoke;

    /// Puts the layer around `inner`.
    fn layer(self, inner: S) -> Self::Invoke;
}

/// Layers put together from the outermost inwards, so that a stack reads in the order in which a call meets it.
///
/// ```
/// # use tool_core::{Layer, Layers};
/// # struct Log; impl<S> Layer<S> for Log { type Invoke = S; fn layer(self, inner: S) -> S { inner } }
/// # struct Retry; impl<S> Layer<S> for Retry { type Invoke = S; fn layer(self, inner: S) -> S { inner } }
/// # struct Executor;
/// let stack = Layers::outermost(Log).then(Retry).around(Executor);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Layers<L>(L);

/// Two layers, one inside the other: what [`Layers::then`] makes.
#[derive(Debug, Clone, Copy)]
pub struct Nested<Outer, Inner> {
    outer: Outer,
    inner: Inner,
}

impl<L> Layers<L> {
    /// Begins with the layer that a call meets first.
    #[must_use]
    pub fn outermost(layer: L) -> Self {
        Self(layer)
    }

    /// Adds the layer that a call meets next.
    #[must_use]
    pub fn then<M>(self, layer: M) -> Layers<Nested<L, M>> {
        Layers(Nested {
            outer: self.0,
            inner: layer,
        })
    }

    /// Puts all of them around what runs the call.
    #[must_use]
    pub fn around<S>(self, innermost: S) -> L::Invoke
    where
        L: Layer<S>,
    {
        self.0.layer(innermost)
    }
}

impl<S, Outer, Inner> Layer<S> for Nested<Outer, Inner>
where
    Inner: Layer<S>,
    Outer: Layer<Inner::Invoke>,
{
    type Invoke = Outer::Invoke;

    fn layer(self, innermost: S) -> Self::Invoke {
        self.outer.layer(self.inner.layer(innermost))
    }
}
