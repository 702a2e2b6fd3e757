use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

use mcp_client::ServerInfo;
use tokio::time::Instant;
use tool_core::Feature;

use super::read_lists::list_capability;

/// Due times of lists that are read again although no change was announced.
#[derive(Default)]
pub(crate) struct Freshness(HashMap<Feature, Instant>);

/// Minimum time between two readings of a list, whatever `ttlMs` the server sent.
const MIN_AGE: Duration = Duration::from_secs(10);
/// Minimum time between two readings of a list whose changes the server announces.
const MIN_AGE_IF_ANNOUNCED: Duration = Duration::from_secs(60);
/// Maximum time that a list is trusted, whatever `ttlMs` the server sent.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

impl Freshness {
    /// Records that a list was read, for which the server sent this time to live.
    pub(crate) fn record_read(
        &mut self,
        server: &ServerInfo,
        feature: Feature,
        ttl: Option<Duration>,
        interval: Duration,
    ) {
        self.0.remove(&feature);
        let Some(capability) = list_capability(feature).filter(|name| server.has_capability(name)) else {
            return;
        };
        if let Some(wait) = wait(ttl, server.has_list_changed(capability), interval) {
            self.0.insert(feature, Instant::now() + wait + jitter(wait));
        }
    }

    /// Returns when the next list is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.values().min().copied()
    }

    /// Takes the lists that are due, each of them once.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<Feature> {
        let due = self.0.extract_if(|_, due| *due <= now);
        due.map(|(feature, _)| feature).collect()
    }

    /// Removes all due times until the lists are read again.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Returns the time until a list is read again, or `None` if it is read only after an announced change.
fn wait(ttl: Option<Duration>, is_told: bool, interval: Duration) -> Option<Duration> {
    // A time to live of zero is sent by servers that know nothing about it. Asking all the time would not keep the list
    // fresh either.
    match (ttl.filter(|ttl| !ttl.is_zero()), is_told) {
        (Some(ttl), true) => Some(ttl.clamp(MIN_AGE_IF_ANNOUNCED, MAX_AGE)),
        (Some(ttl), false) => Some(ttl.clamp(MIN_AGE, MAX_AGE)),
        (None, true) => None,
        (None, false) => Some(interval.max(MIN_AGE)),
    }
}

/// Returns up to a tenth of the time as jitter, so that not all servers are asked at once.
fn jitter(wait: Duration) -> Duration {
    let random = RandomState::new().hash_one(0) >> 11;
    wait.mul_f64(0.1 * random as f64 / (1_u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_until_a_list_is_read_again() {
        let seconds = Duration::from_secs;
        let interval = seconds(300);
        for (ttl, is_told, expected) in [
            (None, true, None),
            (None, false, Some(300)),
            (Some(0), false, Some(300)),
            (Some(0), true, None),
            (Some(1), false, Some(10)),
            (Some(1), true, Some(60)),
            (Some(30), false, Some(30)),
            (Some(90), true, Some(90)),
            (Some(u64::MAX), true, Some(86_400)),
        ] {
            let wait = wait(ttl.map(seconds), is_told, interval);
            assert_eq!(wait, expected.map(seconds), "{ttl:?} {is_told}");
        }
    }

    #[test]
    fn jitter_is_a_tenth_at_most() {
        let wait = Duration::from_secs(100);
        assert!((0..100).all(|_| jitter(wait) <= wait / 10));
    }
}
