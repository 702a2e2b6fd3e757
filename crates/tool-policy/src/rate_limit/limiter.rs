use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use governor::{
    NotUntil, Quota, RateLimiter,
    clock::Clock as _,
    middleware::NoOpMiddleware,
    state::{InMemoryState, NotKeyed, keyed::DashMapStateStore},
};
use parking_lot::Mutex;
use tool_core::{Caller, Clock, Instant, RateLimitSettings};

/// Limiter of one owner, such as a tool. It is replaced when the limit changes.
#[derive(Default)]
pub(crate) struct LimiterCell(Mutex<Option<Arc<Limiter>>>);

/// A limit with its counters.
pub(crate) struct Limiter {
    limit: RateLimitSettings,
    clock: CallClock,
    shared: Option<RateLimiter<NotKeyed, InMemoryState, CallClock, NoOpMiddleware<Duration>>>,
    per_principal: Option<PrincipalLimiter>,
}

/// Separate counters for each principal.
struct PrincipalLimiter {
    limiter: RateLimiter<Principal, DashMapStateStore<Principal>, CallClock, NoOpMiddleware<Duration>>,
    /// Number of checks after which principals with an unused limit are dropped.
    sweep_after: AtomicUsize,
    n_checks: AtomicUsize,
}

/// Tenant and name of a principal.
type Principal = (Arc<str>, Arc<str>);

/// Scope in which a limit counts calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitScope {
    /// The calls of all principals together, and of each principal at most its share.
    Shared,
    /// The calls of each principal separately.
    PerPrincipal,
}

/// Adapter from the clock of calls to the clock of `governor`.
#[derive(Clone)]
struct CallClock(Arc<dyn Clock>);

impl governor::clock::Clock for CallClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.now().since(Instant::default())
    }
}

impl LimiterCell {
    /// Returns the limiter of this limit. Creates a new one if the limit has changed.
    pub(crate) fn limiter(
        &self,
        limit: RateLimitSettings,
        scope: LimitScope,
        clock: &Arc<dyn Clock>,
    ) -> Arc<Limiter> {
        let mut cell = self.0.lock();
        match &*cell {
            Some(limiter) if limiter.limit == limit => limiter.clone(),
            _ => cell
                .insert(Arc::new(Limiter::new(limit, scope, clock.clone())))
                .clone(),
        }
    }
}

impl Limiter {
    fn new(limit: RateLimitSettings, scope: LimitScope, clock: Arc<dyn Clock>) -> Self {
        let clock = CallClock(clock);
        let share = match scope {
            LimitScope::PerPrincipal => Some(limit.requests),
            LimitScope::Shared => limit.per_principal,
        };
        let per_principal = share.map(|requests| PrincipalLimiter {
            limiter: RateLimiter::dashmap_with_clock(quota(requests, &limit), clock.clone()),
            sweep_after: AtomicUsize::new(MIN_SWEEP),
            n_checks: AtomicUsize::new(0),
        });
        let shared = (scope == LimitScope::Shared)
            .then(|| RateLimiter::direct_with_clock(quota(limit.requests, &limit), clock.clone()));
        Self {
            limit,
            clock,
            shared,
            per_principal,
        }
    }

    /// Counts a call. Returns the time to wait if it exceeds the limit. A principal that has used up its share takes nothing
    /// from the others.
    pub(crate) fn count(&self, caller: &Caller) -> Result<(), Duration> {
        let wait = |until: NotUntil<Duration>| whole_milliseconds(until.wait_time_from(self.clock.now()));
        if let Some(per_principal) = &self.per_principal {
            per_principal.sweep();
            let principal = (caller.tenant.clone(), caller.principal.clone());
            per_principal.limiter.check_key(&principal).map_err(wait)?;
        }
        match &self.shared {
            Some(limiter) => limiter.check().map_err(wait),
            None => Ok(()),
        }
    }

    /// Returns the number of principals with counters.
    #[cfg(test)]
    fn n_principals(&self) -> usize {
        self.per_principal.as_ref().map_or(0, |each| each.limiter.len())
    }
}

/// Minimum number of checks between two sweeps.
const MIN_SWEEP: usize = 1024;

impl PrincipalLimiter {
    /// Drops the principals with an unused limit from time to time: once per as many checks as there are principals. A check thus
    /// has a constant amortized cost, and at most twice the necessary number of principals is kept.
    fn sweep(&self) {
        let n_checks = self.n_checks.fetch_add(1, Ordering::Relaxed) + 1;
        if n_checks < self.sweep_after.load(Ordering::Relaxed) {
            return;
        }
        self.n_checks.store(0, Ordering::Relaxed);
        self.limiter.retain_recent();
        self.limiter.shrink_to_fit();
        self.sweep_after
            .store(self.limiter.len().max(MIN_SWEEP), Ordering::Relaxed);
    }
}

/// Returns the quota of this many calls per period, with the limit's burst.
fn quota(requests: u32, limit: &RateLimitSettings) -> Quota {
    let requests = NonZeroU32::new(requests).unwrap_or(NonZeroU32::MIN);
    let burst = limit.burst.and_then(NonZeroU32::new);
    let each = (limit.period / requests.get()).max(Duration::from_nanos(1));
    Quota::with_period(each)
        .expect("the time for one call is greater than 0")
        .allow_burst(burst.map_or(requests, |burst| burst.min(requests)))
}

/// Rounds up to whole milliseconds, so that a caller who waits this long is not too early.
fn whole_milliseconds(duration: Duration) -> Duration {
    let milliseconds = duration.as_nanos().div_ceil(1_000_000);
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::{sync::Mutex, time::SystemTime};

    use super::*;

    /// Clock that a test sets.
    #[derive(Default)]
    struct ManualClock(Mutex<Duration>);

    impl Clock for ManualClock {
        fn now(&self) -> Instant {
            Instant::since_start(*self.0.lock().unwrap())
        }

        fn wall(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH
        }
    }

    #[test]
    fn idle_principals_are_dropped() {
        let clock = Arc::new(ManualClock::default());
        let limit = RateLimitSettings::new(10, Duration::from_secs(10));
        let limiter = Limiter::new(limit, LimitScope::PerPrincipal, clock.clone());
        for n in 0..100_000_u64 {
            *clock.0.lock().unwrap() = Duration::from_millis(n);
            limiter.count(&Caller::new(format!("p{n}"))).unwrap();
        }
        // A call expires after a second: 1000 of them are needed.
        assert!(
            limiter.n_principals() <= 2 * MIN_SWEEP,
            "{}",
            limiter.n_principals()
        );
    }

    #[test]
    fn a_wait_is_rounded_up() {
        assert_eq!(
            whole_milliseconds(Duration::from_nanos(1)),
            Duration::from_millis(1)
        );
        assert_eq!(
            whole_milliseconds(Duration::from_millis(7)),
            Duration::from_millis(7)
        );
    }
}
