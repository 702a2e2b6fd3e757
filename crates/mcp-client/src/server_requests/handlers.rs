use std::{borrow::Cow, fmt, future::Future, pin::Pin, sync::Arc};

use mcp_wire::{Notification, RpcError, method};
use raw_json::RawJson;

use crate::{ConnectionEvent, OnNotification, exchange::catch_panic};

/// Request of a server to the client: elicitation, sampling, or roots.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerRequest {
    /// Method of the request, such as `elicitation/create`.
    pub method: String,
    /// Params as the server wrote them.
    pub params: Option<RawJson>,
    /// Tag of the client's request whose response contained it, see
    /// [`RequestOptions::tag`](crate::RequestOptions::tag).
    pub tag: Option<u64>,
}

impl ServerRequest {
    /// Creates a request, for example to test a handler.
    #[must_use]
    pub fn new(method: impl Into<String>, params: Option<RawJson>) -> Self {
        Self {
            method: method.into(),
            params,
            tag: None,
        }
    }

    /// Default answer to an elicitation: the object of the defaults in its `requestedSchema`, empty if it has none.
    ///
    /// ```text
    /// {"action":"accept","content":{"name":"John Doe","age":30}}
    ///                              ^ this
    /// ```
    #[must_use]
    pub fn defaults(&self) -> RawJson {
        let schema = self
            .params
            .as_ref()
            .and_then(|params| params.get("requestedSchema"));
        let properties = schema.and_then(|schema| schema.get("properties"));
        let properties = properties.unwrap_or(RawJson::object());
        let defaults: Vec<(Cow<'_, str>, RawJson)> = properties
            .members()
            .filter_map(|(name, property)| Some((name, property.get("default")?)))
            .collect();
        let members: Vec<(&str, RawJson)> = defaults
            .iter()
            .map(|(name, value)| (&**name, value.clone()))
            .collect();
        RawJson::from_members(&members)
    }
}

/// Handlers for requests of servers. Without handlers, the client declares no capability and refuses every request.
///
/// A capability is declared exactly if it has a handler, in both eras. A legacy server sends a request during a call, a
/// modern one ends the call with `input_required` (see
/// [`Connection::request_with_input`](crate::Connection::request_with_input)), and both reach the same handler.
///
/// # Order
/// Requests of a legacy server are passed to handlers in order of arrival, each in a task of its own: a handler that
/// waits for a person blocks neither responses nor progress. The task is aborted if the server cancels its request. The
/// deadline of the surrounding call continues to run, so a call that may wait for a person needs a late one.
///
/// # Examples
///
/// ```
/// use mcp_client::{ConnectionOptions, Handlers, RawJson};
///
/// let accept = |content| RawJson::from_members(&[("action", RawJson::from("accept")), ("content", content)]);
/// let handlers = Handlers::new()
///     .elicitation(RawJson::object(), move |request| async move { Ok(accept(request.defaults())) });
/// let options = ConnectionOptions::default().handlers(handlers);
/// ```
#[derive(Clone, Default)]
pub struct Handlers {
    answers: Vec<Handler>,
    on_notification: Option<OnNotification>,
}

#[derive(Clone)]
struct Handler {
    capability: &'static str,
    declared: RawJson,
    method: &'static str,
    answer: Arc<dyn Fn(ServerRequest) -> Answer + Send + Sync>,
}

type Answer = Pin<Box<dyn Future<Output = Result<RawJson, RpcError>> + Send>>;

impl Handlers {
    /// Creates an empty set of handlers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Handles `elicitation/create`. `declared` is the value of the capability: `{}` for forms only.
    #[must_use]
    pub fn elicitation<A>(
        self,
        declared: RawJson,
        handler: impl Fn(ServerRequest) -> A + Send + Sync + 'static,
    ) -> Self
    where
        A: Future<Output = Result<RawJson, RpcError>> + Send + 'static,
    {
        self.with_handler("elicitation", declared, method::ELICITATION_CREATE, handler)
    }

    /// Handles `sampling/createMessage`. `declared` is the value of the capability.
    #[must_use]
    pub fn sampling<A>(
        self,
        declared: RawJson,
        handler: impl Fn(ServerRequest) -> A + Send + Sync + 'static,
    ) -> Self
    where
        A: Future<Output = Result<RawJson, RpcError>> + Send + 'static,
    {
        self.with_handler("sampling", declared, method::SAMPLING_CREATE_MESSAGE, handler)
    }

    /// Handles `roots/list`. `declared` is the value of the capability.
    #[must_use]
    pub fn roots<A>(
        self,
        declared: RawJson,
        handler: impl Fn(ServerRequest) -> A + Send + Sync + 'static,
    ) -> Self
    where
        A: Future<Output = Result<RawJson, RpcError>> + Send + 'static,
    {
        self.with_handler("roots", declared, method::ROOTS_LIST, handler)
    }

    /// Receives notifications that belong to no request in progress, in order with the responses: a message before a
    /// response is delivered before the caller receives the response. Runs on the connection's reader, so it must not
    /// block. Other receivers use [`Connection::events`](crate::Connection::events).
    #[must_use]
    pub fn notifications(mut self, handler: impl Fn(ConnectionEvent) + Send + Sync + 'static) -> Self {
        self.on_notification = Some(Arc::new(handler));
        self
    }

    fn with_handler<A>(
        mut self,
        capability: &'static str,
        declared: RawJson,
        method: &'static str,
        handler: impl Fn(ServerRequest) -> A + Send + Sync + 'static,
    ) -> Self
    where
        A: Future<Output = Result<RawJson, RpcError>> + Send + 'static,
    {
        self.answers.retain(|other| other.method != method);
        self.answers.push(Handler {
            capability,
            declared,
            method,
            answer: Arc::new(move |request| Box::pin(handler(request))),
        });
        self
    }

    /// `true` if every request of a server is refused.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// Capabilities that the client declares.
    pub(crate) fn capabilities(&self) -> RawJson {
        let members: Vec<(&str, RawJson)> = self
            .answers
            .iter()
            .map(|handler| (handler.capability, handler.declared.clone()))
            .collect();
        RawJson::from_members(&members)
    }

    /// Starts to handle a request. Returns `None` if there is no handler for it.
    pub(crate) fn answer(&self, request: ServerRequest) -> Option<Answer> {
        let handler = self
            .answers
            .iter()
            .find(|handler| handler.method == request.method)?;
        Some((handler.answer)(request))
    }

    /// `true` if requests of this method have a handler.
    pub(crate) fn handles(&self, method: &str) -> bool {
        self.answers.iter().any(|handler| handler.method == method)
    }

    /// Passes a notification to the callback. Returns `false` if there is none.
    pub(crate) fn notify(&self, note: &Notification) -> bool {
        let Some(handler) = &self.on_notification else {
            return false;
        };
        catch_panic(|| handler(note.clone().into()));
        true
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.answers.iter().map(|handler| handler.method))
            .finish()
    }
}
