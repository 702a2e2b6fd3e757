//! Outgoing requests of toolplane itself: webhooks, health check endpoints and embeddings.

#[cfg_attr(not(feature = "outbound"), path = "no_client.rs")]
pub(crate) mod client;
#[cfg(feature = "outbound")]
pub(crate) mod embedder;
pub(crate) mod webhooks;
