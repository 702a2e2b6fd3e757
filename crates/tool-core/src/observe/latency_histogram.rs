use std::time::Duration;

/// Number of significant bits below the leading one: 16 buckets for each power of two.
const BITS: u32 = 4;
const SUB_BUCKETS: u64 = 1 << BITS;
/// Longest recorded time, in microseconds: 71 minutes. Longer times count as this one.
const LONGEST: u64 = (1 << 32) - 1;

/// Histogram of latencies with log-linear buckets: 16 for each power of two of microseconds, as in Gil Tene's
/// HdrHistogram.
///
/// # Accuracy
/// A percentile is within 1/32 (3.2 %) of the exact value, or within half a microsecond below 16 µs. Only buckets with
/// entries are stored: 8 bytes each, 464 at most, and a handful for a tool with steady latency.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use tool_core::LatencyHistogram;
///
/// let mut latencies = LatencyHistogram::default();
/// for milliseconds in 1..=100 {
///     latencies.add(Duration::from_millis(milliseconds));
/// }
/// let median = latencies.percentile(50);
/// assert!(median.abs_diff(Duration::from_millis(50)) < Duration::from_millis(2));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LatencyHistogram(Vec<(u16, u32)>);

impl LatencyHistogram {
    /// Number of buckets. Their numbers begin at 0.
    pub const N_BUCKETS: u16 = 464;

    /// Adds a latency.
    pub fn add(&mut self, time: Duration) {
        self.add_to_bucket(bucket(time), 1);
    }

    fn add_to_bucket(&mut self, bucket: u16, n: u32) {
        match self.0.binary_search_by_key(&bucket, |(bucket, _)| *bucket) {
            Ok(at) => self.0[at].1 = self.0[at].1.saturating_add(n),
            Err(at) => self.0.insert(at, (bucket, n)),
        }
    }

    /// Adds all entries of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, n) in &other.0 {
            self.add_to_bucket(*bucket, *n);
        }
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().map(|(_, n)| u64::from(*n)).sum()
    }

    /// Removes all entries and keeps the capacity.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the buckets with entries: their numbers in rising order, and their counts.
    #[must_use]
    pub fn buckets(&self) -> &[(u16, u32)] {
        &self.0
    }

    /// Creates a histogram with these counts of buckets, in any order. Returns `None` if there is no bucket of a number.
    pub fn from_buckets(counts: impl IntoIterator<Item = (u16, u32)>) -> Option<Self> {
        let mut histogram = Self::default();
        for (bucket, n) in counts {
            if bucket >= Self::N_BUCKETS {
                return None;
            }
            histogram.add_to_bucket(bucket, n);
        }
        Some(histogram)
    }

    /// Estimates a percentile by the nearest-rank method: the middle of the bucket that contains that rank. Zero if there
    /// are no entries.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Duration {
        let rank = (self.count() * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let found = self.0.iter().find(|(_, n)| {
            seen += u64::from(*n);
            seen >= rank
        });
        found.map_or(Duration::ZERO, |(bucket, _)| middle(*bucket))
    }
}

fn bucket(time: Duration) -> u16 {
    let time = u64::try_from(time.as_micros()).unwrap_or(LONGEST).min(LONGEST);
    // From 2 * SUB_BUCKETS on, the lowest bits are dropped, so that SUB_BUCKETS to 2 * SUB_BUCKETS - 1 remain.
    let shift = (u64::BITS - time.leading_zeros()).saturating_sub(BITS + 1);
    let bucket = u64::from(shift) * SUB_BUCKETS + (time >> shift);
    // At most 27 * 16 + 31.
    bucket as u16
}

/// Returns the time in the middle of a bucket.
fn middle(bucket: u16) -> Duration {
    let bucket = u64::from(bucket);
    let shift = (bucket / SUB_BUCKETS).saturating_sub(1);
    let lowest = (bucket - shift * SUB_BUCKETS) << shift;
    // A bucket of width one microsecond holds times from its bound to less than a microsecond above it.
    Duration::from_nanos(lowest * 1000 + (1000 << shift) / 2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_follow_one_another_without_a_gap() {
        let mut before = 0;
        for time in (0..100_000).chain([1 << 20, (1 << 20) - 1, LONGEST]) {
            let bucket = bucket(Duration::from_micros(time));
            if time < 100_000 && time > 0 {
                assert!(bucket == before || bucket == before + 1, "{time}");
            }
            before = bucket;
        }
        assert_eq!(bucket(Duration::MAX), LatencyHistogram::N_BUCKETS - 1);
        assert_eq!(
            LatencyHistogram::from_buckets([(LatencyHistogram::N_BUCKETS, 1)]),
            None
        );
        assert_eq!(
            bucket(Duration::from_secs(3600)),
            bucket(Duration::from_secs(3601))
        );
    }

    #[test]
    fn every_percentile_of_an_empty_histogram_is_zero() {
        assert_eq!(LatencyHistogram::default().percentile(99), Duration::ZERO);
    }

    /// Latencies that are uniform on a logarithmic scale.
    fn times() -> impl Strategy<Value = Vec<Duration>> {
        let time = (0_u32..32).prop_flat_map(|bits| {
            let longest = 1000_u64 << bits;
            (0..longest).prop_map(Duration::from_nanos)
        });
        prop::collection::vec(time, 1..400)
    }

    proptest! {
        #[test]
        fn percentiles_are_as_exact_as_promised(mut times in times(), percent in 1_u64..=100, split in 0_usize..400) {
            // In two histograms, as the buckets of a window have them.
            let (mut one, mut other) = (LatencyHistogram::default(), LatencyHistogram::default());
            for (i, time) in times.iter().enumerate() {
                if i < split { one.add(*time) } else { other.add(*time) }
            }
            one.merge(&other);
            times.sort_unstable();
            let exact = times[(times.len() as u64 * percent).div_ceil(100) as usize - 1];
            let estimate = one.percentile(percent);
            let tolerance = (exact / 32).max(Duration::from_nanos(500)) + Duration::from_nanos(500);
            prop_assert!(estimate.abs_diff(exact) <= tolerance, "{estimate:?} for {exact:?}");
            let stored = one.buckets().iter().rev().copied();
            prop_assert_eq!(LatencyHistogram::from_buckets(stored), Some(one));
        }
    }
}
