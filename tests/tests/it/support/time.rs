use std::{
    thread,
    time::{Duration, Instant},
};

/// Time after which anything counts as hung: far more than a slow machine needs.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// Measures by the real clock, because these tests watch other processes.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "there is no clock to inject into other processes"
    )]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// Returns the rest of a limit, at least a moment.
    pub(crate) fn left(&self, limit: Duration) -> Duration {
        limit.saturating_sub(self.elapsed()).max(Duration::from_millis(1))
    }
}

/// Waits until a condition holds; fails the test if it takes too long.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let watch = Stopwatch::start();
    while !is_so() {
        assert!(watch.elapsed() < LIMIT, "{what}: not within {LIMIT:?}");
        thread::sleep(Duration::from_millis(20));
    }
}
