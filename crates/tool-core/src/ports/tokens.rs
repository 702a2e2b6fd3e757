use std::{fmt, sync::Arc, time::SystemTime};

use crate::BoxFuture;

/// Static token of a principal, as a store keeps it: a digest stands for the secret, which nobody can read back.
///
/// Times are wall-clock, since a token outlives the process. Stores keep at least whole seconds.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenRecord {
    /// Id: random and not secret. It is part of the token's text, and names the token in lists.
    pub id: Arc<str>,
    /// SHA-256 of the token's secret.
    pub secret_digest: [u8; 32],
    /// Principal that the token authenticates.
    pub principal: Arc<str>,
    /// Tenant of the principal. `None` for the tenant that the configuration gives to the principal.
    pub tenant: Option<Arc<str>>,
    /// Roles that the token adds to those of the principal.
    pub roles: Vec<Arc<str>>,
    /// Note of the operator, for people.
    pub label: Option<String>,
    /// Time of creation.
    pub created_at: SystemTime,
    /// Time at which the token stops to be valid. `None` if it does not expire.
    pub expires_at: Option<SystemTime>,
    /// Time at which the token was revoked.
    pub revoked_at: Option<SystemTime>,
}

/// State of a [`TokenRecord`] at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenState {
    /// The token authenticates its principal.
    Active,
    /// The time of expiry has come.
    Expired,
    /// The operator revoked the token.
    Revoked,
}

/// Port to the storage of tokens.
///
/// The storage does not check secrets: it finds a record by its id, and whoever authenticates compares the digest.
pub trait Tokens: Send + Sync {
    /// Stores a new token.
    ///
    /// # Errors
    /// [`TokensError::Exists`] if a token has this id already, and [`TokensError::Unavailable`] if the storage does not
    /// work.
    fn insert(&self, token: TokenRecord) -> BoxFuture<'_, Result<(), TokensError>>;

    /// Returns the token with this id, whatever its state.
    ///
    /// # Errors
    /// If the storage does not work. Nobody is authenticated then.
    fn find<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<TokenRecord>, TokensError>>;

    /// Returns all tokens, oldest first; those created at the same time by their ids.
    ///
    /// # Errors
    /// If the storage does not work.
    fn list(&self) -> BoxFuture<'_, Result<Vec<TokenRecord>, TokensError>>;

    /// Marks a token as revoked at this time, and returns its record; `None` if no token has this id. A token that is
    /// revoked already keeps its first time. A later [`Tokens::find`] of any process sees the change.
    ///
    /// # Errors
    /// If the storage does not work.
    fn revoke<'a>(
        &'a self,
        id: &'a str,
        at: SystemTime,
    ) -> BoxFuture<'a, Result<Option<TokenRecord>, TokensError>>;
}

/// Error of the storage of tokens.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokensError {
    /// A token with this id exists already.
    #[error("a token with the id `{0}` exists already")]
    Exists(Arc<str>),
    /// The storage does not work.
    #[error("the store of tokens does not work: {0}")]
    Unavailable(String),
}

impl TokenRecord {
    /// Creates the record of a token without tenant, roles and label that does not expire.
    #[must_use]
    pub fn new(
        id: impl Into<Arc<str>>,
        secret_digest: [u8; 32],
        principal: impl Into<Arc<str>>,
        created_at: SystemTime,
    ) -> Self {
        Self {
            id: id.into(),
            secret_digest,
            principal: principal.into(),
            tenant: None,
            roles: Vec::new(),
            label: None,
            created_at,
            expires_at: None,
            revoked_at: None,
        }
    }

    /// Returns the state of the token at this time. A revoked token stays revoked after its expiry.
    #[must_use]
    pub fn state(&self, now: SystemTime) -> TokenState {
        if self.revoked_at.is_some() {
            TokenState::Revoked
        } else if self.expires_at.is_some_and(|expiry| expiry <= now) {
            TokenState::Expired
        } else {
            TokenState::Active
        }
    }
}

impl TokenState {
    /// Returns the state as a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

impl fmt::Debug for TokenRecord {
    /// Leaves out the digest of the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenRecord")
            .field("id", &self.id)
            .field("principal", &self.principal)
            .field("tenant", &self.tenant)
            .field("roles", &self.roles)
            .field("label", &self.label)
            .field("created_at", &self.created_at)
            .field("expires_at", &self.expires_at)
            .field("revoked_at", &self.revoked_at)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn a_token_is_valid_until_its_expiry_or_its_revocation() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let mut token = TokenRecord::new("a1", [7; 32], "ada", at(100));
        assert_eq!(token.state(at(u32::MAX.into())), TokenState::Active);
        token.expires_at = Some(at(200));
        assert_eq!(token.state(at(199)), TokenState::Active);
        assert_eq!(token.state(at(200)), TokenState::Expired);
        token.revoked_at = Some(at(150));
        assert_eq!(token.state(at(149)), TokenState::Revoked);
        assert_eq!(token.state(at(201)), TokenState::Revoked);
    }

    #[test]
    fn the_debug_output_has_no_digest() {
        let token = TokenRecord::new("a1", [213; 32], "ada", UNIX_EPOCH);
        assert!(!format!("{token:?}").contains("213"));
    }
}
