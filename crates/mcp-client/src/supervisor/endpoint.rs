use crate::{Command, HttpEndpoint};

/// Endpoint of a server: a command to start, or a URL to connect to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Endpoint {
    /// Program to start.
    Stdio(Command),
    /// Server that speaks Streamable HTTP.
    Http(HttpEndpoint),
    /// Server that speaks HTTP+SSE, the transport of 2024-11-05.
    Sse(HttpEndpoint),
    /// Server that speaks WebSocket.
    WebSocket(HttpEndpoint),
}
