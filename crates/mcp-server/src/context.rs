use std::{fmt, sync::Arc, time::Duration};

use http::HeaderName;
use mcp_wire::{Era, LogLevel, Revision, RpcError, meta_key};
use raw_json::{JsonKind, RawJson};

use crate::{
    ClientHandle, ClientRequestError, ProgressReporter, client::Client, declared, outline::Outline,
    way::PAUSE,
};

/// What is known about a request besides the request itself.
#[derive(Debug)]
pub struct RequestContext {
    pub(crate) revision: Revision,
    pub(crate) outline: Outline,
    pub(crate) client: Option<Arc<Client>>,
    pub(crate) session: Option<Arc<str>>,
    pub(crate) connection: Option<u64>,
    pub(crate) connection_name: Option<Arc<str>>,
    pub(crate) principal: Principal,
    pub(crate) progress: ProgressReporter,
    /// Whether the headers of the HTTP request name a trace.
    pub(crate) is_traced: bool,
    /// Boxed, since it is large and every request is moved from hand to hand.
    pub(crate) http: Option<Box<http::request::Parts>>,
}

impl RequestContext {
    /// The revision that the request is written in.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The era of that revision.
    #[must_use]
    pub fn era(&self) -> Era {
        self.revision.era()
    }

    /// On whose behalf the request is made.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The legacy session that the request belongs to; nothing on stdio, in the modern era, and for a client that
    /// does without.
    #[must_use]
    pub fn session(&self) -> Option<&Arc<str>> {
        self.session.as_ref()
    }

    /// A number that stands for the client as long as it is connected: of its connection on stdio, of its legacy session
    /// over HTTP. No two in this process have the same, and clients never see it. Nothing for a request over HTTP
    /// without a session: who sent the one before cannot be told.
    #[must_use]
    pub fn connection(&self) -> Option<u64> {
        self.connection
    }

    /// The digits of that number, written once for all requests of the client.
    #[must_use]
    pub fn connection_name(&self) -> Option<&Arc<str>> {
        self.connection_name.as_ref()
    }

    /// The head of the HTTP request with headers and extensions; nothing on stdio.
    #[must_use]
    pub fn http(&self) -> Option<&http::request::Parts> {
        self.http.as_deref()
    }

    /// Where reports of progress go.
    #[must_use]
    pub fn progress(&self) -> &ProgressReporter {
        &self.progress
    }

    /// The `_meta` of the request, as the client wrote it.
    #[must_use]
    pub fn meta(&self) -> Option<&RawJson> {
        self.outline.meta.as_ref()
    }

    /// The `_meta` of the request, if it says anything beside what the protocol itself says there.
    #[must_use]
    pub fn custom_meta(&self) -> Option<&RawJson> {
        self.meta().filter(|_| self.outline.has_more_meta)
    }

    /// The `name` among the parameters of the request: of a tool or prompt.
    ///
    /// The protocol's own checks read the parameters once; what they found is here, so that a service need not look
    /// again.
    #[must_use]
    pub fn name(&self) -> Option<&RawJson> {
        self.outline.name.as_ref()
    }

    /// The `uri` among the parameters of the request: of a resource.
    #[must_use]
    pub fn uri(&self) -> Option<&RawJson> {
        self.outline.rare().uri.as_ref()
    }

    /// The `arguments` among the parameters of the request, of whatever kind they are.
    #[must_use]
    pub fn arguments(&self) -> Option<&RawJson> {
        self.outline.arguments.as_ref()
    }

    /// The `task` among the parameters of the request: how a legacy client wants a call run as a task.
    #[must_use]
    pub fn task(&self) -> Option<&RawJson> {
        self.outline.rare().task.as_ref()
    }

    /// The `taskId` among the parameters of the request: of the task that is asked about.
    #[must_use]
    pub fn task_id(&self) -> Option<&RawJson> {
        self.outline.rare().task_id.as_ref()
    }

    /// The capabilities that the client declared: with this request in the modern era, when it opened the connection
    /// in the legacy one.
    #[must_use]
    pub fn client_capabilities(&self) -> Option<RawJson> {
        match self.era() {
            Era::Modern => self.outline.capabilities.clone(),
            Era::Legacy => self.client.as_ref()?.capabilities.clone(),
        }
    }

    /// What the client calls itself. It is not verified: good for logs, not for decisions.
    #[must_use]
    pub fn client_info(&self) -> Option<RawJson> {
        match self.era() {
            Era::Modern => self.outline.meta.as_ref()?.get(meta_key::CLIENT_INFO),
            Era::Legacy => self.client.as_ref()?.info.clone(),
        }
    }

    /// What the client gave for a question of the round before, by the question's key; nothing if it gave no object.
    #[must_use]
    pub fn input_response(&self, key: &str) -> Option<RawJson> {
        let response = self.outline.rare().input_responses.as_ref()?.get(key)?;
        (response.kind() == JsonKind::Object).then_some(response)
    }

    /// All that the client gave for the questions of the round before, as it was written.
    #[must_use]
    pub fn input_responses(&self) -> Option<&RawJson> {
        self.outline.rare().input_responses.as_ref()
    }

    /// The state that the client gives back from the round before. It may be anybody's: see
    /// [`StateSeal`](crate::StateSeal).
    #[must_use]
    pub fn request_state(&self) -> Option<String> {
        self.outline.rare().request_state.as_ref()?.string()
    }

    /// The way to the client, to be kept by work that outlives this context or runs beside it.
    #[must_use]
    pub fn client(&self) -> ClientHandle {
        ClientHandle::of(self)
    }

    /// Whether the client declared that it can be asked anything at all, and there is a way to ask: while the request is
    /// worked on in the legacy era, with an [`InputRequired`](crate::InputRequired) in the modern one.
    #[must_use]
    pub fn is_askable(&self) -> bool {
        match self.era() {
            Era::Modern => self
                .outline
                .capabilities
                .as_ref()
                .is_some_and(declared::is_askable),
            Era::Legacy => {
                self.progress.0.is_some() && self.client.as_ref().is_some_and(|client| client.is_askable)
            }
        }
    }

    /// Whether there is a way on which the client is asked or told anything beside progress while the request is worked
    /// on, and it wants that: if not, [`RequestContext::client`] is of no use.
    #[must_use]
    pub fn has_back_channel(&self) -> bool {
        self.progress.0.is_some() && self.may_tell()
    }

    /// The lowest level of log messages that the client wants with this request; nothing when it wants none, or there
    /// is no way to tell it.
    #[must_use]
    pub fn log_level(&self) -> Option<LogLevel> {
        self.client().log_level()
    }

    /// Passes on a log message: see [`ClientHandle::log`].
    pub fn log(&self, level: LogLevel, message: &RawJson) {
        self.client().log(level, message);
    }

    /// Checks that the client declared the capability to be asked this, such as `elicitation/create`.
    ///
    /// # Errors
    /// The error to answer the request with when the client did not.
    pub fn check_askable(&self, method: &str, params: Option<&RawJson>) -> Result<(), RpcError> {
        declared::check(self.client_capabilities().as_ref(), method, params)
    }

    /// Whether the client declared an extension.
    #[must_use]
    pub fn declares_extension(&self, name: &str) -> bool {
        declared::has_extension(self.client_capabilities().as_ref(), name)
    }

    /// Checks that a modern client declared an extension with the request.
    ///
    /// # Errors
    /// The error to answer the request with when the client did not.
    pub fn check_extension(&self, name: &str) -> Result<(), RpcError> {
        declared::check_extension(self.client_capabilities().as_ref(), name)
    }

    /// Asks a legacy client for something while its request is worked on: `elicitation/create`,
    /// `sampling/createMessage` or `roots/list`.
    ///
    /// The question goes the way of the request that it belongs to. There is no limit of time: users may think as long
    /// as the service lets them. When the future is dropped, the client is told that the question is void.
    ///
    /// # Errors
    /// When the client cannot be asked, does not answer, or answers with an error.
    pub async fn ask(&self, method: &str, params: Option<&RawJson>) -> Result<RawJson, ClientRequestError> {
        self.client().ask(method, params).await
    }

    /// Ends the stream on which a legacy client waits for the answer, and has it come back after this time: for a long
    /// call, during which no connection is to be kept.
    ///
    /// What is told and answered meanwhile waits for the client. It does nothing where the client knows no such pause:
    /// before 2025-11-25, in the modern era, outside of a session, and on stdio.
    pub fn pause_stream(&self, retry: Duration) {
        let is_known =
            self.revision == Revision::V2025_11_25 && self.session.is_some() && self.http.is_some();
        if let Some(way) = self.progress.0.as_ref().filter(|_| is_known) {
            let _ = way.send([PAUSE, retry.as_millis().to_string().as_bytes()].concat());
        }
    }

    /// Whether the service may want a way to the client besides the answer, for more than progress.
    pub(crate) fn may_tell(&self) -> bool {
        match self.era() {
            Era::Modern => self.outline.rare().log_level.is_some(),
            Era::Legacy => self
                .client
                .as_ref()
                .is_some_and(|client| client.is_askable || client.log_level().is_some()),
        }
    }

    /// The client's trace in the form of the W3C headers `traceparent` and `tracestate`: from `_meta`, which speaks of
    /// this very request, or else from the headers of the HTTP request.
    #[must_use]
    pub fn trace(&self) -> Option<(String, Option<String>)> {
        self.trace_of_meta().or_else(|| self.trace_of_headers())
    }

    fn trace_of_meta(&self) -> Option<(String, Option<String>)> {
        let meta = self.custom_meta()?;
        let parent = meta.get(meta_key::TRACE_PARENT)?.string()?;
        let state = meta.get(meta_key::TRACE_STATE).and_then(|state| state.string());
        Some((parent, state))
    }

    fn trace_of_headers(&self) -> Option<(String, Option<String>)> {
        static PARENT: HeaderName = HeaderName::from_static(meta_key::TRACE_PARENT);
        static STATE: HeaderName = HeaderName::from_static(meta_key::TRACE_STATE);
        let headers = &self.http.as_ref().filter(|_| self.is_traced)?.headers;
        // More than one parent is none. The state may come in several headers, which are one list.
        let mut parents = headers.get_all(&PARENT).iter();
        let parent = parents.next().filter(|_| parents.next().is_none())?;
        let parent = parent.to_str().ok()?.to_owned();
        let states = headers.get_all(&STATE).iter();
        let states: Option<Vec<&str>> = states.map(|state| state.to_str().ok()).collect();
        Some((
            parent,
            states
                .filter(|states| !states.is_empty())
                .map(|states| states.join(",")),
        ))
    }
}

impl Drop for RequestContext {
    fn drop(&mut self) {
        // Also when the request is cancelled: nothing may follow.
        if let Some(way) = &self.progress.0 {
            way.close();
        }
    }
}

/// On whose behalf a request is made. Sessions belong to the principal that opened them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// A principal by its name.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name, to be kept.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.0
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
