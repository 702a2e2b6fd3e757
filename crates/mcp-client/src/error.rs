use std::{error::Error as StdError, sync::Arc, time::Duration};

use mcp_wire::{RpcError, code};

use crate::duration::format_duration;

/// Why a request, or a server as a whole, failed.
///
/// Cheap to clone: one closed connection fails every request that waits on it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{kind}")]
pub struct ClientError {
    kind: ClientErrorKind,
    sent: bool,
    /// Whether it is an answer that names the request: the server has looked at it.
    is_answer: bool,
    #[source]
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

/// What went wrong.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ClientErrorKind {
    /// No answer came in time.
    #[error("no answer within {}", format_duration(*.0))]
    Timeout(Duration),
    /// The connection closed before the answer came, or had closed before the request.
    #[error("the connection is closed: {0}")]
    Closed(String),
    /// The server answered with an error.
    #[error("the server answered with {0}")]
    Rpc(RpcError),
    /// The server sent something that is no answer.
    #[error("{0}")]
    Protocol(String),
    /// The answer is larger than allowed.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// How large an answer may be.
        limit: usize,
    },
    /// The server could not be started, or did not open the connection.
    #[error("the server did not start: {reason}")]
    StartFailed {
        /// What happened.
        reason: String,
        /// The last of what it wrote to stderr.
        stderr: String,
    },
    /// The server wants something that this client does not do.
    #[error("{0}")]
    Unsupported(String),
    /// The server wants other credentials.
    #[error("the server refused the credentials with HTTP status {status}")]
    Auth {
        /// 401 or 403.
        status: u16,
        /// What `WWW-Authenticate` says.
        challenge: Option<String>,
    },
    /// The server answered with an HTTP status that is no success.
    #[error("the server answered with HTTP status {status}")]
    HttpStatus {
        /// The status.
        status: u16,
        /// The start of the body.
        body: String,
        /// What `Retry-After` says.
        retry_after: Option<String>,
    },
    /// The server could not be reached.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The server failed a short while ago and is not tried again yet.
    #[error("the server is unavailable for another {}: {reason}", format_duration(*retry_in))]
    Unavailable {
        /// Why it failed.
        reason: String,
        /// How long until it is tried again.
        retry_in: Duration,
    },
    /// The server answers, and says that it is not well.
    #[error("its health check failed: {0}")]
    Unhealthy(String),
    /// The settings do not make a connection.
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
        }
    }

    pub(crate) fn closed(reason: impl Into<String>) -> Self {
        Self::new(ClientErrorKind::Closed(reason.into()))
    }

    pub(crate) fn protocol(detail: impl Into<String>) -> Self {
        Self::new(ClientErrorKind::Protocol(detail.into()))
    }

    pub(crate) fn sent(mut self, sent: bool) -> Self {
        self.sent = sent;
        self
    }

    pub(crate) fn because(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// The earlier failure that this one comes from, such as why a server rests that is unavailable.
    #[must_use]
    pub fn earlier(&self) -> Option<&Self> {
        self.source.as_deref()?.downcast_ref()
    }

    pub(crate) fn answering(mut self, is_answer: bool) -> Self {
        self.is_answer = is_answer;
        self
    }

    pub(crate) fn is_answer(&self) -> bool {
        self.is_answer
    }

    /// The HTTP status and the start of the body that this error was read from, if any.
    pub(crate) fn http_status(&self) -> Option<(u16, &str)> {
        match &self.kind {
            ClientErrorKind::HttpStatus { status, body, .. } => Some((*status, body)),
            _ => self.earlier()?.http_status(),
        }
    }

    /// Whether a server that was to be opened over Streamable HTTP does not speak it.
    pub(crate) fn refuses_transport(&self) -> bool {
        self.http_status()
            .is_some_and(|(status, _)| matches!(status, 400 | 404 | 405))
    }

    /// Whether the server may have refused the request because it speaks another era of the protocol by now. Such a
    /// refusal looks at no request: what was refused has not run. [`Upstream::detect_era_change`](crate::Upstream::finds_other_era)
    /// finds out.
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

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> &ClientErrorKind {
        &self.kind
    }

    /// Whether the server may have seen the request, so that it may have run. When this is false the request can be
    /// repeated whatever it does.
    #[must_use]
    pub fn was_sent(&self) -> bool {
        self.sent
    }

    /// The error that the server answered with, if that is what happened.
    #[must_use]
    pub fn as_rpc(&self) -> Option<&RpcError> {
        match &self.kind {
            ClientErrorKind::Rpc(error) => Some(error),
            _ => None,
        }
    }
}
