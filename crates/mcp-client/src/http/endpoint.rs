use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use url::Url;

use super::client::has_user;
use crate::{ClientError, ClientErrorKind};

/// What says where a message ends, and what becomes of its connection.
const FRAMING: [HeaderName; 7] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Where an MCP server listens for Streamable HTTP, HTTP+SSE or WebSocket, and what headers it is sent.
#[derive(Clone)]
pub struct HttpEndpoint {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// Whether the transport of 2024-11-05 is tried when the server does not speak Streamable HTTP.
    pub(crate) sse_fallback: bool,
}

impl HttpEndpoint {
    /// An endpoint without headers of its own.
    ///
    /// # Errors
    /// When the URL is none, is neither `http` nor `https`, or holds credentials.
    pub fn new(url: &str) -> Result<Self, ClientError> {
        Self::with_schemes(url, ["http", "https"])
    }

    /// An endpoint of the WebSocket transport, without headers of its own.
    ///
    /// # Errors
    /// When the URL is none, is neither `ws` nor `wss`, or holds credentials.
    pub fn websocket(url: &str) -> Result<Self, ClientError> {
        Self::with_schemes(url, ["ws", "wss"])
    }

    fn with_schemes(url: &str, schemes: [&str; 2]) -> Result<Self, ClientError> {
        let invalid = |detail: &str| ClientError::new(ClientErrorKind::Invalid(detail.to_owned()));
        let url =
            Url::parse(url).map_err(|error| invalid("the server's URL is not valid").with_source(error))?;
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

    /// Tries the HTTP+SSE transport of 2024-11-05, on which new servers are no longer built, when the server refuses
    /// to be opened with status 400, 404 or 405.
    #[must_use]
    pub fn with_sse_fallback(mut self) -> Self {
        self.sse_fallback = true;
        self
    }

    /// Adds a header to every request. Its value never shows in a log.
    ///
    /// # Errors
    /// When the name or the value cannot stand in a header, or the header says how a message is framed: that is for the
    /// client to say.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, ClientError> {
        let invalid = || {
            ClientError::new(ClientErrorKind::Invalid(format!(
                "the header `{}` is not valid",
                name.escape_debug()
            )))
        };
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
        if FRAMING.contains(&name) {
            return Err(ClientError::new(ClientErrorKind::Invalid(format!(
                "the header `{name}` cannot be set: the client sets what frames a message"
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
