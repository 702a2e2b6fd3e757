use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Maximum number of buckets, including the one without an upper bound.
const MAX_BUCKETS: usize = 18;

/// Upper bounds of the buckets of a histogram, in the unit in which values are recorded: microseconds or bytes.
#[derive(Debug)]
pub(crate) struct BucketBounds {
    pub(crate) upper: &'static [u64],
    /// Number of recorded units in one exported unit.
    pub(crate) scale: f64,
}

/// Bounds of durations, from 1 ms: those that OpenTelemetry's conventions for MCP advise, and shorter ones.
pub(crate) const SECONDS: BucketBounds = BucketBounds {
    upper: &[
        1_000,
        2_500,
        5_000,
        10_000,
        20_000,
        50_000,
        100_000,
        200_000,
        500_000,
        1_000_000,
        2_000_000,
        5_000_000,
        10_000_000,
        30_000_000,
        60_000_000,
        120_000_000,
        300_000_000,
    ],
    scale: 1e6,
};

/// Bounds of sizes.
pub(crate) const BYTES: BucketBounds = BucketBounds {
    upper: &[
        256,
        1 << 10,
        4 << 10,
        16 << 10,
        64 << 10,
        256 << 10,
        1 << 20,
        4 << 20,
        16 << 20,
    ],
    scale: 1.0,
};

/// Histogram with fixed buckets. Recording a value takes no lock.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    /// Counts of the buckets: one for each bound, and one for larger values.
    buckets: [AtomicU64; MAX_BUCKETS],
    sum: AtomicU64,
}

/// Values of a histogram at one moment.
#[derive(Debug)]
pub(crate) struct HistogramSnapshot {
    /// Each upper bound with the number of values up to it.
    pub(crate) cumulative: Vec<(f64, u64)>,
    pub(crate) count: u64,
    pub(crate) sum: f64,
}

impl Histogram {
    pub(crate) fn record(&self, bounds: &BucketBounds, value: u64) {
        let bucket = bounds.upper.partition_point(|bound| *bound < value);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Returns the values, or `None` if none was recorded yet.
    pub(crate) fn snapshot(&self, bounds: &BucketBounds) -> Option<HistogramSnapshot> {
        let mut count = 0;
        let mut add = |bucket: &AtomicU64| {
            count += bucket.load(Ordering::Relaxed);
            count
        };
        let cumulative = bounds.upper.iter().zip(&self.buckets);
        let cumulative = cumulative.map(|(bound, bucket)| (*bound as f64 / bounds.scale, add(bucket)));
        let cumulative = cumulative.collect();
        let count = add(&self.buckets[bounds.upper.len()]);
        (count > 0).then(|| HistogramSnapshot {
            cumulative,
            count,
            sum: self.sum.load(Ordering::Relaxed) as f64 / bounds.scale,
        })
    }
}

/// Converts a duration to the unit in which [`SECONDS`] records.
pub(super) fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
