use std::{future::Future, pin::Pin, sync::Arc};

use http::{HeaderValue, StatusCode, request::Parts};

use crate::Principal;

/// Function that identifies the principal of a request by its head. The extensions of the head have the findings of layers
/// in front.
pub type Identify = Arc<dyn Fn(&Parts) -> Result<Principal, RequestRefusal> + Send + Sync>;

/// Authentication of requests by their heads, for servers that must wait for the result.
///
/// It runs for every request of every endpoint (POST, GET and DELETE, HTTP+SSE included), before the body is read. Its
/// result is used for that request only.
///
/// # Examples
/// ```
/// use mcp_server::{AuthenticateRequest, AuthenticateRequestFuture, Principal, RequestRefusal, http::request::Parts};
///
/// /// Login by an API key.
/// struct ByKey;
///
/// impl AuthenticateRequest for ByKey {
///     fn authenticate<'a>(&'a self, head: &'a Parts) -> AuthenticateRequestFuture<'a> {
///         Box::pin(async move {
///             let key = head.headers.get("authorization").ok_or_else(RequestRefusal::unauthorized)?;
///             match key.as_bytes() {
///                 // .. looks the key up in a database ..
///                 b"Bearer k1" => Ok(Principal::new("ada")),
///                 _ => Err(RequestRefusal::invalid_token("the key is unknown")),
///             }
///         })
///     }
/// }
/// ```
pub trait AuthenticateRequest: Send + Sync {
    /// Returns the principal of a request.
    ///
    /// # Errors
    /// The refusal of a request that is not authenticated.
    fn authenticate<'a>(&'a self, head: &'a Parts) -> AuthenticateRequestFuture<'a>;
}

/// Future of [`AuthenticateRequest::authenticate`].
pub type AuthenticateRequestFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Principal, RequestRefusal>> + Send + 'a>>;

/// Refusal of a request whose principal is not identified, or may not use the server.
///
/// # Examples
///
/// ```
/// use mcp_server::{RequestRefusal, http::HeaderValue};
///
/// // Clients of MCP find the authorization server by the metadata of the resource (RFC 9728).
/// let metadata = "https://tools.example.com/.well-known/oauth-protected-resource";
/// let challenge = HeaderValue::try_from(format!(r#"Bearer resource_metadata="{metadata}""#))?;
/// let refusal = RequestRefusal::unauthorized().challenge(challenge);
/// assert_eq!(refusal.status, 401);
///
/// let refusal = RequestRefusal::forbidden("this account is closed");
/// assert_eq!((refusal.status.as_u16(), refusal.authenticate), (403, None));
/// # Ok::<(), mcp_server::http::header::InvalidHeaderValue>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestRefusal {
    /// Status of the response, such as 401.
    pub status: StatusCode,
    /// `WWW-Authenticate` header of the response.
    pub authenticate: Option<HeaderValue>,
    /// Message to the client.
    pub message: String,
}

impl RequestRefusal {
    /// Creates a refusal with any status, without a challenge.
    #[must_use]
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            authenticate: None,
            message: message.into(),
        }
    }

    /// Creates the refusal of a request without valid credentials: 401 and the challenge `Bearer`, since a 401 must have one
    /// (RFC 9110, section 15.5.2).
    #[must_use]
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "the request has no valid credentials")
            .challenge(HeaderValue::from_static("Bearer"))
    }

    /// Creates the refusal of a request whose bearer token is not valid: 401 with `error="invalid_token"` (RFC 6750,
    /// section 3.1).
    #[must_use]
    pub fn invalid_token(description: &str) -> Self {
        Self::bearer_error(StatusCode::UNAUTHORIZED, "invalid_token", description)
    }

    /// Creates the refusal of a request whose credentials are malformed: 400 with `error="invalid_request"` (RFC 6750,
    /// section 3.1).
    #[must_use]
    pub fn invalid_request(description: &str) -> Self {
        Self::bearer_error(StatusCode::BAD_REQUEST, "invalid_request", description)
    }

    fn bearer_error(status: StatusCode, error: &str, description: &str) -> Self {
        // The characters of `error_description` in RFC 6750, section 3: no quotes, no backslashes, nothing but ASCII.
        let is_allowed = |c: &char| matches!(c, ' '..='~') && !matches!(c, '"' | '\\');
        let shown: String = description.chars().filter(is_allowed).collect();
        let challenge = format!(r#"Bearer error="{error}", error_description="{shown}""#);
        let challenge = HeaderValue::try_from(challenge).expect("the text is visible ASCII");
        Self::new(status, description).challenge(challenge)
    }

    /// Creates the refusal of a request whose credentials cannot be checked now: 503. It says nothing about the
    /// credentials, so that a client keeps them and retries.
    #[must_use]
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// Creates the refusal of a principal that is known and may not use the server: 403.
    #[must_use]
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }

    /// Sets the challenge: the value of the header `WWW-Authenticate`, such as `Basic realm="tools"`.
    #[must_use]
    pub fn challenge(mut self, challenge: HeaderValue) -> Self {
        self.authenticate = Some(challenge);
        self
    }

    /// Sets the message to the client.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }
}
