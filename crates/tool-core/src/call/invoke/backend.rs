use std::{future::ready, sync::Arc};

use crate::{
    ApprovalSubject, BoxFuture, CallContext, DynInvoke, Invoke, Outcome, Preview, Target, ToolError,
};

/// Backend of one tool: a function, an API, an MCP server.
///
/// Executors prepare backends. Layers ask the tool of the call for its backend and do not forward these methods. All
/// methods have defaults, which suit a backend in this process without credentials: see [`InProcess`].
pub trait Backend: Invoke {
    /// Returns `true` if there are other credentials now than those that the upstream refused last.
    fn refresh_credentials(&self, refresh: Refresh) -> impl Future<Output = bool> + Send {
        let _ = refresh;
        ready(false)
    }

    /// Returns the protocol of the connection to the backend, such as `mcp` or `http`; `None` if it runs in this
    /// process.
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

    /// Builds the request of a call without sending it. Opens no connection and starts no process. Returns `None` if
    /// the backend cannot show its requests.
    ///
    /// # Errors
    /// If the request cannot be built: the error that the call itself would have.
    fn preview(&self, cx: &CallContext) -> impl Future<Output = Result<Option<Preview>, ToolError>> + Send {
        let _ = cx;
        ready(Ok(None))
    }

    /// Returns what the arguments of a call that needs approval only name. Changes nothing. `None` if the arguments say all.
    ///
    /// # Errors
    /// If there is no such subject, or it cannot be read: the error that the call itself would have.
    fn approval_subject(
        &self,
        cx: &CallContext,
    ) -> impl Future<Output = Result<Option<ApprovalSubject>, ToolError>> + Send {
        let _ = cx;
        ready(Ok(None))
    }
}

/// Backend in this process: any [`Invoke`], with the defaults of [`Backend`].
#[derive(Debug, Clone, Copy, Default)]
pub struct InProcess<I>(pub I);

impl<I: Invoke> Invoke for InProcess<I> {
    fn invoke(&self, cx: &mut CallContext) -> impl Future<Output = Result<Outcome, ToolError>> + Send {
        self.0.invoke(cx)
    }
}

impl<I: Invoke> Backend for InProcess<I> {}

/// Innermost service of a stack: runs the backend of the call's target.
///
/// # Examples
/// See [`invoke_fn`](crate::invoke_fn).
#[derive(Debug, Clone, Copy, Default)]
pub struct TargetBackend;

impl TargetBackend {
    /// Returns the backend that runs the target of a call: its tool's, or the one that created the task, even if the
    /// tool has another one now.
    #[must_use]
    pub fn for_call(cx: &CallContext) -> &Arc<dyn DynBackend> {
        match &cx.target {
            Target::Task { task, .. } => &task.runner,
            target => target.tool().executor(),
        }
    }
}

impl Invoke for TargetBackend {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let backend = Self::for_call(cx).clone();
        backend.invoke_boxed(cx).await
    }
}

/// Mode of [`Backend::refresh_credentials`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refresh {
    /// Checks whether the credentials have changed.
    Peek,
    /// Renews the credentials unless they have changed already.
    Force,
}

/// Object-safe form of [`Backend`], implemented for every backend.
pub trait DynBackend: DynInvoke {
    /// See [`Backend::refresh_credentials`].
    fn refresh_credentials_boxed(&self, refresh: Refresh) -> BoxFuture<'_, bool>;

    /// See [`Backend::protocol`].
    fn dyn_protocol(&self) -> Option<&'static str>;

    /// See [`Backend::backend_id`].
    fn dyn_backend_id(&self) -> Option<usize>;

    /// See [`Backend::preview`].
    fn preview_boxed<'a>(&'a self, cx: &'a CallContext) -> BoxFuture<'a, Result<Option<Preview>, ToolError>>;

    /// See [`Backend::approval_subject`].
    fn approval_subject_boxed<'a>(
        &'a self,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<ApprovalSubject>, ToolError>>;
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

    fn approval_subject_boxed<'a>(
        &'a self,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<ApprovalSubject>, ToolError>> {
        Box::pin(self.approval_subject(cx))
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

    fn approval_subject(
        &self,
        cx: &CallContext,
    ) -> impl Future<Output = Result<Option<ApprovalSubject>, ToolError>> + Send {
        (**self).approval_subject(cx)
    }
}
