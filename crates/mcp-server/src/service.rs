use std::{fmt, future::Future, pin::Pin, sync::Arc};

use mcp_wire::{MirroredParams, Notification, Request, Revision, RpcError, code};
use raw_json::RawJson;

use crate::{Peer, RequestContext};

/// Methods that a server offers, apart from those that the protocol itself answers.
///
/// One value serves all connections of both transports and both eras. Opening a connection, discovery, `ping`, versions,
/// ids, sessions, cancellation and framing are handled before a request reaches the service.
///
/// # Examples
///
/// ```
/// use mcp_server::{Answer, RequestContext, ServerIdentity, Service, unknown_method};
/// use mcp_wire::{Request, Revision, RpcError, method};
/// use raw_json::RawJson;
///
/// struct Clock;
///
/// impl Service for Clock {
///     fn info(&self) -> ServerIdentity {
///         ServerIdentity::new("clock", "1.0.0")
///     }
///     fn capabilities(&self, _: Revision) -> RawJson {
///         RawJson::parse(r#"{"tools":{}}"#).expect("valid JSON")
///     }
///     async fn call(&self, request: Request, cx: &RequestContext) -> Result<Answer, RpcError> {
///         match (request.method.as_str(), cx.name().as_deref()) {
///             (method::TOOLS_CALL, Some("now")) => {
///                 let result = r#"{"content":[{"type":"text","text":"12:00"}]}"#;
///                 Ok(RawJson::parse(result).expect("valid JSON").into())
///             }
///             _ => Err(unknown_method(&request.method)),
///         }
///     }
/// }
/// ```
///
/// # Cancellation
/// The future of [`call`](Self::call) is dropped when the client no longer wants the answer: it cancelled the request, or it
/// closed the stream of the response. Work that must survive that belongs in a task of its own.
pub trait Service: Send + Sync + 'static {
    /// Returns the identity of the server. Called once per transport.
    fn info(&self) -> ServerIdentity;

    /// Returns advice for models on how to use the current offer. Called whenever a client initializes (legacy) or discovers
    /// the server (modern). The default is that of [`Service::info`].
    fn instructions(&self) -> Option<String> {
        self.info().instructions
    }

    /// Returns the `capabilities` object for clients of this revision, as it is written in messages.
    ///
    /// Some capabilities are served without the service: `logging` by `logging/setLevel` and the levels of
    /// [`RequestContext::log`]; `listChanged`, `resources.subscribe` and the extension of tasks by the subscriptions of the
    /// modern era, to which a [`Notifier`](crate::Notifier) sends. A legacy `resources/subscribe` takes effect once
    /// [`call`](Self::call) has succeeded.
    fn capabilities(&self, revision: Revision) -> RawJson;

    /// Answers a request, such as `tools/list` or `tools/call`.
    ///
    /// # Errors
    /// Returns the error that the client gets instead of a result; [`unknown_method`] for a method that is not offered.
    fn call(
        &self,
        request: Request,
        cx: &RequestContext,
    ) -> impl Future<Output = Result<Answer, RpcError>> + Send;

    /// Returns the arguments of a tool that modern clients mirror in HTTP headers. Calls whose headers contradict their
    /// arguments are refused.
    ///
    /// Called with every modern `tools/call` over HTTP, so the answer is best kept ready. A service that has to look the tool
    /// up first returns [`HeaderParams::Pending`].
    fn header_params(&self, tool: &str, client: &Peer) -> HeaderParams<'_> {
        let _ = (tool, client);
        HeaderParams::None
    }

    /// Returns those of these resources that a modern client may subscribe to, before its subscription is acknowledged, even
    /// if it names none. A service that relays changes subscribes to them here. By default all.
    fn filter_resources(
        &self,
        uris: Vec<String>,
        cx: &RequestContext,
    ) -> impl Future<Output = Vec<String>> + Send {
        let _ = cx;
        std::future::ready(uris)
    }

    /// Returns those of these tasks that a modern client, which has declared the extension, may subscribe to, before its
    /// subscription is acknowledged. The service sends `notifications/tasks` whenever such a task has changed. By default
    /// none: a task belongs to its owner.
    fn filter_tasks(
        &self,
        ids: Vec<String>,
        cx: &RequestContext,
    ) -> impl Future<Output = Vec<String>> + Send {
        let _ = (ids, cx);
        std::future::ready(Vec::new())
    }

    /// Called when the connection on stdio, or the session, with this [`RequestContext::connection`] has ended. None of its
    /// requests runs any more. Must not block.
    fn on_disconnect(&self, connection: u64) {
        let _ = connection;
    }

    /// Called with a notification that the protocol itself does not handle, such as `notifications/roots/list_changed`.
    fn on_notification(&self, notification: &Notification, cx: &RequestContext) {
        let _ = (notification, cx);
    }
}

/// Arguments of a tool that clients mirror in headers, as far as the service knows them.
#[derive(Default)]
#[non_exhaustive]
pub enum HeaderParams<'a> {
    /// No argument is mirrored, or there is no such tool.
    #[default]
    None,
    /// These arguments are mirrored.
    Known(Arc<MirroredParams>),
    /// The tool is not known. A call with headers that mirror arguments is refused, since nobody can check them.
    UnknownTool,
    /// The tool has to be looked up first. The future is polled after all other checks, and dropped when the client no longer
    /// wants its answer. A further `Pending` counts as [`UnknownTool`](Self::UnknownTool).
    Pending(Pin<Box<dyn Future<Output = HeaderParams<'static>> + Send + 'a>>),
}

impl From<Option<Arc<MirroredParams>>> for HeaderParams<'_> {
    fn from(params: Option<Arc<MirroredParams>>) -> Self {
        params.map_or(Self::None, Self::Known)
    }
}

impl fmt::Debug for HeaderParams<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Known(params) => f.debug_tuple("Known").field(params).finish(),
            Self::UnknownTool => f.write_str("UnknownTool"),
            Self::Pending(_) => f.write_str("Pending"),
        }
    }
}

/// Name and version of a server, as clients see them.
///
/// # Examples
///
/// ```
/// use mcp_server::ServerIdentity;
///
/// let identity = ServerIdentity::new("weather", "1.2.0")
///     .title("Weather")
///     .instructions("Ask for one city at a time.");
/// assert_eq!(identity.name, "weather");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerIdentity {
    /// Name for programs.
    pub name: String,
    /// Name for people.
    pub title: Option<String>,
    /// Version of the server.
    pub version: String,
    /// Advice for models on how to use the offer.
    pub instructions: Option<String>,
}

impl ServerIdentity {
    /// Creates an identity with a name and a version.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            ..Self::default()
        }
    }

    /// Sets the name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the advice for models on how to use the offer.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }
}

/// Result of a request: a JSON object, as text.
///
/// Modern clients require a `resultType` in it. It is added if it is missing; everything else is written unchanged.
///
/// # Which constructor
///
/// | result | constructor |
/// |---|---|
/// | of a tool or a list that the service wrote itself: it never has a `resultType` | [`Answer::untyped`] |
/// | of unknown origin, such as one that is relayed | `Answer::from(result)`, which looks for the `resultType` |
/// | complete to the last byte, with a `resultType` where the client's revision has it | [`Answer::verbatim`] |
/// | questions to a modern client | [`InputRequired::answer`](crate::InputRequired::answer) |
///
/// `Answer::from` is right for every valid result; it costs one search through the members.
///
/// # Examples
///
/// ```
/// use mcp_server::Answer;
/// use raw_json::RawJson;
///
/// let result = RawJson::parse(r#"{"content": [{"type": "text", "text": "12:00"}]}"#)?;
/// let answer = Answer::untyped(result);
/// # Ok::<(), raw_json::JsonError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub(crate) result: RawJson,
    pub(crate) has_type: Option<bool>,
}

impl Answer {
    /// Creates an answer from a result that is known to have no `resultType`, which saves the search for it.
    #[must_use]
    pub fn untyped(result: RawJson) -> Self {
        Self {
            result,
            has_type: Some(false),
        }
    }

    /// Creates an answer from a result that is written unchanged.
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

/// Returns the error for a method that is not offered.
#[must_use]
pub fn unknown_method(method: &str) -> RpcError {
    RpcError::new(
        code::METHOD_NOT_FOUND,
        format!("method `{method}` is not offered"),
    )
}
