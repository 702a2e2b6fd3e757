//! Methods of the protocol other than calls and lists.

use mcp_wire::{Era, method};
use raw_json::RawJson;

use crate::{ClientError, ClientErrorKind, Connection, RequestOptions};

impl Connection {
    /// Completes an argument of a prompt or resource template. `params` and result have the form of the protocol.
    ///
    /// # Errors
    /// Returns the errors of [`request`](Self::request).
    pub async fn complete(&self, params: RawJson, options: RequestOptions) -> Result<RawJson, ClientError> {
        self.request(method::COMPLETION_COMPLETE, Some(params), options)
            .await
    }

    /// Checks that the server responds: `ping` for a legacy server, `server/discover` for a modern one. A JSON-RPC
    /// error counts as a response.
    ///
    /// # Errors
    /// Returns the errors of [`request`](Self::request), except [`ClientErrorKind::Rpc`].
    pub async fn ping(&self, options: RequestOptions) -> Result<(), ClientError> {
        let question = match self.server().era() {
            Era::Legacy => method::PING,
            Era::Modern => method::DISCOVER,
        };
        match self.request(question, None, options).await {
            Err(error) if !matches!(error.kind(), ClientErrorKind::Rpc(_)) => Err(error),
            _ => Ok(()),
        }
    }

    /// Sets the minimum level of log messages that a legacy server sends, such as `warning`.
    ///
    /// # Errors
    /// Returns the errors of [`request`](Self::request), and [`ClientErrorKind::Unsupported`] for a modern server,
    /// which reads the level from `_meta` of each request ([`mcp_wire::meta_key::LOG_LEVEL`]).
    pub async fn set_log_level(&self, level: &str, options: RequestOptions) -> Result<(), ClientError> {
        if self.server().era() == Era::Modern {
            let detail = "a modern server reads the log level in `_meta` of each request";
            return Err(ClientError::new(ClientErrorKind::Unsupported(detail.to_owned())));
        }
        let params = RawJson::from_members(&[("level", RawJson::from(level))]);
        self.request(method::LOGGING_SET_LEVEL, Some(params), options)
            .await?;
        Ok(())
    }
}
