use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use mcp_client::ClientError;
use tokio::{sync::Notify, time::Instant};
use tool_core::{Asker, Caller};

use super::{ServerConnection, call_slots::CallSlot};
use crate::listing::EntryKey;

/// The calls of one client that wait, first come first served.
#[derive(Default)]
pub(crate) struct WaitQueue {
    pub(super) waiters: VecDeque<Waiter>,
    /// Whether a connection is being opened: no second one is opened meanwhile.
    pub(super) is_opening: bool,
    /// When the last opening ended. Time before that does not count as waiting for a connection that is ready.
    pub(super) opened: Option<Instant>,
}

pub(super) struct Waiter {
    pub(super) number: u64,
    pub(super) since: Instant,
    pub(super) entry: EntryKey,
    pub(super) asker: Option<Asker>,
    pub(super) caller: Arc<Caller>,
    pub(super) wake: Arc<Notify>,
    pub(super) grant: Option<Grant>,
}

/// The end of waiting.
pub(super) enum Grant {
    Acquired(Arc<ServerConnection>, CallSlot),
    Failed(ClientError),
}

/// The reason for which a connection is opened.
pub(crate) enum OpenReason {
    First,
    Waited(Duration),
    Ended,
}

impl fmt::Display for OpenReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("the client has none"),
            Self::Waited(time) => {
                write!(f, "a call waited {} ms for one that is ready", time.as_millis())
            }
            Self::Ended => f.write_str("the one before has ended"),
        }
    }
}

impl WaitQueue {
    /// Since when a call has waited for a connection that is ready.
    pub(super) fn waiting_since(&self, number: u64) -> Option<Instant> {
        let waiter = self.waiters.iter().find(|waiter| waiter.number == number)?;
        Some(
            self.opened
                .map_or(waiter.since, |opened| opened.max(waiter.since)),
        )
    }
}
