use std::time::Duration;

use mcp_wire::LineDecoder;

use crate::{Notifier, Principal};

/// Options of a connection over stdio.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StdioOptions {
    /// Principal that requests are made for: `local`.
    pub principal: Principal,
    /// Maximum number of requests that run at a time: 256. Up to 1,024 more wait for a permit and can be cancelled
    /// meanwhile; beyond that, the input is not read.
    pub max_in_flight: usize,
    /// Maximum length of a message, in bytes: 16 MiB. A longer one is answered with an error.
    pub max_message: usize,
    /// Time that requests have to finish after the input has ended or the server is shut down: 30 s.
    pub drain: Duration,
    /// Source of the notifications that the client receives.
    pub notifier: Notifier,
}

impl StdioOptions {
    /// Sets [`principal`](Self#structfield.principal).
    #[must_use]
    pub fn principal(mut self, principal: Principal) -> Self {
        self.principal = principal;
        self
    }

    /// Sets [`max_in_flight`](Self#structfield.max_in_flight).
    #[must_use]
    pub fn max_in_flight(mut self, max_in_flight: usize) -> Self {
        self.max_in_flight = max_in_flight;
        self
    }

    /// Sets [`max_message`](Self#structfield.max_message).
    #[must_use]
    pub fn max_message(mut self, max_message: usize) -> Self {
        self.max_message = max_message;
        self
    }

    /// Sets [`drain`](Self#structfield.drain).
    #[must_use]
    pub fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Sets [`notifier`](Self#structfield.notifier), the source of notifications.
    #[must_use]
    pub fn notifier(mut self, notifier: Notifier) -> Self {
        self.notifier = notifier;
        self
    }
}

impl Default for StdioOptions {
    fn default() -> Self {
        Self {
            principal: Principal::new("local"),
            max_in_flight: 256,
            max_message: LineDecoder::DEFAULT_MAX_LENGTH,
            drain: Duration::from_secs(30),
            notifier: Notifier::default(),
        }
    }
}
