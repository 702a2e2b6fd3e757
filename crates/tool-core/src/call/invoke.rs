use std::sync::Arc;

use crate::{BoxFuture, CallContext, Outcome, ToolError};

/// Callable: a prepared tool, or a layer around one.
///
/// # Cancellation
/// Dropping the future cancels the call. An implementation starts no work that it cannot stop then.
pub trait Invoke: Send + Sync {
    /// Makes the call.
    ///
    /// # Errors
    /// If there is no result: see [`ErrorKind`](crate::ErrorKind).
    fn invoke(&self, cx: &mut CallContext) -> impl Future<Output = Result<Outcome, ToolError>> + Send;
}

/// Object-safe form of [`Invoke`], implemented for every callable.
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

/// Settings of a layer, which wrap a callable into the layer's service.
pub trait Layer<S> {
    /// Service of the layer around `S`.
    type Invoke;

    /// Wraps `inner` in the layer.
    fn layer(self, inner: S) -> Self::Invoke;
}

/// Layer that explains its decisions under a name.
pub trait NamedLayer {
    /// Name of the layer in explanations: see [`CallContext::explain`].
    const NAME: &'static str;

    /// Appends the name of this layer; for nested layers, the names of all of them, outermost first.
    fn push_names(names: &mut Vec<&'static str>) {
        names.push(Self::NAME);
    }
}

/// List of layers, outermost first: a stack reads in the order in which a call passes it.
///
/// # Examples
/// ```
/// # use tool_core::{Layer, Layers};
/// # struct Log; impl<S> Layer<S> for Log { type Invoke = S; fn layer(self, inner: S) -> S { inner } }
/// # struct Retry; impl<S> Layer<S> for Retry { type Invoke = S; fn layer(self, inner: S) -> S { inner } }
/// # struct Executor;
/// let stack = Layers::outermost(Log).then(Retry).around(Executor);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Layers<L>(L);

/// Two layers, one inside the other: the type that [`Layers::then`] builds.
#[derive(Debug, Clone, Copy)]
pub struct Nested<Outer, Inner> {
    outer: Outer,
    inner: Inner,
}

impl<L> Layers<L> {
    /// Starts a list with its outermost layer.
    #[must_use]
    pub fn outermost(layer: L) -> Self {
        Self(layer)
    }

    /// Adds the next inner layer.
    #[must_use]
    pub fn then<M>(self, layer: M) -> Layers<Nested<L, M>> {
        Layers(Nested {
            outer: self.0,
            inner: layer,
        })
    }

    /// Returns the names of the layers, outermost first.
    #[must_use]
    pub fn names() -> Vec<&'static str>
    where
        L: NamedLayer,
    {
        let mut names = Vec::new();
        L::push_names(&mut names);
        names
    }

    /// Wraps the innermost service in all layers.
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

impl<Outer: NamedLayer, Inner: NamedLayer> NamedLayer for Nested<Outer, Inner> {
    const NAME: &'static str = Outer::NAME;

    fn push_names(names: &mut Vec<&'static str>) {
        Outer::push_names(names);
        Inner::push_names(names);
    }
}
