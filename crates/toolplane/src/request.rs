use std::{sync::Arc, time::Duration};

use raw_json::RawJson;
use tool_core::{
    Arguments, Ask, Caller, ClientCapabilities, ClientKey, Feature, Progress, RequestExtras, Resume, Target,
    Task, TaskMode, TaskRequest, Tool, ToolError, TraceContext,
};
use tool_policy::ApprovalLayer;
use tool_runtime::CacheLayer;

/// A call to be made.
#[derive(Clone)]
#[must_use]
// It goes through many hands: boxed, what it is made of is moved by none of them.
pub struct CallRequest(pub(crate) Box<RequestParts>);

/// What a call is made of before it is known what it is addressed to.
#[derive(Clone)]
pub(crate) struct RequestParts {
    pub(crate) address: Address,
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

/// What a call is addressed to, by name.
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
    /// The kind of thing that is looked for, and by what.
    pub(crate) fn wanted(&self) -> (Feature, &str) {
        match self {
            Self::Tool(name) | Self::Task { tool: name, .. } => (Feature::Tool, name),
            Self::Prompt(name) | Self::CompletePrompt(name) => (Feature::Prompt, name),
            Self::Resource(uri) => (Feature::Resource, uri),
            Self::CompleteTemplate(uri) => (Feature::ResourceTemplate, uri),
        }
    }

    /// The target of the call, once this was found for it.
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

impl CallRequest {
    /// A call of this tool without arguments, by the local caller.
    #[inline]
    pub fn new(tool: impl Into<Arc<str>>) -> Self {
        Self::to(Address::Tool(tool.into()))
    }

    /// Has this prompt of a server rendered. The result is in MCP's own shape.
    pub fn prompt(name: impl Into<Arc<str>>) -> Self {
        Self::to(Address::Prompt(name.into()))
    }

    /// Reads the resource of this URI from its server. The result is in MCP's own shape.
    pub fn resource(uri: impl Into<Arc<str>>) -> Self {
        Self::to(Address::Resource(uri.into()))
    }

    /// Completes an argument of this prompt; the arguments of the call are the protocol's `argument` and `context`.
    pub fn complete_prompt(name: impl Into<Arc<str>>) -> Self {
        Self::to(Address::CompletePrompt(name.into()))
    }

    /// Completes a variable of this resource template; the arguments of the call are the protocol's `argument` and
    /// `context`.
    pub fn complete_template(uri_template: impl Into<Arc<str>>) -> Self {
        Self::to(Address::CompleteTemplate(uri_template.into()))
    }

    /// Asks something about a task that a call of this tool became: see
    /// [`Outcome::Task`](tool_core::Outcome::Task).
    pub fn task(tool: impl Into<Arc<str>>, task: Task, request: TaskRequest) -> Self {
        let tool = tool.into();
        Self::to(Address::Task { tool, task, request })
    }

    #[inline]
    fn to(address: Address) -> Self {
        Self(Box::new(RequestParts {
            address,
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

    /// Calls with these arguments.
    #[inline]
    pub fn arguments(mut self, arguments: Arguments) -> Self {
        self.0.arguments = Some(Arc::new(arguments));
        self
    }

    /// Calls with these arguments, given as the text of a JSON object.
    ///
    /// # Errors
    /// When the text is no JSON object or has a duplicate key.
    pub fn json(self, text: impl Into<String>) -> Result<Self, ToolError> {
        Ok(self.arguments(Arguments::parse(text.into())?))
    }

    /// Calls with these arguments, cut out of a message.
    ///
    /// # Errors
    /// As [`CallRequest::json`].
    pub fn raw(self, raw: RawJson) -> Result<Self, ToolError> {
        Ok(self.arguments(Arguments::from_raw(raw)?))
    }

    /// Calls with these arguments, cut out of a message that was checked as a whole: see
    /// [`Arguments::from_checked`].
    ///
    /// # Errors
    /// When the value is no object.
    #[inline]
    pub fn checked(self, raw: RawJson) -> Result<Self, ToolError> {
        Ok(self.arguments(Arguments::from_checked(raw)?))
    }

    /// Calls on this caller's behalf.
    #[inline]
    pub fn caller(mut self, caller: Arc<Caller>) -> Self {
        self.0.caller = Some(caller);
        self
    }

    /// Gives up after this time, if the tool's own limit does not come first.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.0.deadline = Some(deadline);
        self
    }

    /// Passes the tool's progress on to this.
    #[inline]
    pub fn progress(mut self, progress: Arc<dyn Progress>) -> Self {
        self.0.progress = Some(progress);
        self
    }

    /// Says which client calls, so that what a server keeps for a session is kept for this one alone. A client that
    /// can be asked is known by that: see [`Ask::client`].
    #[inline]
    pub fn client(mut self, client: ClientKey) -> Self {
        self.0.client = Some(client);
        self
    }

    /// Says which questions the client declared to answer, for a call that has no way back to it: a server's connection
    /// that is kept for the client is found by them. [`CallRequest::ask`] knows better.
    #[inline]
    pub fn client_capabilities(mut self, capabilities: ClientCapabilities) -> Self {
        self.0.client_capabilities = capabilities;
        self
    }

    /// Gives the tool a way back to the caller's client, for questions and log messages.
    #[inline]
    pub fn ask(mut self, ask: Arc<dyn Ask>) -> Self {
        self.0.ask = Some(ask);
        self
    }

    /// Makes another round of a call that needed input: see [`Outcome::NeedsInput`](tool_core::Outcome::NeedsInput).
    pub fn resume(mut self, resume: Resume) -> Self {
        self.0.extras.resume = Some(Arc::new(resume));
        self
    }

    /// Passes this object on beside the arguments, as the `_meta` of an MCP request.
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

    /// Has the call made for itself: it is not answered from a cache, nor with the answer of another call, and its own is
    /// not kept. Gateways that it passes on its way are told the same.
    pub fn bypass_cache(self) -> Self {
        self.more_meta(&[(CacheLayer::META_KEY, RawJson::from(CacheLayer::BYPASS))])
    }

    /// Makes the call with the approval of this handle, which [`Outcome::Pending`](tool_core::Outcome::Pending) named.
    pub fn approval(self, handle: &str) -> Self {
        self.more_meta(&[(ApprovalLayer::META_KEY, RawJson::from(handle))])
    }

    /// Adds members to what is passed on beside the arguments.
    pub(crate) fn more_meta(mut self, members: &[(&str, RawJson)]) -> Self {
        let meta = self.0.extras.meta.take().unwrap_or_else(RawJson::object);
        // What is no object has no members, and stays as it is.
        self.0.extras.meta = Some(meta.with_members(members).unwrap_or(meta));
        self
    }

    /// Lets the call become a task, or asks for that.
    #[inline]
    pub fn task_mode(mut self, mode: TaskMode) -> Self {
        self.0.extras.task = Some(mode);
        self
    }

    /// Makes the call once, however often it is made with this key: one that is made again, with the same tool and
    /// arguments and on behalf of the same principal, waits for the first or has its answer. A key is 1 to 255 visible
    /// ASCII characters.
    ///
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

    /// Makes the call a part of this trace.
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
