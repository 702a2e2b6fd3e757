use std::{sync::Arc, time::Duration};

use raw_json::RawJson;
use serde::Serialize;
use tool_core::{
    Arguments, Ask, Caller, ClientCapabilities, ClientKey, Feature, Progress, RequestExtras, Resume, Target,
    Task, TaskMode, TaskRequest, Tool, ToolError, TraceContext,
};
use tool_policy::ApprovalLayer;
use tool_runtime::CacheLayer;

/// Request for a call.
#[derive(Clone)]
#[must_use]
// Boxed, since it passes through many functions, and moving it then moves a pointer.
pub struct CallRequest(pub(crate) Box<RequestParts>);

/// Parts of a request before its target is resolved.
#[derive(Clone)]
pub(crate) struct RequestParts {
    pub(crate) address: Address,
    /// Requested version of a tool: what follows `@` in `tool@version`.
    pub(crate) version: Option<Arc<str>>,
    /// `None` if the call has no arguments.
    pub(crate) arguments: Option<Arc<Arguments>>,
    /// `None` for the local caller.
    pub(crate) caller: Option<Arc<Caller>>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) progress: Option<Arc<dyn Progress>>,
    pub(crate) trace: Option<TraceContext>,
    pub(crate) client: Option<ClientKey>,
    pub(crate) client_capabilities: ClientCapabilities,
    pub(crate) ask: Option<Arc<dyn Ask>>,
    pub(crate) extras: RequestExtras,
}

/// Target of a call, by name.
#[derive(Debug, Clone)]
pub(crate) enum Address {
    Tool(Arc<str>),
    Prompt(Arc<str>),
    Resource(Arc<str>),
    CompletePrompt(Arc<str>),
    CompleteTemplate(Arc<str>),
    Task {
        tool: Arc<str>,
        task: Task,
        request: TaskRequest,
    },
}

impl Address {
    /// Returns the kind and the name or URI to look up.
    pub(crate) fn wanted(&self) -> (Feature, &str) {
        match self {
            Self::Tool(name) | Self::Task { tool: name, .. } => (Feature::Tool, name),
            Self::Prompt(name) | Self::CompletePrompt(name) => (Feature::Prompt, name),
            Self::Resource(uri) => (Feature::Resource, uri),
            Self::CompleteTemplate(uri) => (Feature::ResourceTemplate, uri),
        }
    }

    /// Returns the target, once it was found.
    pub(crate) fn target(&self, found: Arc<Tool>) -> Target {
        match self {
            Self::Tool(_) => Target::Tool(found),
            Self::Prompt(_) => Target::Prompt(found),
            Self::Resource(uri) => Target::Resource {
                resource: found,
                uri: uri.clone(),
            },
            Self::CompletePrompt(_) | Self::CompleteTemplate(_) => Target::Completion(found),
            Self::Task { task, request, .. } => Target::Task {
                tool: found,
                task: task.clone(),
                request: request.clone(),
            },
        }
    }
}

impl RequestParts {
    /// Returns the name and the requested version of a tool; `None` if the call requests no version. A tool's name never
    /// has an `@`.
    pub(crate) fn versioned(&self) -> Option<(&str, &str)> {
        let Address::Tool(name) = &self.address else {
            return None;
        };
        match &self.version {
            Some(version) => Some((name, version)),
            None => name.split_once('@'),
        }
    }
}

impl CallRequest {
    /// Key in `_meta` under which a client requests a version of a tool.
    pub const VERSION_KEY: &'static str = "dev.toolplane/version";

    /// Creates a call of this tool without arguments, by the local caller.
    #[inline]
    pub fn new(tool: impl Into<Arc<str>>) -> Self {
        Self::to(Address::Tool(tool.into()))
    }

    /// Creates a request to render a prompt of a server. The result is in MCP's shape.
    pub fn prompt(name: impl Into<Arc<str>>) -> Self {
        Self::to(Address::Prompt(name.into()))
    }

    /// Creates a request to read the resource with this URI. The result is in MCP's shape.
    pub fn resource(uri: impl Into<Arc<str>>) -> Self {
        Self::to(Address::Resource(uri.into()))
    }

    /// Creates a request to complete an argument of a prompt; the call's arguments are the protocol's `argument` and
    /// `context`.
    pub fn complete_prompt(name: impl Into<Arc<str>>) -> Self {
        Self::to(Address::CompletePrompt(name.into()))
    }

    /// Creates a request to complete a variable of a resource template; the call's arguments are the protocol's
    /// `argument` and `context`.
    pub fn complete_template(uri_template: impl Into<Arc<str>>) -> Self {
        Self::to(Address::CompleteTemplate(uri_template.into()))
    }

    /// Creates a request about a task that a call of this tool has become: see
    /// [`Outcome::Task`](tool_core::Outcome::Task).
    pub fn task(tool: impl Into<Arc<str>>, task: Task, request: TaskRequest) -> Self {
        let tool = tool.into();
        Self::to(Address::Task { tool, task, request })
    }

    #[inline]
    fn to(address: Address) -> Self {
        Self(Box::new(RequestParts {
            address,
            version: None,
            arguments: None,
            caller: None,
            deadline: None,
            progress: None,
            trace: None,
            client: None,
            client_capabilities: ClientCapabilities::default(),
            ask: None,
            extras: RequestExtras::default(),
        }))
    }

    /// Requests a version of the tool: an exact version, a range such as `^1.2`, `latest`, or `sha256:` and the digits of
    /// a digest, see [`VersionRequest`](tool_registry::VersionRequest). The call fails if there is none. The name
    /// `tool@version` requests one as well.
    ///
    /// # Examples
    /// ```
    /// use toolplane::CallRequest;
    ///
    /// let exact = CallRequest::new("weather").version("1.4.2");
    /// let range = CallRequest::new("weather@^1.2");
    /// ```
    pub fn version(mut self, version: impl Into<Arc<str>>) -> Self {
        self.0.version = Some(version.into());
        self
    }

    /// Sets the arguments.
    #[inline]
    pub fn arguments(mut self, arguments: Arguments) -> Self {
        self.0.arguments = Some(Arc::new(arguments));
        self
    }

    /// Sets the arguments from a value that serializes to a JSON object, such as a struct or a map.
    ///
    /// # Errors
    /// If the value does not serialize, or not to an object.
    ///
    /// # Examples
    /// ```
    /// use std::collections::BTreeMap;
    /// use toolplane::CallRequest;
    ///
    /// let request = CallRequest::new("weather").args(&BTreeMap::from([("city", "Saint \"Oslo\"")]))?;
    /// # Ok::<(), toolplane::core::ToolError>(())
    /// ```
    pub fn args(self, arguments: &(impl Serialize + ?Sized)) -> Result<Self, ToolError> {
        Ok(self.arguments(Arguments::from_serialize(arguments)?))
    }

    /// Sets the arguments from the text of a JSON object.
    ///
    /// # Errors
    /// If the text is not a JSON object or has a duplicate key.
    pub fn json(self, text: impl Into<String>) -> Result<Self, ToolError> {
        Ok(self.arguments(Arguments::parse(text.into())?))
    }

    /// Sets the arguments from a value that was cut out of a message.
    ///
    /// # Errors
    /// The errors of [`CallRequest::json`].
    pub fn raw(self, raw: RawJson) -> Result<Self, ToolError> {
        Ok(self.arguments(Arguments::from_raw(raw)?))
    }

    /// Sets the arguments from a value whose message was checked as a whole: see [`Arguments::from_checked`].
    ///
    /// # Errors
    /// If the value is not an object.
    #[inline]
    pub fn checked(self, raw: RawJson) -> Result<Self, ToolError> {
        Ok(self.arguments(Arguments::from_checked(raw)?))
    }

    /// Sets the caller.
    #[inline]
    pub fn caller(mut self, caller: Arc<Caller>) -> Self {
        self.0.caller = Some(caller);
        self
    }

    /// Sets the time limit of the call. The tool's own limit applies as well.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.0.deadline = Some(deadline);
        self
    }

    /// Sets the receiver of the tool's progress.
    #[inline]
    pub fn progress(mut self, progress: Arc<dyn Progress>) -> Self {
        self.0.progress = Some(progress);
        self
    }

    /// Sets the key of the calling client, for servers with state per session. A client that can be asked has a key
    /// already: see [`Ask::client`].
    #[inline]
    pub fn client(mut self, client: ClientKey) -> Self {
        self.0.client = Some(client);
        self
    }

    /// Sets the questions that the client declared to answer, for a call without a way back to it: they select a
    /// server's connection for the client. [`CallRequest::ask`] has precedence.
    #[inline]
    pub fn client_capabilities(mut self, capabilities: ClientCapabilities) -> Self {
        self.0.client_capabilities = capabilities;
        self
    }

    /// Sets the way back to the caller's client, for questions and log messages.
    #[inline]
    pub fn ask(mut self, ask: Arc<dyn Ask>) -> Self {
        self.0.ask = Some(ask);
        self
    }

    /// Continues a call that needed input with another round: see
    /// [`Outcome::NeedsInput`](tool_core::Outcome::NeedsInput).
    pub fn resume(mut self, resume: Resume) -> Self {
        self.0.extras.resume = Some(Arc::new(resume));
        self
    }

    /// Sets the `_meta` of the request, which the executor receives verbatim.
    #[inline]
    pub fn meta(mut self, meta: RawJson) -> Self {
        self.0.extras.meta = Some(meta);
        self
    }

    /// Forwards the members of this object to the executor verbatim, in addition to all others: members of an MCP request
    /// that toolplane does not know.
    pub fn extra_params(mut self, members: RawJson) -> Self {
        self.0.extras.extra_params = Some(members);
        self
    }

    /// Bypasses the cache: the call is not answered from it, shares no execution, and its result is not stored.
    /// Gateways on its way do the same.
    pub fn bypass_cache(self) -> Self {
        self.more_meta(&[(CacheLayer::META_KEY, RawJson::from(CacheLayer::BYPASS))])
    }

    /// Makes the call with the approval of this handle, which [`Outcome::Pending`](tool_core::Outcome::Pending)
    /// contains.
    pub fn approval(self, handle: &str) -> Self {
        self.more_meta(&[(ApprovalLayer::META_KEY, RawJson::from(handle))])
    }

    /// Adds members to `_meta`.
    pub(crate) fn more_meta(mut self, members: &[(&str, RawJson)]) -> Self {
        let meta = self.0.extras.meta.take().unwrap_or_else(RawJson::object);
        // A value that is not an object has no members and stays as it is.
        self.0.extras.meta = Some(meta.with_members(members).unwrap_or(meta));
        self
    }

    /// Allows or requests that the call becomes a task.
    #[inline]
    pub fn task_mode(mut self, mode: TaskMode) -> Self {
        self.0.extras.task = Some(mode);
        self
    }

    /// Sets the idempotency key: calls with equal keys have their effect once. A repeated call with the same tool,
    /// arguments and principal waits for the first or has its answer. A key is 1 to 255 visible ASCII characters.
    ///
    /// # Examples
    /// ```
    /// # use toolplane::{CallRequest, Toolplane};
    /// # async fn example(plane: &Toolplane) -> Result<(), Box<dyn std::error::Error>> {
    /// let request = CallRequest::new("pay").json(r#"{"invoice": 7}"#)?.idempotency_key("invoice-7");
    /// let first = plane.call(request.clone()).await;
    /// let again = plane.call(request).await; // pays nothing
    /// # Ok(())
    /// # }
    /// ```
    pub fn idempotency_key(mut self, key: impl Into<Arc<str>>) -> Self {
        self.0.extras.idempotency_key = Some(key.into());
        self
    }

    /// Sets the trace context.
    #[inline]
    pub fn trace(mut self, trace: TraceContext) -> Self {
        self.0.trace = Some(trace);
        self
    }
}

impl std::fmt::Debug for CallRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallRequest")
            .field("address", &self.0.address)
            .field("caller", &self.0.caller)
            .field("deadline", &self.0.deadline)
            .finish_non_exhaustive()
    }
}
