use std::{future::ready, sync::Arc};

use crate::{BoxFuture, CallContext, Outcome, Preview, ToolError};

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

    /// Whether there are other credentials now than those that the upstream refused last. With `fetch` they are renewed
    /// if need be; without, it is only looked whether they have changed. What has no credentials has no others.
    ///
    /// It is asked of what runs a tool; layers do not pass it on.
    fn has_renewed(&self, fetch: bool) -> impl Future<Output = bool> + Send {
        let _ = fetch;
        ready(false)
    }

    /// The protocol that is spoken with what runs the tool, such as `mcp` or `http`; nothing if it runs in this process.
    ///
    /// It is asked of what runs a tool; layers do not pass it on.
    fn protocol(&self) -> Option<&'static str> {
        None
    }

    /// A number for what runs the tool beside its settings: a server, or the clients that reach an API. Where two that live
    /// at the same time have the same, and the tools are written alike, answers of one stand for answers of the other.
    /// Nothing where that cannot be told, for example since settings refer to values that may have changed.
    ///
    /// It is asked of what runs a tool; layers do not pass it on.
    fn runner(&self) -> Option<usize> {
        None
    }

    /// Makes the request of a call without sending it: it connects to nothing and starts nothing. `None` if what runs the tool
    /// cannot tell.
    ///
    /// It is asked of what runs a tool; layers do not pass it on.
    ///
    /// # Errors
    /// When the request cannot be made: the error that the call itself would have.
    fn preview(&self, cx: &CallContext) -> impl Future<Output = Result<Option<Preview>, ToolError>> + Send {
        let _ = cx;
        ready(Ok(None))
    }
}

/// [`Invoke`] as a trait object: implemented for whatever implements that.
pub trait DynInvoke: Send + Sync {
    /// Makes the call: see [`Invoke::invoke`].
    fn invoke_boxed<'a>(&'a self, cx: &'a mut CallContext) -> BoxFuture<'a, Result<Outcome, ToolError>>;

    /// Whether there are other credentials now: see [`Invoke::has_renewed`].
    fn has_renewed_boxed(&self, fetch: bool) -> BoxFuture<'_, bool>;

    /// The protocol that is spoken: see [`Invoke::protocol`].
    fn spoken_protocol(&self) -> Option<&'static str>;

    /// A number for what runs the tool: see [`Invoke::runner`].
    fn runner_number(&self) -> Option<usize>;

    /// Makes the request of a call without sending it: see [`Invoke::preview`].
    fn preview_boxed<'a>(&'a self, cx: &'a CallContext) -> BoxFuture<'a, Result<Option<Preview>, ToolError>>;
}

impl<I: Invoke> DynInvoke for I {
    fn invoke_boxed<'a>(&'a self, cx: &'a mut CallContext) -> BoxFuture<'a, Result<Outcome, ToolError>> {
        Box::pin(self.invoke(cx))
    }

    fn has_renewed_boxed(&self, fetch: bool) -> BoxFuture<'_, bool> {
        Box::pin(self.has_renewed(fetch))
    }

    fn spoken_protocol(&self) -> Option<&'static str> {
        self.protocol()
    }

    fn runner_number(&self) -> Option<usize> {
        self.runner()
    }

    fn preview_boxed<'a>(&'a self, cx: &'a CallContext) -> BoxFuture<'a, Result<Option<Preview>, ToolError>> {
        Box::pin(self.preview(cx))
    }
}

impl<I: Invoke + ?Sized> Invoke for Arc<I> {
    fn invoke(&self, cx: &mut CallContext) -> impl Future<Output = Result<Outcome, ToolError>> + Send {
        (**self).invoke(cx)
    }

    fn has_renewed(&self, fetch: bool) -> impl Future<Output = bool> + Send {
        (**self).has_renewed(fetch)
    }

    fn protocol(&self) -> Option<&'static str> {
        (**self).protocol()
    }

    fn runner(&self) -> Option<usize> {
        (**self).runner()
    }

    fn preview(&self, cx: &CallContext) -> impl Future<Output = Result<Option<Preview>, ToolError>> + Send {
        (**self).preview(cx)
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
