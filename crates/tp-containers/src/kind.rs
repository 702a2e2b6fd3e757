use std::fmt;

/// Kind of a container engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineKind {
    /// podman, by its API service.
    Podman,
    /// Docker, by its daemon.
    Docker,
}

/// Reason why there is no engine.
#[derive(Clone, Debug)]
pub struct EngineUnavailable {
    reason: String,
}

impl EngineKind {
    /// All kinds.
    pub const ALL: &'static [Self] = &[Self::Podman, Self::Docker];
}

impl EngineUnavailable {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
        }
    }
}

impl fmt::Display for EngineUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for EngineUnavailable {}
