use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use mcp_wire::{LogLevel, Revision};
use raw_json::RawJson;

use super::{capabilities, client_requests::ClientRequests};
use crate::notifications::SubscriptionFilter;

/// Legacy client that has opened a connection, with what it declared and its pending requests.
#[derive(Debug)]
pub(crate) struct LegacyClient {
    pub(crate) revision: Revision,
    pub(crate) info: Option<RawJson>,
    pub(crate) capabilities: Option<RawJson>,
    /// `true` if it declared a capability that takes requests of a server.
    pub(crate) is_askable: bool,
    /// Requests to the client that it has not answered.
    pub(crate) requests: ClientRequests,
    /// Notifications that it wants.
    pub(crate) filter: Arc<SubscriptionFilter>,
    /// Lowest level of log messages that it wants, as an index; [`NO_LOGS`] until it sets one.
    log_level: AtomicU8,
}

const NO_LOGS: u8 = u8::MAX;

impl LegacyClient {
    pub(crate) fn new(revision: Revision, info: Option<RawJson>, capabilities: Option<RawJson>) -> Self {
        Self {
            revision,
            info,
            is_askable: capabilities.as_ref().is_some_and(capabilities::is_askable),
            capabilities,
            requests: ClientRequests::default(),
            filter: Arc::new(SubscriptionFilter::for_legacy_client()),
            log_level: AtomicU8::new(NO_LOGS),
        }
    }

    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        let index = self.log_level.load(Ordering::Relaxed);
        LogLevel::ALL.get(usize::from(index)).copied()
    }

    pub(crate) fn set_log_level(&self, level: LogLevel) {
        let index = LogLevel::ALL.iter().position(|known| *known == level);
        let index = index.and_then(|index| u8::try_from(index).ok());
        self.log_level.store(index.unwrap_or(NO_LOGS), Ordering::Relaxed);
    }
}
