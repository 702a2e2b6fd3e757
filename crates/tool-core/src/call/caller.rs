use std::{collections::BTreeSet, sync::Arc};

/// Principal on whose behalf a call is made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Caller {
    /// Name of the principal, established by the edge; never taken from arguments.
    pub principal: Arc<str>,
    /// Tenant whose data and limits apply.
    pub tenant: Arc<str>,
    /// Permissions of the principal, such as `network.external`.
    pub permissions: BTreeSet<Arc<str>>,
}

impl Caller {
    /// Creates a caller without permissions in the tenant `default`.
    #[must_use]
    pub fn new(principal: impl Into<Arc<str>>) -> Self {
        Self {
            principal: principal.into(),
            tenant: "default".into(),
            permissions: BTreeSet::new(),
        }
    }

    /// Returns the caller on this machine: stdio and the command line.
    #[must_use]
    pub fn local() -> Self {
        Self::new("local")
    }

    /// Returns the caller of loopback HTTP without authentication.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::new("anonymous")
    }
}
