use std::sync::Arc;

use http::{HeaderValue, StatusCode, request::Parts};

use crate::Principal;

/// Function that identifies the principal of a request by its head. The extensions of the head have the findings of layers
/// in front.
pub type Identify = Arc<dyn Fn(&Parts) -> Result<Principal, RequestRefusal> + Send + Sync>;

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
