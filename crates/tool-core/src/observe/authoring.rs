use std::sync::Arc;

/// Change that an agent made to one of its tools, for audits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthoringChange {
    /// Kind of the change.
    pub action: AuthoringAction,
    /// Name of the tool.
    pub tool: Arc<str>,
    /// Version.
    pub version: String,
    /// Principal that made the change.
    pub principal: Arc<str>,
    /// Tenant of the principal.
    pub tenant: Arc<str>,
    /// SHA-256 of the version.
    pub digest: [u8; 32],
}

/// Kind of an [`AuthoringChange`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuthoringAction {
    /// A draft of a new tool was stored.
    Created,
    /// A draft of another version was stored, or a draft was replaced.
    Updated,
    /// A version was tested.
    Tested,
    /// A draft was published.
    Published,
    /// A former version became the latest one.
    RolledBack,
    /// A draft was deleted.
    Deleted,
    /// A server was proposed to the operators.
    ServerProposed,
}

impl AuthoringAction {
    /// Returns the word in logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Tested => "tested",
            Self::Published => "published",
            Self::RolledBack => "rolled_back",
            Self::Deleted => "deleted",
            Self::ServerProposed => "server_proposed",
        }
    }
}

impl AuthoringChange {
    /// Creates a change by a caller.
    #[must_use]
    pub fn new(
        action: AuthoringAction,
        tool: impl Into<Arc<str>>,
        version: impl Into<String>,
        caller: &crate::Caller,
        digest: [u8; 32],
    ) -> Self {
        Self {
            action,
            tool: tool.into(),
            version: version.into(),
            principal: caller.principal.clone(),
            tenant: caller.tenant.clone(),
            digest,
        }
    }
}
