use std::{
    any::Any,
    fmt,
    hash::{Hash, Hasher},
    panic::AssertUnwindSafe,
    sync::Arc,
};

/// Authenticated identity that a request is made for. A session belongs to the principal that opened it.
///
/// Two principals are equal if their names are, whatever their claims.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use mcp_server::Principal;
///
/// /// Facts that a login knows about its user.
/// struct Account {
///     is_admin: bool,
/// }
///
/// let ada = Principal::new("ada").with_claims(Arc::new(Account { is_admin: true }));
/// assert_eq!(ada, Principal::new("ada"));
/// assert!(ada.claims::<Account>().is_some_and(|account| account.is_admin));
/// ```
pub struct Principal {
    name: Arc<str>,
    /// Nobody changes the claims, so that a panic cannot leave them half changed.
    claims: Option<AssertUnwindSafe<Arc<dyn Any + Send + Sync>>>,
}

impl Principal {
    /// Creates a principal with this name.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            claims: None,
        }
    }

    /// Adds what the authentication of this request found out about the principal, for the service. A later request of
    /// the same principal may have other claims.
    #[must_use]
    pub fn with_claims(mut self, claims: Arc<dyn Any + Send + Sync>) -> Self {
        self.claims = Some(AssertUnwindSafe(claims));
        self
    }

    /// Returns the claims, if they are of this type.
    #[must_use]
    pub fn claims<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        Arc::clone(self.claims.as_ref()?).downcast().ok()
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// Returns the name as a shared string.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }
}

impl Clone for Principal {
    fn clone(&self) -> Self {
        let claims = self.claims.as_ref();
        Self {
            name: Arc::clone(&self.name),
            claims: claims.map(|claims| AssertUnwindSafe(Arc::clone(claims))),
        }
    }
}

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Principal {}

impl Hash for Principal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.name, f)
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
