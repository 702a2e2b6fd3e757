//! Callbacks of APIs whose work goes on after their answer.

use crate::Toolplane;

/// Fate of a body that an API sent to a callback URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallbackDelivery {
    /// The operation that waits for it has it.
    Delivered,
    /// No operation waits for it: the URL was never issued, was used, or has expired.
    Unknown,
    /// The body is not JSON. The URL is still valid.
    NotJson,
}

/// Error of a URL below which no callbacks can be received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("callbacks can only be received below an `http` or `https` URL")]
#[non_exhaustive]
pub struct InvalidCallbackUrl;

impl Toolplane {
    /// Sets the URL below which callbacks are received from now on, such as `https://tools.example.com/callbacks/`; `None` if
    /// none are received. HTTP tools with `async.callback` send URLs below it to their APIs, and whoever serves it passes on
    /// what arrives: see [`Toolplane::deliver_callback`].
    ///
    /// # Errors
    /// If this is no `http` or `https` URL.
    pub fn receive_callbacks(&self, base: Option<&str>) -> Result<(), InvalidCallbackUrl> {
        self.0.live.load().receive_callbacks(base)
    }

    /// Returns `true` if a callback with this token is awaited, so that its body is worth reading.
    #[must_use]
    pub fn awaits_callback(&self, token: &str) -> bool {
        self.0.live.load().awaits_callback(token)
    }

    /// Delivers a body that an API sent to a callback URL with this token, which the URL ends in. Whoever knows the token may
    /// deliver, once.
    #[must_use]
    pub fn deliver_callback(&self, token: &str, body: Vec<u8>) -> CallbackDelivery {
        self.0.live.load().deliver_callback(token, body)
    }
}
