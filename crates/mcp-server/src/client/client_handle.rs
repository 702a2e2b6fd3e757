use std::sync::Arc;

use mcp_wire::{Era, LogLevel, RpcError, method};
use raw_json::RawJson;

use super::{
    capabilities, client_requests::ClientRequestError, event_sender::EventSender,
    legacy_client::LegacyClient, progress::ProgressReporter,
};

/// Channel to the client of one request, for work that outlives the request's
/// [`RequestContext`](crate::RequestContext) or runs in parallel.
///
/// Messages reach the client before the response. Once the request is answered or cancelled, none is delivered any more. A
/// clone is the same channel.
#[derive(Debug, Clone)]
pub struct ClientHandle {
    pub(crate) era: Era,
    pub(crate) capabilities: Option<RawJson>,
    /// Level of log messages that a modern client wants with this request, as it was written.
    pub(crate) log_level: Option<RawJson>,
    pub(crate) client: Option<Arc<LegacyClient>>,
    pub(crate) progress: ProgressReporter,
}

impl ClientHandle {
    /// Returns the capabilities that the client declared: with this request in the modern era, when it opened the connection
    /// in the legacy era.
    #[must_use]
    pub fn capabilities(&self) -> Option<&RawJson> {
        self.capabilities.as_ref()
    }

    /// Returns the reporter of the request's progress.
    #[must_use]
    pub fn progress(&self) -> &ProgressReporter {
        &self.progress
    }

    /// Returns the lowest level of log messages that the client wants with this request. Returns `None` if it wants none, or
    /// there is no channel to it.
    #[must_use]
    pub fn log_level(&self) -> Option<LogLevel> {
        let _sender = self.sender()?;
        match self.era {
            Era::Modern => self.log_level.as_ref()?.string()?.parse().ok(),
            Era::Legacy => self.client.as_ref()?.log_level(),
        }
    }

    /// Sends a log message: an object with `data`, and optionally `logger`. Its `level` is inserted or replaced.
    ///
    /// The message reaches the client before the response, if the client wants messages of this level. It never blocks, and
    /// is dropped if the channel is full.
    pub fn log(&self, level: LogLevel, message: &RawJson) {
        let is_wanted = self.log_level().is_some_and(|lowest| lowest <= level);
        let Some(sender) = self.sender().filter(|_| is_wanted) else {
            return;
        };
        if let Ok(params) = message.with_members(&[("level", RawJson::from(level.as_str()))]) {
            let _ = sender.send(mcp_wire::notification(method::LOG_MESSAGE, Some(&params)));
        }
    }

    /// Checks that the client declared the capability for this request to it, such as `elicitation/create`.
    ///
    /// # Errors
    /// Returns the error to answer the client's own request with if it did not.
    pub fn check_askable(&self, method: &str, params: Option<&RawJson>) -> Result<(), RpcError> {
        capabilities::check(self.capabilities.as_ref(), method, params)
    }

    /// Sends a request to a legacy client while its own request runs: see
    /// [`RequestContext::ask`](crate::RequestContext::ask).
    ///
    /// # Cancellation
    /// When the future is dropped, the client is notified that the request is cancelled.
    ///
    /// # Errors
    /// Fails if the client cannot be asked, does not answer, or answers with an error.
    pub async fn ask(&self, method: &str, params: Option<&RawJson>) -> Result<RawJson, ClientRequestError> {
        let (Era::Legacy, Some(client)) = (self.era, &self.client) else {
            return Err(ClientRequestError::NoChannel);
        };
        // Checked first: a client without such capabilities has no channel, and this error names the missing one.
        self.check_askable(method, params)
            .map_err(ClientRequestError::NotDeclared)?;
        let sender = self.sender().ok_or(ClientRequestError::NoChannel)?;
        client.requests.ask(sender, method, params).await
    }

    fn sender(&self) -> Option<&Arc<EventSender>> {
        self.progress.0.as_ref()
    }
}
