use std::{
    ops::Add,
    time::{Duration, SystemTime},
};

/// A point on a [`Clock`]'s own time line: the time since the clock's start.
///
/// Not [`std::time::Instant`], so that a test's clock can stand still and this crate needs no runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(Duration);

impl Instant {
    /// The point at this distance from the clock's start.
    #[must_use]
    pub const fn since_start(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// The time from `earlier` to this point; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

/// Where time comes from.
pub trait Clock: Send + Sync {
    /// The present point on the monotonic time line, for deadlines and durations.
    fn now(&self) -> Instant;

    /// The present time of day, for records. Never used to measure or to expire.
    fn wall(&self) -> SystemTime;
}
