use std::sync::Arc;

use mcp_wire::{Era, LogLevel, RpcError, method};
use raw_json::RawJson;

use crate::{ClientRequestError, ProgressReporter, RequestContext, client::Client, declared, way::Way};

/// The way to the client of one request, for work that outlives the request's [`RequestContext`] or runs beside it.
///
/// What it sends reaches the client before the answer. Once the request is answered, or cancelled, nothing gets
/// through any more. A clone is the same way.
#[derive(Debug, Clone)]
pub struct ClientHandle {
    era: Era,
    capabilities: Option<RawJson>,
    /// What a modern client wrote as the level that it wants with this request.
    log_level: Option<RawJson>,
    client: Option<Arc<Client>>,
    progress: ProgressReporter,
}

impl ClientHandle {
    pub(crate) fn of(cx: &RequestContext) -> Self {
        Self {
            era: cx.era(),
            capabilities: cx.client_capabilities(),
            log_level: cx.outline.rare().log_level.clone(),
            client: cx.client.clone(),
            progress: cx.progress.clone(),
        }
    }

    /// The capabilities that the client declared: with this request in the modern era, when it opened the connection
    /// in the legacy one.
    #[must_use]
    pub fn capabilities(&self) -> Option<&RawJson> {
        self.capabilities.as_ref()
    }

    /// Where reports of the request's progress go.
    #[must_use]
    pub fn progress(&self) -> &ProgressReporter {
        &self.progress
    }

    /// The lowest level of log messages that the client wants with this request; nothing when it wants none, or there
    /// is no way to tell it.
    #[must_use]
    pub fn log_level(&self) -> Option<LogLevel> {
        let _way = self.way()?;
        match self.era {
            Era::Modern => self.log_level.as_ref()?.string()?.parse().ok(),
            Era::Legacy => self.client.as_ref()?.log_level(),
        }
    }

    /// Passes on a log message: an object with `data` and perhaps `logger`. Its `level` is put in or replaced.
    ///
    /// It reaches the client before the answer, if the client wants messages of this level; it never blocks, and is
    /// dropped when the way to the client is full.
    pub fn log(&self, level: LogLevel, message: &RawJson) {
        let is_wanted = self.log_level().is_some_and(|lowest| lowest <= level);
        let Some(way) = self.way().filter(|_| is_wanted) else {
            return;
        };
        if let Ok(params) = message.with_members(&[("level", RawJson::from(level.as_str()))]) {
            let _ = way.send(mcp_wire::notification(method::LOG_MESSAGE, Some(&params)));
        }
    }

    /// Checks that the client declared the capability to be asked this, such as `elicitation/create`.
    ///
    /// # Errors
    /// The error to answer the request with when the client did not.
    pub fn check_askable(&self, method: &str, params: Option<&RawJson>) -> Result<(), RpcError> {
        declared::check(self.capabilities.as_ref(), method, params)
    }

    /// Asks a legacy client for something while its request is worked on: see [`RequestContext::ask`].
    ///
    /// # Errors
    /// When the client cannot be asked, does not answer, or answers with an error.
    pub async fn ask(&self, method: &str, params: Option<&RawJson>) -> Result<RawJson, ClientRequestError> {
        let (Era::Legacy, Some(client)) = (self.era, &self.client) else {
            return Err(ClientRequestError::NoChannel);
        };
        // Before the way is looked for: a client that can be asked nothing has none, and this says what is missing.
        self.check_askable(method, params)
            .map_err(ClientRequestError::NotDeclared)?;
        let way = self.way().ok_or(ClientRequestError::NoChannel)?;
        client.asked.ask(way, method, params).await
    }

    fn way(&self) -> Option<&Arc<Way>> {
        self.progress.0.as_ref()
    }
}
