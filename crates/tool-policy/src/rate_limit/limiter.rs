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

/// What was used of a limit, kept while the limit stays what it is.
#[derive(Default)]
pub(crate) struct Used(Mutex<Option<Arc<Limiter>>>);

/// One limit, and what was used of it.
pub(crate) struct Limiter {
    limit: RateLimitSettings,
    clock: CallClock,
    together: Option<RateLimiter<NotKeyed, InMemoryState, CallClock, NoOpMiddleware<Duration>>>,
    each: Option<Each>,
}

/// Each principal by itself.
struct Each {
    limiter: RateLimiter<Principal, DashMapStateStore<Principal>, CallClock, NoOpMiddleware<Duration>>,
    /// How many checks there may be before those are forgotten who have all of theirs left.
    sweep_after: AtomicUsize,
    n_checks: AtomicUsize,
}

/// Tenant and name.
type Principal = (Arc<str>, Arc<str>);

/// Whose calls a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counts {
    /// All of them together, and of one principal no more than its share.
    Together,
    /// Those of each principal by themselves.
    Each,
}

/// The clock of calls as the limiter wants it.
#[derive(Clone)]
struct CallClock(Arc<dyn Clock>);

impl governor::clock::Clock for CallClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.now().since(Instant::default())
    }
}

impl Used {
    /// The limiter of this limit: a new one if the limit is another than before.
    pub(crate) fn of(
        &self,
        limit: RateLimitSettings,
        counts: Counts,
        clock: &Arc<dyn Clock>,
    ) -> Arc<Limiter> {
        let mut used = self.0.lock();
        match &*used {
            Some(limiter) if limiter.limit == limit => limiter.clone(),
            _ => used
                .insert(Arc::new(Limiter::new(limit, counts, clock.clone())))
                .clone(),
        }
    }
}

impl Limiter {
    fn new(limit: RateLimitSettings, counts: Counts, clock: Arc<dyn Clock>) -> Self {
        let clock = CallClock(clock);
        let share = match counts {
            Counts::Each => Some(limit.requests),
            Counts::Together => limit.per_principal,
        };
        let each = share.map(|requests| Each {
            limiter: RateLimiter::dashmap_with_clock(quota(requests, &limit), clock.clone()),
            sweep_after: AtomicUsize::new(MIN_SWEEP),
            n_checks: AtomicUsize::new(0),
        });
        let together = (counts == Counts::Together)
            .then(|| RateLimiter::direct_with_clock(quota(limit.requests, &limit), clock.clone()));
        Self {
            limit,
            clock,
            together,
            each,
        }
    }

    /// Counts a call, or says how long to wait before the next. A principal that has used up its share takes nothing
    /// away from the others.
    pub(crate) fn take(&self, caller: &Caller) -> Result<(), Duration> {
        let wait = |until: NotUntil<Duration>| whole_milliseconds(until.wait_time_from(self.clock.now()));
        if let Some(each) = &self.each {
            each.forget();
            let principal = (caller.tenant.clone(), caller.principal.clone());
            each.limiter.check_key(&principal).map_err(wait)?;
        }
        match &self.together {
            Some(limiter) => limiter.check().map_err(wait),
            None => Ok(()),
        }
    }

    /// For how many principals something is kept.
    #[cfg(test)]
    fn n_principals(&self) -> usize {
        self.each.as_ref().map_or(0, |each| each.limiter.len())
    }
}

/// How many checks there are at least before a sweep.
const MIN_SWEEP: usize = 1024;

impl Each {
    /// Forgets those who have all of theirs left, now and then: as often as there are some to look at, so that a check
    /// costs the same however many there are, and no more is kept than twice what is needed.
    fn forget(&self) {
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

/// So many calls in the limit's period, no more at once than its burst.
fn quota(requests: u32, limit: &RateLimitSettings) -> Quota {
    let requests = NonZeroU32::new(requests).unwrap_or(NonZeroU32::MIN);
    let burst = limit.burst.and_then(NonZeroU32::new);
    let each = (limit.period / requests.get()).max(Duration::from_nanos(1));
    Quota::with_period(each)
        .expect("the time for one call is longer than 0")
        .allow_burst(burst.map_or(requests, |burst| burst.min(requests)))
}

/// Rounded up, so that whoever waits so long is not too early.
fn whole_milliseconds(duration: Duration) -> Duration {
    let milliseconds = duration.as_nanos().div_ceil(1_000_000);
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::{sync::Mutex, time::SystemTime};

    use super::*;

    /// A clock that a test sets.
    #[derive(Default)]
    struct Hand(Mutex<Duration>);

    impl Clock for Hand {
        fn now(&self) -> Instant {
            Instant::since_start(*self.0.lock().unwrap())
        }

        fn wall(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH
        }
    }

    #[test]
    fn those_who_do_not_come_again_are_forgotten() {
        let clock = Arc::new(Hand::default());
        let limit = RateLimitSettings {
            requests: 10,
            period: Duration::from_secs(10),
            burst: None,
            per_principal: None,
        };
        let limiter = Limiter::new(limit, Counts::Each, clock.clone());
        for n in 0..100_000_u64 {
            *clock.0.lock().unwrap() = Duration::from_millis(n);
            limiter.take(&Caller::new(format!("p{n}"))).unwrap();
        }
        // A call is forgotten after a second: 1000 of them are needed.
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
