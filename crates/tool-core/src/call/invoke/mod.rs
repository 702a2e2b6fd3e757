//! Callables: backends, layers around them, and closures as either.

mod backend;
mod function;
mod future;
mod layer;
mod preview;

use std::sync::Arc;

pub use self::{
    backend::{Backend, DynBackend, InProcess, Refresh, TargetBackend},
    function::{InvokeFn, invoke_fn},
    future::BoxFuture,
    layer::{Layer, Layers, NamedLayer, Nested},
    preview::{ApprovalSubject, Preview},
};
use crate::{CallContext, Outcome, ToolError};

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

/// Object-safe form of [`Invoke`], implemented for every callable. Implement [`Invoke`] instead.
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

impl Invoke for dyn DynInvoke {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        self.invoke_boxed(cx).await
    }
}
