//! Keys of `_meta` that the protocol defines, and how far each of them travels.
//!
//! | key | travels |
//! |---|---|
//! | those of [`PER_HOP`] | from one peer to the next: a gateway leaves out the client's and sets its own |
//! | [`TRACE_PARENT`], [`TRACE_STATE`] | through the whole call; every hop replaces them by its own span |
//! | any other key | through the whole call, as it was written |

/// Beginning of the protocol's own keys, apart from the older [`PROGRESS_TOKEN`].
pub const PREFIX: &str = "io.modelcontextprotocol/";
/// Token under which a caller wants progress of its request.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// Revision of a request (2026-07-28).
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Capabilities of the caller (2026-07-28).
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Name and version of the caller (2026-07-28).
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// Name and version of the server (2026-07-28).
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Lowest level of log messages that the caller wants for this request (2026-07-28).
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Subscription that a notification belongs to (2026-07-28).
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Task that a message belongs to (2025-11-25).
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// Trace that a request belongs to (W3C Trace Context).
pub const TRACE_PARENT: &str = "traceparent";
/// Data that tracing systems add to [`TRACE_PARENT`] (W3C Trace Context).
pub const TRACE_STATE: &str = "tracestate";
/// Properties that an application shares with the services within its trace (W3C Baggage). They may name users.
pub const BAGGAGE: &str = "baggage";

/// Keys that are valid for one hop only: between a client and the server that it talks to.
pub const PER_HOP: &[&str] = &[
    BAGGAGE,
    PROGRESS_TOKEN,
    PROTOCOL_VERSION,
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    SERVER_INFO,
    LOG_LEVEL,
    SUBSCRIPTION_ID,
    RELATED_TASK,
];

/// All keys of this module.
#[cfg(feature = "strict")]
pub(crate) const ALL: &[&str] = &[
    BAGGAGE,
    PROGRESS_TOKEN,
    PROTOCOL_VERSION,
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    SERVER_INFO,
    LOG_LEVEL,
    SUBSCRIPTION_ID,
    RELATED_TASK,
    TRACE_PARENT,
    TRACE_STATE,
];

/// Returns `true` if the protocol itself defines the key, unlike keys of applications and of tracing.
#[must_use]
pub fn is_of_protocol(key: &str) -> bool {
    key == PROGRESS_TOKEN || key.starts_with(PREFIX)
}
