use std::{collections::BTreeSet, sync::Arc};

/// Permission for files as a whole, and the permissions that it stands for.
const FILESYSTEM: &str = "filesystem";
const FILESYSTEM_PARTS: [&str; 2] = ["filesystem.read", "filesystem.write"];

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
    /// Tenant of callers that belong to no other one.
    pub const DEFAULT_TENANT: &'static str = "default";
    /// Principals that are established without authentication: those of [`Caller::local`] and [`Caller::anonymous`].
    pub const WITHOUT_AUTHENTICATION: &'static [&'static str] = &["local", "anonymous"];

    /// Creates a caller without permissions in the tenant `default`.
    #[must_use]
    pub fn new(principal: impl Into<Arc<str>>) -> Self {
        Self {
            principal: principal.into(),
            tenant: Self::DEFAULT_TENANT.into(),
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

    /// Returns `true` if the caller holds a permission. `filesystem` is another name for `filesystem.read` and
    /// `filesystem.write` together.
    ///
    /// # Examples
    /// ```
    /// use tool_core::Caller;
    ///
    /// let mut caller = Caller::new("ada");
    /// caller.permissions.insert("filesystem".into());
    /// assert!(caller.has_permission("filesystem.read"));
    /// assert!(!caller.has_permission("network.external"));
    /// ```
    #[must_use]
    pub fn has_permission(&self, permission: &str) -> bool {
        let has = |name: &str| self.permissions.contains(name);
        has(permission)
            || match permission {
                FILESYSTEM => FILESYSTEM_PARTS.into_iter().all(has),
                part => FILESYSTEM_PARTS.contains(&part) && has(FILESYSTEM),
            }
    }

    /// Checks that a text is a valid name of a principal, tenant or role: 1 to 128 characters without white space and
    /// control characters.
    ///
    /// # Errors
    /// The broken rule, as a fragment that follows the name.
    pub fn check_name(name: &str) -> Result<(), &'static str> {
        if name.is_empty() {
            Err("is empty")
        } else if name.chars().count() > 128 {
            Err("is longer than 128 characters")
        } else if name.chars().any(|c| c.is_whitespace() || c.is_control()) {
            Err("contains white space or control characters")
        } else {
            Ok(())
        }
    }
}
