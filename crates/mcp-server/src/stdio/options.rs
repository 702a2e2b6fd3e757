use std::time::Duration;

use mcp_wire::LineDecoder;

use crate::{Notifier, Principal};

/// Options of a connection over stdio.
#[derive(Debug, Clone)]
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
