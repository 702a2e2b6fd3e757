use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

use mcp_client::ServerInfo;
use tokio::time::Instant;
use tool_core::Feature;

use crate::listing;

/// When lists are read again although nobody said that they have changed.
#[derive(Default)]
pub(crate) struct Freshness(HashMap<Feature, Instant>);

/// How soon a list is read again at the earliest, whatever the server says of it.
const SHORTEST: Duration = Duration::from_secs(10);
/// The same for a list of whose changes the server tells.
const SHORTEST_TOLD: Duration = Duration::from_secs(60);
/// A server that says that its list stays the same for longer is asked all the same.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

impl Freshness {
    /// Takes note that a list was read of which the server says that it stays as it is for `ttl`.
    pub(crate) fn read(
        &mut self,
        server: &ServerInfo,
        feature: Feature,
        ttl: Option<Duration>,
        interval: Duration,
    ) {
        self.0.remove(&feature);
        let Some(capability) = listing::capability(feature).filter(|name| server.has_capability(name)) else {
            return;
        };
        if let Some(wait) = wait(ttl, server.has_list_changed(capability), interval) {
            self.0.insert(feature, Instant::now() + wait + jitter(wait));
        }
    }

    /// When the next list is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.values().min().copied()
    }

    /// The lists that are due, each of them once.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<Feature> {
        let due = self.0.extract_if(|_, due| *due <= now);
        due.map(|(feature, _)| feature).collect()
    }

    /// Leaves all of them alone until they are read.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// How long a list is left alone; for as long as the server says nothing if there is no answer.
fn wait(ttl: Option<Duration>, is_told: bool, interval: Duration) -> Option<Duration> {
    // Fresh for no time is what servers say that have nothing to say of it; asking all the time would not keep the list
    // fresh either.
    match (ttl.filter(|ttl| !ttl.is_zero()), is_told) {
        (Some(ttl), true) => Some(ttl.clamp(SHORTEST_TOLD, LONGEST)),
        (Some(ttl), false) => Some(ttl.clamp(SHORTEST, LONGEST)),
        (None, true) => None,
        (None, false) => Some(interval.max(SHORTEST)),
    }
}

/// Up to a tenth more, so that not all servers are asked at once.
fn jitter(wait: Duration) -> Duration {
    let random = RandomState::new().hash_one(0) >> 11;
    wait.mul_f64(0.1 * random as f64 / (1_u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_a_list_is_left_alone() {
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
