//! Names of the HTTP headers of the Streamable HTTP transport, in lower case as HTTP libraries want them.

/// The session of a legacy connection, minted by the server.
pub const SESSION_ID: &str = "mcp-session-id";
/// The revision that a request is written in.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The method of the request in the body (2026-07-28).
pub const METHOD: &str = "mcp-method";
/// The tool, prompt or resource that the request in the body is about (2026-07-28).
pub const NAME: &str = "mcp-name";
/// What the headers that mirror a tool's arguments start with (2026-07-28).
pub const PARAM_PREFIX: &str = "mcp-param-";
/// The last event that a client saw of a stream that it resumes (legacy).
pub const LAST_EVENT_ID: &str = "last-event-id";
