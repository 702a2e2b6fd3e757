use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
};

use mcp_wire::{LogLevel, Revision};
use raw_json::RawJson;

use crate::{asked::Asked, declared, wants::Wants};

/// A legacy client that has opened a connection: what it said of itself, and what it was asked and told since.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) revision: Revision,
    pub(crate) info: Option<RawJson>,
    pub(crate) capabilities: Option<RawJson>,
    /// Whether it can be asked anything.
    pub(crate) is_askable: bool,
    pub(crate) asked: Asked,
    /// What it is told about changes.
    pub(crate) wants: Arc<Wants>,
    /// The lowest level of log messages that it wants, as an index; [`NO_LOGS`] until it says so.
    log_level: AtomicU8,
}

const NO_LOGS: u8 = u8::MAX;

/// What stands for a connection or session in this process: a number that no other has. The service is told when it is
/// over.
pub(crate) struct Presence {
    number: u64,
    /// The number's digits.
    name: Arc<str>,
    leave: Box<dyn Fn(u64) + Send + Sync>,
}

impl Presence {
    pub(crate) fn new(leave: impl Fn(u64) + Send + Sync + 'static) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        Self {
            number,
            name: number.to_string().into(),
            leave: Box::new(leave),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        (self.leave)(self.number);
    }
}

impl fmt::Debug for Presence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Presence").field(&self.number).finish()
    }
}

impl Client {
    pub(crate) fn new(revision: Revision, info: Option<RawJson>, capabilities: Option<RawJson>) -> Self {
        Self {
            revision,
            info,
            is_askable: capabilities.as_ref().is_some_and(declared::is_askable),
            capabilities,
            asked: Asked::default(),
            wants: Arc::new(Wants::legacy()),
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
