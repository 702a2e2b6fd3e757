use std::{borrow::Cow, fmt, future::Future, pin::Pin, sync::Arc};

use mcp_wire::{Notification, RpcError, method};
use raw_json::RawJson;

use crate::{ConnectionEvent, OnNotification, connection::catch_panic};

/// Something that a server asks of the client: input of the user, a model's answer, the client's roots.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerRequest {
    /// What is asked for, such as `elicitation/create`.
    pub method: String,
    /// The parameters as the server wrote them.
    pub params: Option<RawJson>,
    /// The tag of the request in whose answer it came, see [`RequestOptions::tag`](crate::RequestOptions::tag).
    pub tag: Option<u64>,
}

impl ServerRequest {
    /// What an elicitation proposes: the object of the defaults in its `requestedSchema`, empty when it has none.
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

/// What this client does for servers that ask for something. Without any it declares nothing and refuses everything.
///
/// A capability is declared exactly when there is a handler for it, in both eras: a legacy server sends a request in
/// the middle of a call, a modern one ends the call with `input_required` (see
/// [`Connection::request_with_input`](crate::Connection::request_with_input)), and both reach the same handler.
///
/// # Order
/// Requests of a legacy server are handed over in the order in which they come, each to a task of its own: one that
/// waits for a person holds up neither answers nor progress. One whose server takes the request back is dropped. The
/// deadline of the call in which the server asks goes on meanwhile: a call that may wait for a person needs a late
/// one.
///
/// ```
/// use mcp_client::{ConnectionOptions, Handlers};
/// use raw_json::RawJson;
///
/// let roots = RawJson::parse(r#"{"roots":[{"uri":"file:///home/me/project"}]}"#)?;
/// let options = ConnectionOptions {
///     handlers: Handlers::new().roots(RawJson::object(), move |_| {
///         let roots = roots.clone();
///         async move { Ok(roots) }
///     }),
///     ..ConnectionOptions::default()
/// };
/// # Ok::<(), raw_json::JsonError>(())
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
    /// No handlers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Answers `elicitation/create`; the capability is declared as given, `{}` for forms only.
    #[must_use]
    pub fn elicitation<A>(
        self,
        declared: RawJson,
        handler: impl Fn(ServerRequest) -> A + Send + Sync + 'static,
    ) -> Self
    where
        A: Future<Output = Result<RawJson, RpcError>> + Send + 'static,
    {
        self.with("elicitation", declared, method::ELICITATION_CREATE, handler)
    }

    /// Answers `sampling/createMessage`; the capability is declared as given.
    #[must_use]
    pub fn sampling<A>(
        self,
        declared: RawJson,
        handler: impl Fn(ServerRequest) -> A + Send + Sync + 'static,
    ) -> Self
    where
        A: Future<Output = Result<RawJson, RpcError>> + Send + 'static,
    {
        self.with("sampling", declared, method::SAMPLING_CREATE_MESSAGE, handler)
    }

    /// Answers `roots/list`; the capability is declared as given.
    #[must_use]
    pub fn roots<A>(
        self,
        declared: RawJson,
        handler: impl Fn(ServerRequest) -> A + Send + Sync + 'static,
    ) -> Self
    where
        A: Future<Output = Result<RawJson, RpcError>> + Send + 'static,
    {
        self.with("roots", declared, method::ROOTS_LIST, handler)
    }

    /// Takes what the server tells that belongs to no request that is under way, in order with the answers: a
    /// message that came before an answer is here before its caller has the answer. It runs on the connection's
    /// reader, so it must not block; [`Connection::events`](crate::Connection::events) is for everyone else.
    #[must_use]
    pub fn notifications(mut self, handler: impl Fn(ConnectionEvent) + Send + Sync + 'static) -> Self {
        self.on_notification = Some(Arc::new(handler));
        self
    }

    fn with<A>(
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

    /// Whether every request of a server is refused.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// What the client declares that it can do.
    pub(crate) fn capabilities(&self) -> RawJson {
        let members: Vec<(&str, RawJson)> = self
            .answers
            .iter()
            .map(|handler| (handler.capability, handler.declared.clone()))
            .collect();
        RawJson::from_members(&members)
    }

    /// Begins to answer a request; nothing when there is no handler for it.
    pub(crate) fn answer(&self, request: ServerRequest) -> Option<Answer> {
        let handler = self
            .answers
            .iter()
            .find(|handler| handler.method == request.method)?;
        Some((handler.answer)(request))
    }

    /// Whether there is a handler for requests of this method.
    pub(crate) fn handles(&self, method: &str) -> bool {
        self.answers.iter().any(|handler| handler.method == method)
    }

    /// Hands a notification over; tells whether anyone takes it.
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
