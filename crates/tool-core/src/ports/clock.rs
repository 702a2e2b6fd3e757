use std::{
    ops::Add,
    sync::LazyLock,
    time::{self, Duration, SystemTime},
};

/// Point in time on the monotonic time line of a [`Clock`]: the time since the clock's start.
///
/// Unlike [`std::time::Instant`], it can stand still in tests and needs no runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(Duration);

impl Instant {
    /// Creates the point at this distance from the clock's start.
    #[must_use]
    pub const fn since_start(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// Returns the time from `earlier` to this point; zero if `earlier` is later.
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

/// Source of time.
pub trait Clock: Send + Sync {
    /// Returns the current point on the monotonic time line, for deadlines and durations.
    fn now(&self) -> Instant;

    /// Returns the current time of day, for records and for expiries that outlive the process, such as those of
    /// tokens. Never used to measure.
    fn wall(&self) -> SystemTime;
}

/// Clock of the operating system. All of them count from one start, so that layers which remember times, such as breakers and
/// caches, may see one in each call.
///
/// With tokio, use `TokioClock` of `tool-runtime` instead: it stands still where tokio's time is paused, in tests.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    start: time::Instant,
}

/// Start of all clocks of the system.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the clock through which all others ask"
)]
static START: LazyLock<time::Instant> = LazyLock::new(time::Instant::now);

impl SystemClock {
    /// Creates a clock that counts from the first use of any clock of the system.
    #[must_use]
    pub fn new() -> Self {
        Self { start: *START }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::since_start(self.start.elapsed())
    }

    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }
}
