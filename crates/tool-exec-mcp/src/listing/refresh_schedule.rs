use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;
use tool_core::Feature;

/// Schedule of the readings of lists that have changed or could not be read. Changes are debounced by [`SETTLE`] and
/// limited to one reading per [`INTERVAL`].
///
/// The first change is read at once. A list that goes on changing is read once per interval, so that a storm of changes
/// costs its server little. Lists do not delay each other.
pub(crate) struct RefreshSchedule {
    due: HashMap<Feature, Due>,
    /// Time of the last reading of each list.
    read: HashMap<Feature, Instant>,
    /// Pause before lists that could not be read are tried again, doubled with each failure.
    pause: Duration,
}

#[derive(Clone, Copy)]
struct Due {
    at: Instant,
    /// `true` if the list could not be read before and is not known to have changed.
    is_retry: bool,
}

/// Debounce time: more changes may come together with the first.
const SETTLE: Duration = Duration::from_millis(50);
/// Minimum time between two readings of a list, however often it changes.
const INTERVAL: Duration = Duration::from_secs(1);
/// Maximum pause before a list that could not be read is tried again.
const MAX_PAUSE: Duration = Duration::from_secs(60);

impl RefreshSchedule {
    /// A schedule after all lists were read now.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            due: HashMap::new(),
            read: Feature::ALL
                .iter()
                .copied()
                .map(|feature| (feature, now))
                .collect(),
            pause: INTERVAL,
        }
    }

    /// A schedule before any reading: the first change of each list is read at once.
    pub(crate) fn unread() -> Self {
        Self {
            due: HashMap::new(),
            read: HashMap::new(),
            pause: INTERVAL,
        }
    }

    /// Records that a list has changed.
    pub(crate) fn mark_changed(&mut self, feature: Feature, now: Instant) {
        let rested = self.read.get(&feature).map(|read| *read + INTERVAL);
        let mut at = (now + SETTLE).max(rested.unwrap_or(now));
        // Later changes do not put it off.
        if let Some(due) = self.due.get(&feature) {
            at = at.min(due.at);
        }
        let is_retry = false;
        self.due.insert(feature, Due { at, is_retry });
    }

    /// Records that a list could not be read. A change meanwhile is not put off for it.
    pub(crate) fn mark_failed(&mut self, feature: Feature, now: Instant) {
        let (at, is_retry) = (now + self.pause, true);
        self.due.entry(feature).or_insert(Due { at, is_retry });
    }

    /// Records an attempt to read these lists, of which `unread` failed.
    pub(crate) fn record_attempt(&mut self, features: &[Feature], unread: &[Feature], now: Instant) {
        self.read.extend(features.iter().map(|&feature| (feature, now)));
        self.pause = if unread.is_empty() {
            INTERVAL
        } else {
            (2 * self.pause).min(MAX_PAUSE)
        };
        unread.iter().for_each(|&feature| self.mark_failed(feature, now));
    }

    /// Returns when the next list is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.values().map(|due| due.at).min()
    }

    /// Takes the lists that are due, each of them once.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<Feature> {
        let due = self.due.extract_if(|_, due| due.at <= now);
        due.map(|(feature, _)| feature).collect()
    }

    /// Drops retries of lists that are not known to have changed.
    pub(crate) fn drop_retries(&mut self) {
        self.due.retain(|_, due| !due.is_retry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// A schedule of lists that were read long ago, and the present time.
    fn rested() -> (RefreshSchedule, Instant) {
        let start = Instant::now();
        (RefreshSchedule::new(start), start + millis(5000))
    }

    #[test]
    fn the_first_change_is_read_at_once_and_the_next_ones_once_a_second() {
        let (mut schedule, now) = rested();
        for n in 0..10 {
            schedule.mark_changed(Feature::Tool, now + millis(n));
        }
        assert_eq!(schedule.next(), Some(now + SETTLE));
        assert!(schedule.take_due(now).is_empty());
        assert_eq!(schedule.take_due(now + SETTLE), [Feature::Tool]);
        schedule.record_attempt(&[Feature::Tool], &[], now + millis(60));
        schedule.mark_changed(Feature::Tool, now + millis(70));
        assert_eq!(schedule.next(), Some(now + millis(1060)));
        // The other list has not been read.
        schedule.mark_changed(Feature::Prompt, now + millis(80));
        assert_eq!(schedule.next(), Some(now + millis(130)));
        assert_eq!(schedule.take_due(now + millis(200)), [Feature::Prompt]);
        assert_eq!(schedule.take_due(now + millis(1060)), [Feature::Tool]);
        assert_eq!(schedule.next(), None);
    }

    #[test]
    fn a_list_that_cannot_be_read_is_tried_ever_more_seldom() {
        let (mut schedule, mut now) = rested();
        schedule.mark_changed(Feature::Tool, now);
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let next = schedule.next().unwrap();
            pauses.push((next - now).as_secs());
            now = next;
            assert_eq!(schedule.take_due(now), [Feature::Tool]);
            schedule.record_attempt(&[Feature::Tool], &[Feature::Tool], now);
        }
        assert_eq!(pauses, [0, 2, 4, 8, 16, 32, 60, 60]);
        schedule.mark_changed(Feature::Tool, now);
        assert_eq!(schedule.next(), Some(now + INTERVAL), "a change is not put off");
        schedule.drop_retries();
        assert_eq!(schedule.take_due(now + INTERVAL), [Feature::Tool]);
        schedule.record_attempt(&[Feature::Tool], &[], now);
        schedule.mark_failed(Feature::Prompt, now);
        assert_eq!(schedule.next(), Some(now + INTERVAL));
        schedule.drop_retries();
        assert_eq!(schedule.next(), None);
    }
}
