//! What servers offer beside tools.

use mcp_wire::{Era, method};
use raw_json::RawJson;

use crate::{ClientError, ClientErrorKind, Connection, RequestOptions};

impl Connection {
    /// Completes an argument of a prompt or template; `params` and result as the protocol writes them.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn complete(&self, params: RawJson, options: RequestOptions) -> Result<RawJson, ClientError> {
        self.request(method::COMPLETION_COMPLETE, Some(params), options)
            .await
    }

    /// Asks whether the server is there: a legacy one by `ping`, a modern one by `server/discover`. Any answer says that it
    /// is, an error as well.
    ///
    /// # Errors
    /// As [`request`](Self::request), but for [`ClientErrorKind::Rpc`].
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

    /// Says which log messages a legacy server is to send, such as `warning` and worse.
    ///
    /// # Errors
    /// As [`request`](Self::request); [`ClientErrorKind::Unsupported`] for a modern server, which reads the level in the
    /// `_meta` of each request ([`mcp_wire::meta_key::LOG_LEVEL`]).
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
