use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use mcp_client::ClientError;
use tokio::{sync::Notify, time::Instant};
use tool_core::{Asker, Caller};

use super::{ServerConnection, call_slots::CallSlot};
use crate::listing::EntryKey;

/// Calls of one client that wait for a connection, in order of arrival.
#[derive(Default)]
pub(crate) struct WaitQueue {
    pub(super) waiters: VecDeque<Waiter>,
    /// `true` while a connection is being opened: no second one is opened meanwhile.
    pub(super) is_opening: bool,
    /// Instant at which the last opening ended. Earlier time does not count as waiting for a ready connection.
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

/// Outcome of waiting, which the call takes from the queue.
pub(super) enum Grant {
    Acquired(Arc<ServerConnection>, CallSlot),
    Failed(ClientError),
}

/// The reason for which a connection is opened, as it is logged.
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
                write!(f, "a call waited {} ms for a ready one", time.as_millis())
            }
            Self::Ended => f.write_str("the previous one has ended"),
        }
    }
}

impl WaitQueue {
    /// Returns the instant since which a call has waited for a ready connection.
    pub(super) fn waiting_since(&self, number: u64) -> Option<Instant> {
        let waiter = self.waiters.iter().find(|waiter| waiter.number == number)?;
        Some(
            self.opened
                .map_or(waiter.since, |opened| opened.max(waiter.since)),
        )
    }
}
