use std::sync::atomic::{AtomicU64, Ordering};

/// How many bounds a histogram has at most.
const MAX_BOUNDS: usize = 18;

/// Upper bounds of the parts of a histogram, in its unit as it is counted: microseconds or bytes.
#[derive(Debug)]
pub(crate) struct Bounds {
    pub(crate) of: &'static [u64],
    /// How many of what is counted make one of what is shown.
    pub(crate) scale: f64,
}

/// Those of times, from 1 ms: the ones that OpenTelemetry advises for MCP, and shorter ones.
pub(crate) const SECONDS: Bounds = Bounds {
    of: &[
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

/// Those of sizes.
pub(crate) const BYTES: Bounds = Bounds {
    of: &[
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

/// How often something was how large. Counting takes no lock.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    /// One for each bound and one for what is beyond.
    parts: [AtomicU64; MAX_BOUNDS],
    sum: AtomicU64,
}

/// What a histogram shows.
#[derive(Debug)]
pub(crate) struct Shown {
    /// How many are at most as large as each bound.
    pub(crate) up_to: Vec<(f64, u64)>,
    pub(crate) count: u64,
    pub(crate) sum: f64,
}

impl Histogram {
    pub(crate) fn add(&self, bounds: &Bounds, value: u64) {
        let part = bounds.of.partition_point(|bound| *bound < value);
        self.parts[part].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// What it shows; nothing if there was nothing yet.
    pub(crate) fn shown(&self, bounds: &Bounds) -> Option<Shown> {
        let mut count = 0;
        let mut next = |part: &AtomicU64| {
            count += part.load(Ordering::Relaxed);
            count
        };
        let up_to = bounds.of.iter().zip(&self.parts);
        let up_to = up_to.map(|(bound, part)| (*bound as f64 / bounds.scale, next(part)));
        let up_to = up_to.collect();
        let count = next(&self.parts[bounds.of.len()]);
        (count > 0).then(|| Shown {
            up_to,
            count,
            sum: self.sum.load(Ordering::Relaxed) as f64 / bounds.scale,
        })
    }
}
