use std::{collections::HashMap, future::pending, time::Duration};

use tokio::time::{Instant, sleep_until};
use tool_core::Feature;

/// When lists that have changed, or could not be read, are read again.
///
/// The first change is news at once; a list that goes on changing is read once an [`INTERVAL`], so that a storm of changes
/// costs its server little. What one list does holds no other up.
pub(crate) struct Pace {
    wanted: HashMap<Feature, Wanted>,
    /// When each list was read the last time.
    read: HashMap<Feature, Instant>,
    /// How long lists are left alone that could not be read.
    pause: Duration,
}

#[derive(Clone, Copy)]
struct Wanted {
    at: Instant,
    /// Whether nothing is known to have changed: it could not be read before.
    is_retry: bool,
}

/// How long is waited for more of the changes that come together.
const SETTLE: Duration = Duration::from_millis(50);
/// How long a list is left alone that was read, however often it changes.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a list that could not be read is left alone at most before it is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

impl Pace {
    /// All lists were read now.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            wanted: HashMap::new(),
            read: Feature::ALL.into_iter().map(|feature| (feature, now)).collect(),
            pause: INTERVAL,
        }
    }

    /// No list was read for long: the first change of each is news at once.
    pub(crate) fn unread() -> Self {
        Self {
            wanted: HashMap::new(),
            read: HashMap::new(),
            pause: INTERVAL,
        }
    }

    /// Takes note that a list has changed.
    pub(crate) fn changed(&mut self, feature: Feature, now: Instant) {
        let rested = self.read.get(&feature).map(|read| *read + INTERVAL);
        let mut at = (now + SETTLE).max(rested.unwrap_or(now));
        // Later changes do not put it off.
        if let Some(wanted) = self.wanted.get(&feature) {
            at = at.min(wanted.at);
        }
        let is_retry = false;
        self.wanted.insert(feature, Wanted { at, is_retry });
    }

    /// Takes note that a list could not be read, which nothing is put off for that changed meanwhile.
    pub(crate) fn failed(&mut self, feature: Feature, now: Instant) {
        let (at, is_retry) = (now + self.pause, true);
        self.wanted.entry(feature).or_insert(Wanted { at, is_retry });
    }

    /// Takes note of what came of a try to read these lists, of which some could not be.
    pub(crate) fn tried(&mut self, features: &[Feature], unread: &[Feature], now: Instant) {
        self.read.extend(features.iter().map(|&feature| (feature, now)));
        self.pause = if unread.is_empty() {
            INTERVAL
        } else {
            (2 * self.pause).min(LONGEST_PAUSE)
        };
        unread.iter().for_each(|&feature| self.failed(feature, now));
    }

    /// When the next list is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.wanted.values().map(|wanted| wanted.at).min()
    }

    /// The lists that are due, each of them once.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<Feature> {
        let due = self.wanted.extract_if(|_, wanted| wanted.at <= now);
        due.map(|(feature, _)| feature).collect()
    }

    /// Leaves those alone of which nothing is known to have changed.
    pub(crate) fn give_up(&mut self) {
        self.wanted.retain(|_, wanted| !wanted.is_retry);
    }
}

/// Waits for an instant, for ever without one.
pub(crate) async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Lists that were read long ago, and now.
    fn rested() -> (Pace, Instant) {
        let start = Instant::now();
        (Pace::new(start), start + millis(5000))
    }

    #[test]
    fn the_first_change_is_read_at_once_and_the_next_ones_once_a_second() {
        let (mut pace, now) = rested();
        for n in 0..10 {
            pace.changed(Feature::Tool, now + millis(n));
        }
        assert_eq!(pace.next(), Some(now + SETTLE));
        assert!(pace.take_due(now).is_empty());
        assert_eq!(pace.take_due(now + SETTLE), [Feature::Tool]);
        pace.tried(&[Feature::Tool], &[], now + millis(60));
        pace.changed(Feature::Tool, now + millis(70));
        assert_eq!(pace.next(), Some(now + millis(1060)));
        // Another list has not been read.
        pace.changed(Feature::Prompt, now + millis(80));
        assert_eq!(pace.next(), Some(now + millis(130)));
        assert_eq!(pace.take_due(now + millis(200)), [Feature::Prompt]);
        assert_eq!(pace.take_due(now + millis(1060)), [Feature::Tool]);
        assert_eq!(pace.next(), None);
    }

    #[test]
    fn a_list_that_cannot_be_read_is_tried_ever_more_seldom() {
        let (mut pace, mut now) = rested();
        pace.changed(Feature::Tool, now);
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let next = pace.next().unwrap();
            pauses.push((next - now).as_secs());
            now = next;
            assert_eq!(pace.take_due(now), [Feature::Tool]);
            pace.tried(&[Feature::Tool], &[Feature::Tool], now);
        }
        assert_eq!(pauses, [0, 2, 4, 8, 16, 32, 60, 60]);
        pace.changed(Feature::Tool, now);
        assert_eq!(pace.next(), Some(now + INTERVAL), "a change is not put off");
        pace.give_up();
        assert_eq!(pace.take_due(now + INTERVAL), [Feature::Tool]);
        pace.tried(&[Feature::Tool], &[], now);
        pace.failed(Feature::Prompt, now);
        assert_eq!(pace.next(), Some(now + INTERVAL));
        pace.give_up();
        assert_eq!(pace.next(), None);
    }
}
