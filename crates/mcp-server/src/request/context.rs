use std::{borrow::Cow, sync::Arc, time::Duration};

use http::HeaderName;
use mcp_wire::{Era, LogLevel, Revision, RpcError, meta_key};
use raw_json::{JsonKind, RawJson};

use super::parsed_params::ParsedParams;
use crate::{
    ClientHandle, ClientRequestError, Principal, ProgressReporter,
    client::{LegacyClient, capabilities},
};

/// Everything that is known about a request, in addition to the request itself.
#[derive(Debug)]
pub struct RequestContext {
    pub(crate) revision: Revision,
    pub(crate) params: ParsedParams,
    pub(crate) client: Option<Arc<LegacyClient>>,
    pub(crate) session: Option<Arc<str>>,
    pub(crate) connection: Option<u64>,
    pub(crate) connection_name: Option<Arc<str>>,
    pub(crate) principal: Principal,
    pub(crate) progress: ProgressReporter,
    /// `true` if the headers of the HTTP request name a trace.
    pub(crate) is_traced: bool,
    /// Head of the HTTP request. Shared, since it is large and the context is moved often.
    pub(crate) http: Option<Arc<http::request::Parts>>,
    /// `true` if this is a copy, whose end is not that of the request.
    pub(crate) is_copy: bool,
}

impl RequestContext {
    /// Returns a copy for code that cannot borrow the context. Its channel to the client is closed with that of the original.
    pub(crate) fn copy(&self) -> Self {
        Self {
            revision: self.revision,
            params: self.params.clone(),
            client: self.client.clone(),
            session: self.session.clone(),
            connection: self.connection,
            connection_name: self.connection_name.clone(),
            principal: self.principal.clone(),
            progress: self.progress.clone(),
            is_traced: self.is_traced,
            http: self.http.clone(),
            is_copy: true,
        }
    }

    /// Returns the revision of the request.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns the era of that revision.
    #[must_use]
    pub fn era(&self) -> Era {
        self.revision.era()
    }

    /// Returns the principal that the request is made for.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Returns the legacy session that the request belongs to. Returns `None` on stdio, in the modern era, and for a client
    /// that does not use sessions.
    #[must_use]
    pub fn session(&self) -> Option<&Arc<str>> {
        self.session.as_ref()
    }

    /// Returns the number that identifies the client while it is connected: that of its connection on stdio, or of its
    /// legacy session over HTTP. Numbers are unique in this process, and clients never see them. Returns `None` for a
    /// request over HTTP without a session, whose client cannot be told from others.
    #[must_use]
    pub fn connection(&self) -> Option<u64> {
        self.connection
    }

    /// Returns the digits of that number, formatted once for all requests of the client.
    #[must_use]
    pub fn connection_name(&self) -> Option<&Arc<str>> {
        self.connection_name.as_ref()
    }

    /// Returns the head of the HTTP request with headers and extensions. Returns `None` on stdio.
    #[must_use]
    pub fn http(&self) -> Option<&http::request::Parts> {
        self.http.as_deref()
    }

    /// Returns the reporter of the request's progress.
    #[must_use]
    pub fn progress(&self) -> &ProgressReporter {
        &self.progress
    }

    /// Returns the `_meta` of the request, as the client wrote it.
    #[must_use]
    pub fn meta(&self) -> Option<&RawJson> {
        self.params.meta.as_ref()
    }

    /// Returns the `_meta` of the request, if it has members that the protocol does not define.
    #[must_use]
    pub fn custom_meta(&self) -> Option<&RawJson> {
        self.meta().filter(|_| self.params.has_custom_meta)
    }

    /// Returns the `name` in the parameters of the request, that of a tool or prompt, if it is a string.
    ///
    /// The protocol's own checks read the parameters once and keep the members here, so that a service need not search them
    /// again.
    #[must_use]
    pub fn name(&self) -> Option<Cow<'_, str>> {
        self.params.name.as_ref()?.text()
    }

    /// Returns the `uri` in the parameters of the request, that of a resource, if it is a string.
    #[must_use]
    pub fn uri(&self) -> Option<Cow<'_, str>> {
        self.params.rare().uri.as_ref()?.text()
    }

    /// Returns the `arguments` in the parameters of the request, of any JSON type.
    #[must_use]
    pub fn arguments(&self) -> Option<&RawJson> {
        self.params.arguments.as_ref()
    }

    /// Returns the `task` in the parameters of the request: the settings of the task that a legacy client wants.
    #[must_use]
    pub fn task(&self) -> Option<&RawJson> {
        self.params.rare().task.as_ref()
    }

    /// Returns the `taskId` in the parameters of the request, that of the task that the request is about, if it is a string.
    #[must_use]
    pub fn task_id(&self) -> Option<Cow<'_, str>> {
        self.params.rare().task_id.as_ref()?.text()
    }

    /// Returns the capabilities that the client declared: with this request in the modern era, when it opened the connection
    /// in the legacy era.
    #[must_use]
    pub fn client_capabilities(&self) -> Option<RawJson> {
        match self.era() {
            Era::Modern => self.params.capabilities.clone(),
            Era::Legacy => self.client.as_ref()?.capabilities.clone(),
        }
    }

    /// Returns the name and version that the client claims. They are not verified: fit for logs, not for decisions.
    #[must_use]
    pub fn client_info(&self) -> Option<RawJson> {
        match self.era() {
            Era::Modern => self.params.meta.as_ref()?.get(meta_key::CLIENT_INFO),
            Era::Legacy => self.client.as_ref()?.info.clone(),
        }
    }

    /// Returns the client's answer to a question of the round before, by the question's key. Returns `None` if it is not an
    /// object.
    #[must_use]
    pub fn input_response(&self, key: &str) -> Option<RawJson> {
        let response = self.params.rare().input_responses.as_ref()?.get(key)?;
        (response.kind() == JsonKind::Object).then_some(response)
    }

    /// Returns all answers of the client to the questions of the round before, as they were written.
    #[must_use]
    pub fn input_responses(&self) -> Option<&RawJson> {
        self.params.rare().input_responses.as_ref()
    }

    /// Returns the state that the client returns from the round before. It may be forged: see
    /// [`StateSeal`](crate::StateSeal).
    #[must_use]
    pub fn request_state(&self) -> Option<String> {
        self.params.rare().request_state.as_ref()?.string()
    }

    /// Returns the channel to the client, for work that outlives this context or runs in parallel.
    #[must_use]
    pub fn client(&self) -> ClientHandle {
        ClientHandle {
            era: self.era(),
            capabilities: self.client_capabilities(),
            log_level: self.params.rare().log_level.clone(),
            client: self.client.clone(),
            progress: self.progress.clone(),
        }
    }

    /// Returns `true` if the client accepts any requests of a server, and there is a channel for them: while its own request
    /// runs in the legacy era, by an [`InputRequired`](crate::InputRequired) in the modern era.
    #[must_use]
    pub fn is_askable(&self) -> bool {
        match self.era() {
            Era::Modern => self
                .params
                .capabilities
                .as_ref()
                .is_some_and(capabilities::is_askable),
            Era::Legacy => {
                self.progress.0.is_some() && self.client.as_ref().is_some_and(|client| client.is_askable)
            }
        }
    }

    /// Returns `true` if there is a channel to the client while the request runs, and the client accepts more than progress
    /// on it: requests or log messages. Otherwise [`RequestContext::client`] is of no use.
    #[must_use]
    pub fn has_back_channel(&self) -> bool {
        self.progress.0.is_some() && self.accepts_messages()
    }

    /// Returns the lowest level of log messages that the client wants with this request. Returns `None` if it wants none, or
    /// there is no channel to it.
    #[must_use]
    pub fn log_level(&self) -> Option<LogLevel> {
        self.client().log_level()
    }

    /// Sends a log message: see [`ClientHandle::log`].
    pub fn log(&self, level: LogLevel, message: &RawJson) {
        self.client().log(level, message);
    }

    /// Checks that the client declared the capability for this request to it, such as `elicitation/create`.
    ///
    /// # Errors
    /// Returns the error to answer the client's own request with if it did not.
    pub fn check_askable(&self, method: &str, params: Option<&RawJson>) -> Result<(), RpcError> {
        capabilities::check(self.client_capabilities().as_ref(), method, params)
    }

    /// Returns `true` if the client declared an extension.
    #[must_use]
    pub fn declares_extension(&self, name: &str) -> bool {
        capabilities::has_extension(self.client_capabilities().as_ref(), name)
    }

    /// Checks that a modern client declared an extension with the request.
    ///
    /// # Errors
    /// Returns the error to answer the request with if it did not.
    pub fn check_extension(&self, name: &str) -> Result<(), RpcError> {
        capabilities::check_extension(self.client_capabilities().as_ref(), name)
    }

    /// Sends a request to a legacy client while its own request runs: `elicitation/create`, `sampling/createMessage` or
    /// `roots/list`.
    ///
    /// It is sent on the channel of the client's request. There is no timeout: the service decides how long users may think.
    ///
    /// # Cancellation
    /// When the future is dropped, the client is notified that the request is cancelled.
    ///
    /// # Errors
    /// Fails if the client cannot be asked, does not answer, or answers with an error.
    pub async fn ask(&self, method: &str, params: Option<&RawJson>) -> Result<RawJson, ClientRequestError> {
        self.client().ask(method, params).await
    }

    /// Ends the stream on which a legacy client waits for the response, and has the client resume it after this time: for a
    /// long call that should not keep a connection.
    ///
    /// Events and the response wait for the client meanwhile. Has no effect if the client does not support such pauses:
    /// before 2025-11-25, in the modern era, outside of a session, and on stdio.
    pub fn pause_stream(&self, retry: Duration) {
        let is_supported =
            self.revision == Revision::V2025_11_25 && self.session.is_some() && self.http.is_some();
        if let Some(sender) = self.progress.0.as_ref().filter(|_| is_supported) {
            sender.pause(retry);
        }
    }

    /// Returns `true` if the client accepts messages other than progress before the response: requests or log messages.
    pub(crate) fn accepts_messages(&self) -> bool {
        match self.era() {
            Era::Modern => self.params.rare().log_level.is_some(),
            Era::Legacy => self
                .client
                .as_ref()
                .is_some_and(|client| client.is_askable || client.log_level().is_some()),
        }
    }

    /// Returns the client's trace context (W3C `traceparent` and `tracestate`): from `_meta`, which belongs to this very
    /// request, or else from the headers of the HTTP request.
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
        // Several `traceparent` headers are invalid. Several `tracestate` headers are one list (W3C Trace Context, section 3).
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
        // Also if the request is cancelled: no event may follow.
        if let Some(sender) = self.progress.0.as_ref().filter(|_| !self.is_copy) {
            sender.close();
        }
    }
}
