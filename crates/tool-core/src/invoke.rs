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
