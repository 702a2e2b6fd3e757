use std::{error::Error as StdError, fmt, sync::Arc, time::Duration};

use mcp_wire::{RpcError, code};

use crate::format_duration::format_duration;

/// Error of a request or of a server as a whole.
///
/// Cheap to clone: one closed connection fails every request that waits on it.
#[derive(Debug, Clone)]
pub struct ClientError {
    kind: ClientErrorKind,
    sent: bool,
    /// `true` if the server responded to this very request by its id, so it has examined the request.
    is_answer: bool,
    source: Option<Arc<dyn StdError + Send + Sync>>,
    /// `true` if the message contains that of the source.
    quotes_source: bool,
}

/// Kind of a [`ClientError`].
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ClientErrorKind {
    /// The timeout elapsed without a response.
    #[error("no answer within {}", format_duration(*.0))]
    Timeout(Duration),
    /// The connection was closed before the request or before its response.
    #[error("the connection is closed: {0}")]
    Closed(String),
    /// The server responded with a JSON-RPC error.
    #[error("the server answered with {0}")]
    Rpc(RpcError),
    /// The server sent something that is not a valid response.
    #[error("{0}")]
    Protocol(String),
    /// The response exceeds the size limit.
    #[error("the answer is larger than {limit} bytes")]
    #[non_exhaustive]
    TooLarge {
        /// Maximum size of a response, in bytes.
        limit: usize,
    },
    /// The server failed to start, or did not open the connection.
    #[error("the server did not start: {reason}")]
    #[non_exhaustive]
    StartFailed {
        /// Description of the failure.
        reason: String,
        /// Tail of the server's stderr.
        stderr: String,
    },
    /// The server requires something that this client does not support.
    #[error("{0}")]
    Unsupported(String),
    /// The server refused the credentials.
    #[error("the server refused the credentials with HTTP status {status}")]
    #[non_exhaustive]
    Auth {
        /// HTTP status: 401 or 403.
        status: u16,
        /// Value of the header `WWW-Authenticate`.
        challenge: Option<String>,
    },
    /// The server responded with an HTTP status other than success.
    #[error("the server answered with HTTP status {status}")]
    #[non_exhaustive]
    HttpStatus {
        /// HTTP status.
        status: u16,
        /// Beginning of the body.
        body: String,
        /// Value of the header `Retry-After`.
        retry_after: Option<String>,
    },
    /// The server is unreachable.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The server failed recently and is not restarted before the pause is over.
    #[error("the server is unavailable for another {}: {reason}", format_duration(*retry_in))]
    #[non_exhaustive]
    Unavailable {
        /// Description of the failure.
        reason: String,
        /// Time until the next start is allowed.
        retry_in: Duration,
    },
    /// The server responds, but its health check failed.
    #[error("its health check failed: {0}")]
    Unhealthy(String),
    /// The tool reports that it failed.
    #[error("the tool reports an error: {0}")]
    ToolFailed(String),
    /// The settings or the arguments are invalid.
    #[error("{0}")]
    Invalid(String),
}

impl ClientError {
    pub(crate) fn new(kind: ClientErrorKind) -> Self {
        Self {
            kind,
            sent: false,
            is_answer: false,
            source: None,
            quotes_source: false,
        }
    }

    pub(crate) fn closed(reason: impl Into<String>) -> Self {
        Self::new(ClientErrorKind::Closed(reason.into()))
    }

    /// Error of a request on a connection that was shut down.
    #[cfg(feature = "http")]
    pub(crate) fn shut_down() -> Self {
        Self::closed("the connection was shut down")
    }

    /// Error of callers during the pause after `error`.
    pub(crate) fn unavailable(error: Self, retry_in: Duration) -> Self {
        // A server that refused the credentials refuses them until they change.
        if matches!(error.kind(), ClientErrorKind::Auth { .. }) {
            return error.with_sent(false);
        }
        Self::new(ClientErrorKind::Unavailable {
            reason: error.to_string(),
            retry_in,
        })
        .with_quoted_source(error)
    }

    pub(crate) fn protocol(detail: impl Into<String>) -> Self {
        Self::new(ClientErrorKind::Protocol(detail.into()))
    }

    pub(crate) fn with_sent(mut self, sent: bool) -> Self {
        self.sent = sent;
        self
    }

    pub(crate) fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Sets a source whose message is part of this error's own. The chain then goes on after it.
    pub(crate) fn with_quoted_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.quotes_source = true;
        self.with_source(source)
    }

    /// Earlier failure that caused this one, such as the reason why a server is unavailable.
    #[must_use]
    pub fn underlying(&self) -> Option<&Self> {
        self.source.as_deref()?.downcast_ref()
    }

    #[cfg(feature = "http")]
    pub(crate) fn with_is_answer(mut self, is_answer: bool) -> Self {
        self.is_answer = is_answer;
        self
    }

    #[cfg(feature = "http")]
    pub(crate) fn is_answer(&self) -> bool {
        self.is_answer
    }

    /// HTTP status and beginning of the body that this error was read from, if any.
    pub(crate) fn http_status(&self) -> Option<(u16, &str)> {
        match &self.kind {
            ClientErrorKind::HttpStatus { status, body, .. } => Some((*status, body)),
            _ => self.underlying()?.http_status(),
        }
    }

    /// `true` if the server may speak another transport than Streamable HTTP.
    #[cfg(feature = "http")]
    pub(crate) fn indicates_other_transport(&self) -> bool {
        self.http_status()
            .is_some_and(|(status, _)| matches!(status, 400 | 404 | 405))
    }

    /// `true` if the server may have refused the request because it speaks another era of the protocol by now. Such a
    /// refusal is issued before the request is examined, so the request has not run.
    /// [`Upstream::detect_era_change`](crate::Upstream::detect_era_change) finds out.
    #[must_use]
    pub fn may_indicate_other_era(&self) -> bool {
        if let Some(code::UNSUPPORTED_PROTOCOL_VERSION | code::HEADER_MISMATCH) =
            self.as_rpc().map(|error| error.code)
        {
            return true;
        }
        let status = self.http_status().map(|(status, _)| status);
        matches!(status, Some(400 | 404 | 405)) && !self.is_answer
    }

    /// [`source`](StdError::source) of the error, for another error that takes its place.
    #[must_use]
    pub fn shared_source(&self) -> Option<Arc<dyn StdError + Send + Sync>> {
        match self.underlying() {
            Some(quoted) if self.quotes_source => quoted.shared_source(),
            _ => self.source.clone().filter(|_| !self.quotes_source),
        }
    }

    /// Kind of the error.
    #[must_use]
    pub fn kind(&self) -> &ClientErrorKind {
        &self.kind
    }

    /// `true` if the server may have received the request, so that it may have run. If `false`, the request can be
    /// repeated whatever it does.
    #[must_use]
    pub fn was_sent(&self) -> bool {
        self.sent
    }

    /// JSON-RPC error of the server, if this is one.
    #[must_use]
    pub fn as_rpc(&self) -> Option<&RpcError> {
        match &self.kind {
            ClientErrorKind::Rpc(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl StdError for ClientError {
    /// Cause that this error's message does not contain yet.
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let source: &(dyn StdError + 'static) = self.source.as_deref()?;
        if self.quotes_source {
            source.source()
        } else {
            Some(source)
        }
    }
}
