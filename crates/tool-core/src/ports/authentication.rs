use std::sync::Arc;

use crate::{BoxFuture, Caller};

/// Port to the authentication of requests: turns credentials into a caller with its permissions.
///
/// Static tokens are one implementation, and access tokens of an authorization server can be another one. An edge asks
/// for every request, and remembers no result for the next one.
pub trait Authenticate: Send + Sync {
    /// Returns the caller that the value of the header `Authorization` authenticates. `None` if the request has no
    /// such header.
    ///
    /// # Errors
    /// If the credentials are missing, malformed or not valid, or cannot be checked. An edge refuses the request in
    /// each of these cases.
    fn authenticate<'a>(
        &'a self,
        authorization: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Arc<Caller>, AuthenticationError>>;
}

/// Reason why a request is not authenticated. The texts contain no part of the credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthenticationError {
    /// The request has no credentials, or credentials of a scheme that is not supported.
    #[error("the request has no bearer token")]
    Missing,
    /// The header `Authorization` is not well-formed.
    #[error("malformed `Authorization` header: {0}")]
    Malformed(&'static str),
    /// The credentials are not valid: unknown, expired or revoked.
    #[error("{0}")]
    Invalid(&'static str),
    /// The credentials cannot be checked, so nobody is authenticated.
    #[error("credentials cannot be checked: {0}")]
    Unavailable(String),
}
