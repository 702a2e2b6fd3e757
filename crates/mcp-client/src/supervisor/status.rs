use std::{fmt, sync::Arc, time::Duration};

use crate::ServerInfo;

/// Status of a supervised server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerStatus {
    /// State of the server.
    pub state: ServerState,
    /// Reason of the last failure, even if the server runs again.
    pub reason: Option<String>,
    /// Tail of the server's stderr.
    pub stderr: Option<String>,
    /// Number of restarts.
    pub restarts: u64,
    /// Time until the next start is allowed.
    pub retry_in: Option<Duration>,
    /// Information from the last handshake.
    pub server: Option<ServerInfo>,
}

/// Callback for the status of a supervised server.
#[derive(Clone)]
pub struct OnStatus(Arc<dyn Fn(&ServerStatus) + Send + Sync>);

impl OnStatus {
    /// Creates a callback that is called in order of the changes, before anybody sees their effects. It must neither
    /// block nor use the [`Upstream`](crate::Upstream), which waits for it.
    pub fn new(callback: impl Fn(&ServerStatus) + Send + Sync + 'static) -> Self {
        Self(Arc::new(callback))
    }

    pub(super) fn notify(&self, status: &ServerStatus) {
        (self.0)(status);
    }
}

impl fmt::Debug for OnStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnStatus")
    }
}

/// State of a supervised server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerState {
    /// Not needed yet.
    NotStarted,
    /// Starting.
    Starting,
    /// Accepts requests.
    Ready,
    /// Failed; restarted when it is needed.
    Failed,
    /// Failed; not restarted before the pause is over.
    Backoff,
    /// Shut down.
    Stopped,
}

impl fmt::Display for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotStarted => "not started",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Failed => "failed",
            Self::Backoff => "backoff",
            Self::Stopped => "stopped",
        })
    }
}
