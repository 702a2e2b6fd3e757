use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Random pauses, so that clients that failed together do not retry together (jitter). Equal seeds give equal
/// sequences. Not for secrets.
#[derive(Debug)]
pub struct Jitter(AtomicU64);

impl Jitter {
    /// Creates the sequence of this seed.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// Returns a uniformly distributed duration from zero to `longest`.
    pub fn up_to(&self, longest: Duration) -> Duration {
        // A float between 0 and 1 represents 53 bits exactly.
        let fraction = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        longest.mul_f64(fraction)
    }

    /// Returns a uniformly distributed number below `bound`; 0 if that is 0.
    pub fn below(&self, bound: u64) -> u64 {
        // The high half of the product (Lemire, 2019). The bias of at most `bound` in 2^64 does not matter here.
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns the next number (`SplitMix64`, Steele, Lea and Flood, 2014): one atomic addition and a mix of the sum.
    fn next(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Creates a sequence with a random seed.
impl Default for Jitter {
    fn default() -> Self {
        Self::seeded(RandomState::new().build_hasher().finish())
    }
}
