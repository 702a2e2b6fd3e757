use std::time::Duration;

/// How many lower bits of a time are told apart in each power of two.
const BITS: u32 = 4;
const PARTS: u64 = 1 << BITS;
/// Longer times count as this one: 71 minutes.
const LONGEST: u64 = (1 << 32) - 1;

/// How often which times were taken, in a histogram whose cells grow with the times: 16 for each power of two of
/// microseconds, as in an HDR histogram.
///
/// # Accuracy
/// A time is known to within 1/32 of itself (3.2 %), or half a microsecond below 16 µs. Only cells that hold something
/// take room: 8 bytes each, 464 at most, and a handful for a tool that behaves.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times(Vec<(u16, u32)>);

impl Times {
    pub(crate) fn add(&mut self, time: Duration) {
        self.add_cell(cell(time), 1);
    }

    fn add_cell(&mut self, cell: u16, n: u32) {
        match self.0.binary_search_by_key(&cell, |(cell, _)| *cell) {
            Ok(at) => self.0[at].1 = self.0[at].1.saturating_add(n),
            Err(at) => self.0.insert(at, (cell, n)),
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (cell, n) in &other.0 {
            self.add_cell(*cell, *n);
        }
    }

    /// Forgets everything but keeps the room.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// How long the fastest so many percent took at most: the time at the nearest rank.
    pub(crate) fn percentile(&self, percent: u64) -> Duration {
        let n: u64 = self.0.iter().map(|(_, n)| u64::from(*n)).sum();
        let rank = (n * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let found = self.0.iter().find(|(_, n)| {
            seen += u64::from(*n);
            seen >= rank
        });
        found.map_or(Duration::ZERO, |(cell, _)| middle(*cell))
    }
}

fn cell(time: Duration) -> u16 {
    let time = u64::try_from(time.as_micros()).unwrap_or(LONGEST).min(LONGEST);
    // Above 2 * PARTS, the lowest bits are left out, so that `PARTS` to `2 * PARTS` remain.
    let left_out = (u64::BITS - time.leading_zeros()).saturating_sub(BITS + 1);
    let cell = u64::from(left_out) * PARTS + (time >> left_out);
    // At most 27 * 16 + 31.
    cell as u16
}

/// The time in the middle of a cell.
fn middle(cell: u16) -> Duration {
    let cell = u64::from(cell);
    let left_out = (cell / PARTS).saturating_sub(1);
    let lowest = (cell - left_out * PARTS) << left_out;
    // A cell of one microsecond holds what is not a microsecond longer.
    Duration::from_nanos(lowest * 1000 + (1000 << left_out) / 2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cells_follow_one_another_without_a_gap() {
        let mut before = 0;
        for time in (0..100_000).chain([1 << 20, (1 << 20) - 1, LONGEST]) {
            let cell = cell(Duration::from_micros(time));
            if time < 100_000 && time > 0 {
                assert!(cell == before || cell == before + 1, "{time}");
            }
            before = cell;
        }
        assert_eq!(cell(Duration::MAX), 463);
        assert_eq!(cell(Duration::from_secs(3600)), cell(Duration::from_secs(3601)));
    }

    #[test]
    fn of_nothing_every_percentile_is_zero() {
        assert_eq!(Times::default().percentile(99), Duration::ZERO);
    }

    /// Times as calls take them: as many short ones as long ones on a logarithmic scale.
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
            // In two parts, as in a window.
            let (mut one, mut other) = (Times::default(), Times::default());
            for (i, time) in times.iter().enumerate() {
                if i < split { one.add(*time) } else { other.add(*time) }
            }
            one.merge(&other);
            times.sort_unstable();
            let exact = times[(times.len() as u64 * percent).div_ceil(100) as usize - 1];
            let estimate = one.percentile(percent);
            let tolerance = (exact / 32).max(Duration::from_nanos(500)) + Duration::from_nanos(500);
            prop_assert!(estimate.abs_diff(exact) <= tolerance, "{estimate:?} for {exact:?}");
        }
    }
}
