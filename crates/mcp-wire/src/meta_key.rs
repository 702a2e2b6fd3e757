//! Keys of `_meta` that the protocol itself gives a meaning.

/// What the protocol's own keys begin with, those aside that are older. What they say is a matter of one hop.
pub const PREFIX: &str = "io.modelcontextprotocol/";
/// The token under which a caller wants progress of its request.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// The revision of a request (2026-07-28).
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// What the caller can do (2026-07-28).
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The name and version of the caller (2026-07-28).
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The name and version of the server (2026-07-28).
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The lowest level of log messages that the caller wants for this request (2026-07-28).
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The subscription that a notification belongs to (2026-07-28).
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The task that a message belongs to (2025-11-25).
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// The trace that a request belongs to (W3C trace context).
pub const TRACE_PARENT: &str = "traceparent";
/// Data that tracing systems add to [`TRACE_PARENT`] (W3C trace context).
pub const TRACE_STATE: &str = "tracestate";
