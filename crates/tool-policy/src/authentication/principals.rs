use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use arc_swap::ArcSwap;
use tool_core::Caller;

/// Principals and roles of a configuration, and the permissions that follow from them.
///
/// The permissions of a caller are those of its principal, of the principal's roles, and of the roles that its
/// credentials add. A role that is not defined gives no permission.
///
/// # Examples
/// ```
/// use tool_policy::{PrincipalSettings, Principals};
///
/// let mut ada = PrincipalSettings::default();
/// ada.roles = vec!["reader".to_owned()];
/// let mut principals = Principals::default();
/// principals.roles.insert("reader".to_owned(), vec!["files.read".to_owned()]);
/// principals.by_name.insert("ada".to_owned(), ada);
/// let caller = principals.caller("ada", None, &[])?;
/// assert!(caller.permissions.contains("files.read"));
/// # Ok::<(), tool_policy::TenantMismatch>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Principals {
    /// Permissions of each role.
    pub roles: BTreeMap<String, Vec<String>>,
    /// Settings of each principal.
    pub by_name: BTreeMap<String, PrincipalSettings>,
}

/// Settings of one principal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PrincipalSettings {
    /// Tenant that the principal belongs to. `None` if its credentials may name any tenant.
    pub tenant: Option<String>,
    /// Roles of the principal.
    pub roles: Vec<String>,
    /// Permissions of the principal, in addition to those of its roles.
    pub permissions: Vec<String>,
}

/// Error of credentials that name another tenant than the configuration gives to their principal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the principal `{principal}` belongs to the tenant `{configured}`, not to `{named}`")]
#[non_exhaustive]
pub struct TenantMismatch {
    /// Name of the principal.
    pub principal: String,
    /// Tenant of the configuration.
    pub configured: String,
    /// Tenant that the credentials name.
    pub named: String,
}

impl Principals {
    /// Returns the caller of a principal. `tenant` and `roles` are those of its credentials. The tenant is that of the
    /// configuration, else that of the credentials, else [`Caller::DEFAULT_TENANT`].
    ///
    /// # Errors
    /// If the credentials name another tenant than the configuration.
    pub fn caller(
        &self,
        principal: &str,
        tenant: Option<&str>,
        roles: &[Arc<str>],
    ) -> Result<Caller, TenantMismatch> {
        let settings = self.by_name.get(principal);
        let configured = settings.and_then(|settings| settings.tenant.as_deref());
        if let (Some(configured), Some(named)) = (configured, tenant)
            && configured != named
        {
            return Err(TenantMismatch {
                principal: principal.to_owned(),
                configured: configured.to_owned(),
                named: named.to_owned(),
            });
        }
        let mut caller = Caller::new(principal);
        if let Some(tenant) = configured.or(tenant) {
            caller.tenant = tenant.into();
        }
        caller.permissions = self.permissions(settings, roles);
        Ok(caller)
    }

    fn permissions(&self, settings: Option<&PrincipalSettings>, roles: &[Arc<str>]) -> BTreeSet<Arc<str>> {
        let own_roles = settings.into_iter().flat_map(|settings| &settings.roles);
        let roles = own_roles
            .map(String::as_str)
            .chain(roles.iter().map(|role| &**role));
        let of_roles = roles.filter_map(|role| self.roles.get(role)).flatten();
        let own = settings.into_iter().flat_map(|settings| &settings.permissions);
        of_roles
            .chain(own)
            .map(|permission| permission.as_str().into())
            .collect()
    }
}

/// Principals that can be replaced while requests are authenticated. Clones share them.
#[derive(Clone)]
pub struct SharedPrincipals(Arc<ArcSwap<Principals>>);

impl SharedPrincipals {
    /// Shares these principals.
    #[must_use]
    pub fn new(principals: Principals) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(principals)))
    }

    /// Returns the current principals.
    #[must_use]
    pub fn load(&self) -> Arc<Principals> {
        self.0.load_full()
    }

    /// Replaces the principals. The next request sees the new ones.
    pub fn store(&self, principals: Principals) {
        self.0.store(Arc::new(principals));
    }
}

impl fmt::Debug for SharedPrincipals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedPrincipals").field(&self.load()).finish()
    }
}
