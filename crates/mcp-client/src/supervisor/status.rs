use std::{fmt, sync::Arc, time::Duration};

use crate::ServerInfo;

/// How a supervised server is doing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerStatus {
    /// Where it stands.
    pub state: ServerState,
    /// Why it failed last, even if it runs again.
    pub reason: Option<String>,
    /// The end of what it wrote to stderr.
    pub stderr: Option<String>,
    /// How often it was started again.
    pub restarts: u64,
    /// How long until it may be started again.
    pub retry_in: Option<Duration>,
    /// What it said of itself when it last started.
    pub server: Option<ServerInfo>,
}

/// Is told how a supervised server is doing.
#[derive(Clone)]
pub struct OnStatus(Arc<dyn Fn(&ServerStatus) + Send + Sync>);

impl OnStatus {
    /// Tells this, in the order of what happens and before anybody sees what came of it. It must not block, and not
    /// turn to the [`Upstream`](crate::Upstream), which waits for it.
    pub fn new(tell: impl Fn(&ServerStatus) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
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

/// Where a supervised server stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerState {
    /// Nobody has needed it yet.
    NotStarted,
    /// It is being started.
    Starting,
    /// It takes requests.
    Ready,
    /// It failed and is started again when it is needed.
    Failed,
    /// It failed and rests before it may be started again.
    Backoff,
    /// It was shut down.
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
