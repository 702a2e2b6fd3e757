//! Authentication of HTTP requests by the toolplane.

use std::sync::Arc;

use http::{header::AUTHORIZATION, request::Parts};
use mcp_server::{AuthenticateRequest, AuthenticateRequestFuture, Principal, RequestRefusal};
use toolplane::{
    Toolplane,
    core::{AuthenticationError, Caller},
};

/// Authenticates requests by [`Toolplane::authenticate`].
///
/// Only the header `Authorization` is read. A token in the query of the URI (RFC 6750, section 2.3) would end up in
/// logs and histories.
pub(crate) struct PlaneAuthentication(pub(crate) Toolplane);

impl AuthenticateRequest for PlaneAuthentication {
    fn authenticate<'a>(&'a self, head: &'a Parts) -> AuthenticateRequestFuture<'a> {
        Box::pin(async move {
            let authenticated = match authorization(head) {
                Ok(authorization) => self.0.authenticate(authorization).await,
                Err(error) => Err(error),
            };
            authenticated.map(to_principal).map_err(|error| refusal(&error))
        })
    }
}

/// Returns the value of the header `Authorization`.
fn authorization(head: &Parts) -> Result<Option<&str>, AuthenticationError> {
    let mut values = head.headers.get_all(AUTHORIZATION).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => match value.to_str() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(AuthenticationError::Malformed("it is not visible ASCII")),
        },
        (Some(_), Some(_)) => Err(AuthenticationError::Malformed("it is repeated")),
    }
}

/// Returns the principal of a caller. Its name contains the tenant, since principals of two tenants may have one name
/// and share no session; the length of the tenant keeps the two parts apart.
fn to_principal(caller: Arc<Caller>) -> Principal {
    let (tenant, principal) = (&caller.tenant, &caller.principal);
    let name = format!("{}:{tenant}/{principal}", tenant.len());
    Principal::new(name).with_claims(caller)
}

fn refusal(error: &AuthenticationError) -> RequestRefusal {
    match error {
        AuthenticationError::Missing => {
            let message = "the request has no bearer token; send `Authorization: Bearer TOKEN`";
            RequestRefusal::unauthorized().message(message)
        }
        AuthenticationError::Malformed(_) => RequestRefusal::invalid_request(&error.to_string()),
        AuthenticationError::Invalid(reason) => {
            tracing::info!(reason, "a bearer token is refused");
            RequestRefusal::invalid_token(reason)
        }
        // Also an error of a later version: nobody gets in. Clients need not know more about the store.
        _ => {
            tracing::error!(%error, "nobody is authenticated");
            RequestRefusal::unavailable("credentials cannot be checked now; retry later")
        }
    }
}
