#[cfg(feature = "stdio")]
use crate::Command;
#[cfg(feature = "http")]
use crate::HttpEndpoint;

/// Endpoint of a server: a command to start, or a URL to connect to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Endpoint {
    /// Program to start.
    #[cfg(feature = "stdio")]
    Stdio(Command),
    /// Server that speaks Streamable HTTP.
    #[cfg(feature = "http")]
    Http(HttpEndpoint),
    /// Server that speaks HTTP+SSE, the transport of 2024-11-05.
    #[cfg(feature = "http")]
    Sse(HttpEndpoint),
    /// Server that speaks WebSocket.
    #[cfg(feature = "http")]
    WebSocket(HttpEndpoint),
}

impl Endpoint {
    /// `true` if the server can change its era without closing the connection.
    pub(super) fn can_change_era(&self) -> bool {
        match self {
            #[cfg(feature = "http")]
            Self::Http(_) | Self::Sse(_) => true,
            #[cfg(feature = "http")]
            Self::WebSocket(_) => false,
            #[cfg(feature = "stdio")]
            Self::Stdio(_) => false,
        }
    }
}

#[cfg(feature = "stdio")]
impl From<Command> for Endpoint {
    /// Program to start.
    fn from(command: Command) -> Self {
        Self::Stdio(command)
    }
}

#[cfg(feature = "http")]
impl From<HttpEndpoint> for Endpoint {
    /// Server that speaks Streamable HTTP.
    fn from(endpoint: HttpEndpoint) -> Self {
        Self::Http(endpoint)
    }
}
