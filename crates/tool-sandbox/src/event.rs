//! Events of a sandboxed process.

use std::fmt;
use std::sync::Arc;

/// Decision about an access of a sandboxed process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SandboxEvent {
    /// The process was connected to a host.
    #[non_exhaustive]
    NetworkAllowed {
        /// Host name or address that the process asked for.
        host: String,
        /// Port.
        port: u16,
    },
    /// The process asked for a host that it may not reach.
    #[non_exhaustive]
    NetworkDenied {
        /// Host name or address that the process asked for.
        host: String,
        /// Port.
        port: u16,
        /// Rule that denied the access.
        reason: String,
    },
}

impl SandboxEvent {
    /// Returns the host name or address that the process asked for.
    #[must_use]
    pub fn host(&self) -> &str {
        match self {
            Self::NetworkAllowed { host, .. } | Self::NetworkDenied { host, .. } => host,
        }
    }

    /// Returns the port that the process asked for.
    #[must_use]
    pub fn port(&self) -> u16 {
        match self {
            Self::NetworkAllowed { port, .. } | Self::NetworkDenied { port, .. } => *port,
        }
    }

    /// Returns the rule that denied the access; `None` if it was allowed.
    #[must_use]
    pub fn denial(&self) -> Option<&str> {
        match self {
            Self::NetworkAllowed { .. } => None,
            Self::NetworkDenied { reason, .. } => Some(reason),
        }
    }
}

/// Observer of the events of a command.
#[derive(Clone)]
pub(crate) struct EventObserver(pub(crate) Arc<dyn Fn(SandboxEvent) + Send + Sync>);

impl fmt::Debug for EventObserver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("EventObserver")
    }
}

/// Observer of an output stream, which receives it while it is read, as far as it is kept. It must not block.
pub type OutputObserver = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// Observer of the standard output of a run.
#[derive(Clone)]
pub(crate) struct StdoutObserver(pub(crate) OutputObserver);

impl fmt::Debug for StdoutObserver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("StdoutObserver")
    }
}
