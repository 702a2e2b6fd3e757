use std::{future::Future, sync::Arc};

use mcp_wire::{MirroredParams, Notification, Request, Revision, RpcError, code};
use raw_json::RawJson;

use crate::{Peer, RequestContext};

/// What a server offers: everything that is not the protocol's own housekeeping.
///
/// One value serves every connection of both transports and both eras. Opening a connection, discovery, `ping`, versions,
/// ids, sessions, cancellation and framing are done before a request gets here.
///
/// # Cancellation
/// The future of [`call`](Self::call) is dropped when the client no longer wants the answer: it said so, or it closed
/// the stream that the answer belongs to. What must survive that belongs in a task of its own.
pub trait Service: Send + Sync + 'static {
    /// Who is serving. Asked once per transport.
    fn info(&self) -> ServerIdentity;

    /// Advice for models on how to use what is offered now: asked for whenever a client initializes (legacy) or discovers
    /// the server (modern). The default is that of [`Service::info`].
    fn instructions(&self) -> Option<String> {
        self.info().instructions
    }

    /// What is offered to clients of this revision: the `capabilities` object as it is written in messages.
    ///
    /// Some of it is served without the service: with `logging`, `logging/setLevel` and the levels of
    /// [`RequestContext::log`]; with a `listChanged` or `resources.subscribe`, the subscriptions of the modern era,
    /// which [`Notifier`](crate::Notices) feed; so are those with the extension of tasks. A legacy `resources/subscribe` counts once [`call`](Self::call) agrees.
    fn capabilities(&self, revision: Revision) -> RawJson;

    /// Answers a request, such as `tools/list` or `tools/call`.
    ///
    /// # Errors
    /// What the client gets in place of a result; [`unknown_method`] for a method that is not offered.
    fn call(
        &self,
        request: Request,
        cx: &RequestContext,
    ) -> impl Future<Output = Result<Answer, RpcError>> + Send;

    /// Which arguments of a tool clients of the modern era mirror in HTTP headers; calls whose headers say something else
    /// than their arguments are refused. Asked with every call, so it is best kept ready.
    fn mirrored(&self, tool: &str, client: &Peer) -> Mirrored {
        let _ = (tool, client);
        Mirrored::Nothing
    }

    /// Gets to know a tool of which [`mirrored`](Self::mirrored) knows nothing yet, as far as that can be: it is asked again
    /// after this, and of a tool that is unknown then no call is made that mirrors arguments. Dropped when the client no longer wants its answer.
    fn learn(&self, tool: &str, client: &Peer) -> impl Future<Output = ()> + Send {
        let _ = (tool, client);
        std::future::ready(())
    }

    /// Says which of these resources a modern client may watch, before its subscription is acknowledged, also when it
    /// names none: changes of the others are not told. A service that relays changes asks for them here. All, unless a service says otherwise.
    fn filter_resources(&self, uris: Vec<String>, cx: &RequestContext) -> impl Future<Output = Vec<String>> + Send {
        let _ = cx;
        std::future::ready(uris)
    }

    /// Says which of these tasks a modern client may watch, before its subscription is acknowledged; it has declared the
    /// extension. A service that agrees sends a `notifications/tasks` whenever such a task has changed. None, unless a
    /// service says otherwise: a task is its owner's alone.
    fn filter_tasks(&self, ids: Vec<String>, cx: &RequestContext) -> impl Future<Output = Vec<String>> + Send {
        let _ = (ids, cx);
        std::future::ready(Vec::new())
    }

    /// Takes note that a client is gone whose requests had this [`RequestContext::connection`]: its connection on stdio
    /// has ended, or its session. None of its requests is worked on any more. It must not block.
    fn on_disconnect(&self, connection: u64) {
        let _ = connection;
    }

    /// Takes note of a notification that is not the protocol's own, such as `notifications/roots/list_changed`.
    fn on_notification(&self, notification: &Notification, cx: &RequestContext) {
        let _ = (notification, cx);
    }
}

/// What a service knows of the arguments of a tool that clients mirror in headers.
#[derive(Debug, Clone, Default)]
pub enum Mirrored {
    /// There are none, or there is no such tool.
    #[default]
    Nothing,
    /// These are.
    Params(Arc<MirroredParams>),
    /// It does not know the tool yet, and may come to: [`Service::learn`].
    Unknown,
}

impl From<Option<Arc<MirroredParams>>> for Mirrored {
    fn from(params: Option<Arc<MirroredParams>>) -> Self {
        params.map_or(Self::Nothing, Self::Params)
    }
}

/// Who is serving, as clients see it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerIdentity {
    /// The server's name for programs.
    pub name: String,
    /// The server's name for people.
    pub title: Option<String>,
    /// The server's own version.
    pub version: String,
    /// Advice for the model on how to use what is offered.
    pub instructions: Option<String>,
}

impl ServerIdentity {
    /// A name and a version.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            ..Self::default()
        }
    }
}

/// The result of a request: an object, as text.
///
/// Clients of the modern era want a `resultType` in it. It is added when it is missing, and everything else is
/// written as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub(crate) result: RawJson,
    pub(crate) has_type: Option<bool>,
}

impl Answer {
    /// A result that is known to have no `resultType`, so that nobody needs to look for one.
    #[must_use]
    pub fn untyped(result: RawJson) -> Self {
        Self {
            result,
            has_type: Some(false),
        }
    }

    /// A result that is to be written as it is.
    #[must_use]
    pub fn verbatim(result: RawJson) -> Self {
        Self {
            result,
            has_type: Some(true),
        }
    }
}

impl From<RawJson> for Answer {
    fn from(result: RawJson) -> Self {
        Self {
            result,
            has_type: None,
        }
    }
}

/// The error for a method that is not offered.
#[must_use]
pub fn unknown_method(method: &str) -> RpcError {
    RpcError::new(
        code::METHOD_NOT_FOUND,
        format!("method `{method}` is not offered"),
    )
}
