//! Outgoing requests of toolplane itself: webhooks and health check endpoints.

#[cfg_attr(not(feature = "outbound"), path = "no_client.rs")]
pub(crate) mod client;
pub(crate) mod webhooks;
