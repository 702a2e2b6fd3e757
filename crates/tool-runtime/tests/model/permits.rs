//! Permits of a semaphore: never too many, and none is lost.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use shuttle::future::{block_on, spawn, yield_now};
use tool_core::ConcurrencySettings;

use crate::{
    every_order,
    fair_semaphore::{Acquire, FairSemaphore},
    many_orders,
};

/// Result of a call that was not cancelled.
#[derive(Debug, PartialEq, Eq)]
enum End {
    HadAPermit,
    WasRefused,
}

/// A call at the semaphore. Checks that no more than `most` calls run.
async fn call(
    semaphore: Arc<FairSemaphore>,
    limit: ConcurrencySettings,
    most: u32,
    n_running: Arc<AtomicU32>,
) -> End {
    let permit = match semaphore.acquire(&limit) {
        Acquire::Permit(permit) => permit,
        Acquire::Queued(mut waiter) => waiter.permit().await,
        Acquire::Full(_) => return End::WasRefused,
    };
    let running = Running::begin(n_running);
    assert!(
        running.0.load(Relaxed) <= most,
        "more are running than there are permits"
    );
    yield_now().await;
    drop(running);
    drop(permit);
    End::HadAPermit
}

struct Running(Arc<AtomicU32>);

impl Running {
    fn begin(counter: Arc<AtomicU32>) -> Self {
        counter.fetch_add(1, Relaxed);
        Self(counter)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Makes this many calls at once, of which the first ones are cancelled at some time; the model's own thread makes
/// the last one. All calls that are not cancelled get a permit in the end, unless the queue was full; then all
/// permits are free.
fn crowd(limit: ConcurrencySettings, n_calls: u32, n_given_up: u32) {
    let (semaphore, n_running) = (Arc::<FairSemaphore>::default(), Arc::<AtomicU32>::default());
    let begin = || call(semaphore.clone(), limit, limit.max, n_running.clone());
    let others: Vec<_> = (1..n_calls).map(|_| spawn(begin())).collect();
    for given_up in others.iter().take(n_given_up as usize) {
        given_up.abort();
    }
    let mut ends = vec![block_on(begin())];
    for (number, other) in others.into_iter().enumerate() {
        match block_on(other) {
            Ok(end) => ends.push(end),
            Err(_) => assert!(number < n_given_up as usize, "nobody has given this up"),
        }
    }
    let n_refused = ends.iter().filter(|end| **end == End::WasRefused).count() as u32;
    let n_too_many = n_calls.saturating_sub(limit.max + limit.queue);
    assert!(n_refused <= n_too_many, "there was room for more");
    let permits: Vec<_> = (0..limit.max).map(|_| semaphore.acquire(&limit)).collect();
    assert!(
        permits.iter().all(|permit| matches!(permit, Acquire::Permit(_))),
        "a permit is lost"
    );
}

const fn limit(max: u32, queue: u32) -> ConcurrencySettings {
    {
        let mut new = ConcurrencySettings::new(max);
        new.queue = queue;
        new
    }
}

#[test]
fn every_order_of_two_calls_leaves_all_permits_free() {
    for (limit, n_given_up) in [(limit(1, 1), 0), (limit(1, 1), 1), (limit(1, 0), 1)] {
        let n_orders = every_order(move || crowd(limit, 2, n_given_up));
        assert!(n_orders > 10, "{n_orders}");
    }
}

#[test]
fn thousands_of_orders_of_six_calls_leave_all_permits_free() {
    for (limit, n_given_up) in [
        (limit(1, 6), 2),
        (limit(2, 6), 3),
        (limit(2, 2), 1),
        (limit(1, 6), 5),
    ] {
        many_orders(move || crowd(limit, 6, n_given_up));
    }
}

#[test]
fn a_limit_that_is_raised_lets_in_those_who_wait_in_any_order() {
    many_orders(|| {
        let (semaphore, n_running) = (Arc::<FairSemaphore>::default(), Arc::<AtomicU32>::default());
        let begin = |max| spawn(call(semaphore.clone(), limit(max, 2), 2, n_running.clone()));
        for call in [begin(1), begin(1), begin(2)] {
            assert_eq!(block_on(call).expect("nobody gives it up"), End::HadAPermit);
        }
    });
}
