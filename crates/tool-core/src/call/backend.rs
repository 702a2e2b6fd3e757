use std::{future::ready, sync::Arc};

use crate::{BoxFuture, CallContext, DynInvoke, Invoke, Outcome, Preview, ToolError};

/// What runs one tool: a function, an API, an MCP server.
///
/// Executors prepare backends. Layers ask the tool of the call for its backend and do not forward these methods. All of them
/// have defaults, for a backend in this process without credentials.
///
/// What has none of this is put into [`InProcess`].
pub trait Backend: Invoke {
    /// Returns `true` if there are other credentials now than those that the upstream refused last.
    fn refresh_credentials(&self, refresh: Refresh) -> impl Future<Output = bool> + Send {
        let _ = refresh;
        ready(false)
    }

    /// Returns the protocol that is spoken with the backend, such as `mcp` or `http`; `None` if it runs in this process.
    fn protocol(&self) -> Option<&'static str> {
        None
    }

    /// Identifies the backend instance: a server, or the clients that reach an API.
    ///
    /// Two tools with equal descriptors and equal backend ids at the same time may share cached results. Returns `None` if the
    /// identity is not known, for example because settings refer to values that may have changed.
    fn backend_id(&self) -> Option<usize> {
        None
    }

    /// Makes the request of a call without sending it; connects to nothing and starts nothing. `None` if the backend cannot
    /// tell.
    ///
    /// # Errors
    /// When the request cannot be made: the error that the call itself would have.
    fn preview(&self, cx: &CallContext) -> impl Future<Output = Result<Option<Preview>, ToolError>> + Send {
        let _ = cx;
        ready(Ok(None))
    }
}

/// A backend in this process: something that can be called, with the defaults of [`Backend`].
#[derive(Debug, Clone, Copy, Default)]
pub struct InProcess<I>(pub I);

impl<I: Invoke> Invoke for InProcess<I> {
    fn invoke(&self, cx: &mut CallContext) -> impl Future<Output = Result<Outcome, ToolError>> + Send {
        self.0.invoke(cx)
    }
}

impl<I: Invoke> Backend for InProcess<I> {}

/// How far [`Backend::refresh_credentials`] goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refresh {
    /// Only looks whether the credentials have changed.
    Peek,
    /// Renews them if they have not changed by themselves.
    Force,
}

/// [`Backend`] as a trait object: implemented for whatever implements that.
pub trait DynBackend: DynInvoke {
    /// See [`Backend::refresh_credentials`].
    fn refresh_credentials_boxed(&self, refresh: Refresh) -> BoxFuture<'_, bool>;

    /// See [`Backend::protocol`].
    fn dyn_protocol(&self) -> Option<&'static str>;

    /// See [`Backend::backend_id`].
    fn dyn_backend_id(&self) -> Option<usize>;

    /// See [`Backend::preview`].
    fn preview_boxed<'a>(&'a self, cx: &'a CallContext) -> BoxFuture<'a, Result<Option<Preview>, ToolError>>;
}

impl<B: Backend> DynBackend for B {
    fn refresh_credentials_boxed(&self, refresh: Refresh) -> BoxFuture<'_, bool> {
        Box::pin(self.refresh_credentials(refresh))
    }

    fn dyn_protocol(&self) -> Option<&'static str> {
        self.protocol()
    }

    fn dyn_backend_id(&self) -> Option<usize> {
        self.backend_id()
    }

    fn preview_boxed<'a>(&'a self, cx: &'a CallContext) -> BoxFuture<'a, Result<Option<Preview>, ToolError>> {
        Box::pin(self.preview(cx))
    }
}

impl<B: Backend + ?Sized> Backend for Arc<B> {
    fn refresh_credentials(&self, refresh: Refresh) -> impl Future<Output = bool> + Send {
        (**self).refresh_credentials(refresh)
    }

    fn protocol(&self) -> Option<&'static str> {
        (**self).protocol()
    }

    fn backend_id(&self) -> Option<usize> {
        (**self).backend_id()
    }

    fn preview(&self, cx: &CallContext) -> impl Future<Output = Result<Option<Preview>, ToolError>> + Send {
        (**self).preview(cx)
    }
}
