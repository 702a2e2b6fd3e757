use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use url::Url;

use super::client::has_user;
use crate::{ClientError, ClientErrorKind};

/// Headers that control the framing of messages and the connection. The client sets them.
const FRAMING: [HeaderName; 7] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// URL and headers of a server that speaks Streamable HTTP, HTTP+SSE or WebSocket.
#[derive(Clone)]
pub struct HttpEndpoint {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// `true` to try the transport of 2024-11-05 if the server does not speak Streamable HTTP.
    pub(crate) sse_fallback: bool,
}

impl HttpEndpoint {
    /// Creates an endpoint without additional headers.
    ///
    /// # Errors
    /// Returns an error if the URL is invalid, its scheme is neither `http` nor `https`, or it contains credentials.
    pub fn new(url: &str) -> Result<Self, ClientError> {
        Self::with_schemes(url, ["http", "https"])
    }

    /// Creates an endpoint of the WebSocket transport without additional headers.
    ///
    /// # Errors
    /// Returns an error if the URL is invalid, its scheme is neither `ws` nor `wss`, or it contains credentials.
    pub fn websocket(url: &str) -> Result<Self, ClientError> {
        Self::with_schemes(url, ["ws", "wss"])
    }

    fn with_schemes(url: &str, schemes: [&str; 2]) -> Result<Self, ClientError> {
        let invalid = |detail: &str| ClientError::new(ClientErrorKind::Invalid(detail.to_owned()));
        let url = Url::parse(url).map_err(|error| invalid("invalid server URL").with_source(error))?;
        if !schemes.contains(&url.scheme()) || url.host().is_none() {
            let [plain, secure] = schemes;
            return Err(invalid(&format!(
                "the server's URL must begin with `{plain}://` or `{secure}://` and name a host"
            )));
        }
        if has_user(&url) {
            return Err(invalid(
                "the server's URL must hold no user or password; send them in a header",
            ));
        }
        Ok(Self {
            url,
            headers: HeaderMap::new(),
            sse_fallback: false,
        })
    }

    /// Falls back to HTTP+SSE, the deprecated transport of 2024-11-05, if the server refuses the connection with status
    /// 400, 404 or 405.
    #[must_use]
    pub fn with_sse_fallback(mut self) -> Self {
        self.sse_fallback = true;
        self
    }

    /// Adds a header to every request. Its value never appears in logs.
    ///
    /// # Errors
    /// Returns an error if the name or the value is invalid in a header, or if the header controls the framing of
    /// messages, which is up to the client.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, ClientError> {
        let invalid = || {
            ClientError::new(ClientErrorKind::Invalid(format!(
                "invalid header `{}`",
                name.escape_debug()
            )))
        };
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
        if FRAMING.contains(&name) {
            return Err(ClientError::new(ClientErrorKind::Invalid(format!(
                "the header `{name}` cannot be set: the client controls the framing of messages"
            ))));
        }
        let mut value = HeaderValue::from_str(value).map_err(|_| invalid())?;
        value.set_sensitive(true);
        self.headers.append(name, value);
        Ok(self)
    }
}

impl fmt::Debug for HttpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // User, password and query of a URL may be secrets, and so may the values of headers.
        let names: Vec<&str> = self.headers.keys().map(HeaderName::as_str).collect();
        f.debug_struct("HttpEndpoint")
            .field("host", &self.url.host_str())
            .field("port", &self.url.port_or_known_default())
            .field("path", &self.url.path())
            .field("headers", &names)
            .finish()
    }
}
