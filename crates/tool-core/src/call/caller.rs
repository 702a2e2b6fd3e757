use std::{collections::BTreeSet, sync::Arc};

/// On whose behalf a call is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Who calls, as the edge has established it: never taken from the arguments.
    pub principal: Arc<str>,
    /// Whose data and limits apply.
    pub tenant: Arc<str>,
    /// What the principal may do, such as `network.external`.
    pub permissions: BTreeSet<Arc<str>>,
}

impl Caller {
    /// A caller without permissions in the tenant `default`.
    #[must_use]
    pub fn new(principal: impl Into<Arc<str>>) -> Self {
        Self {
            principal: principal.into(),
            tenant: "default".into(),
            permissions: BTreeSet::new(),
        }
    }

    /// The caller at this machine: stdio and the command line.
    #[must_use]
    pub fn local() -> Self {
        Self::new("local")
    }

    /// A caller that nothing is known of: loopback HTTP without authentication.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::new("anonymous")
    }
}
