use crate::{Command, HttpEndpoint};

/// Where a server is, or how it is started.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Endpoint {
    /// A program that is started.
    Stdio(Command),
    /// A server that listens.
    Http(HttpEndpoint),
    /// A server that listens and speaks HTTP+SSE, the transport of 2024-11-05.
    Sse(HttpEndpoint),
    /// A server that listens and speaks WebSocket.
    WebSocket(HttpEndpoint),
}
