use std::{path::PathBuf, time::Duration};

use crate::EngineSockets;

/// Options of the executor of containers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContainerOptions {
    /// Time limit of tools that set none: 30 s.
    pub timeout: Duration,
    /// Maximum size of a result, in bytes: 16 MiB.
    pub max_result_bytes: usize,
    /// Sockets at which the engine is looked for.
    pub sockets: EngineSockets,
    /// Treatment of images that the engine does not have.
    pub pull: PullPolicy,
    /// Directory of the lock files by which gateways know each other's containers. Without one, containers of a gateway that was
    /// killed stay.
    pub lock_directory: Option<PathBuf>,
}

/// Treatment of images that the engine does not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PullPolicy {
    /// The call fails, and says how to get the image.
    #[default]
    Never,
    /// The image of a tool in a file of the operator is pulled without credentials; that of a tool in a store is not.
    Missing,
}

impl Default for ContainerOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            max_result_bytes: 16 << 20,
            sockets: EngineSockets::default(),
            pull: PullPolicy::Never,
            lock_directory: None,
        }
    }
}

impl ContainerOptions {
    /// Sets the time limit of tools that set none.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the maximum size of a result, in bytes.
    #[must_use]
    pub fn with_max_result_bytes(mut self, max_result_bytes: usize) -> Self {
        self.max_result_bytes = max_result_bytes;
        self
    }

    /// Sets the sockets at which the engine is looked for.
    #[must_use]
    pub fn with_sockets(mut self, sockets: EngineSockets) -> Self {
        self.sockets = sockets;
        self
    }

    /// Sets the treatment of images that the engine does not have.
    #[must_use]
    pub fn with_pull(mut self, pull: PullPolicy) -> Self {
        self.pull = pull;
        self
    }

    /// Sets the directory of the lock files by which gateways know each other's containers.
    #[must_use]
    pub fn with_lock_directory(mut self, lock_directory: Option<PathBuf>) -> Self {
        self.lock_directory = lock_directory;
        self
    }
}
