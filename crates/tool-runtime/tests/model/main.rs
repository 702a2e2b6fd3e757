//! Models of the fair semaphore and of the single flight: compile the source of both with mutexes and tasks whose
//! scheduler tries all interleavings of two calls at a semaphore, and thousands of all others.

#[expect(dead_code, reason = "the model needs a part of it")]
#[path = "../../src/concurrency_limit/fair_semaphore.rs"]
mod fair_semaphore;
#[expect(dead_code, reason = "the model needs a part of it")]
#[path = "../../src/cache/response_cache.rs"]
mod response_cache;
#[expect(dead_code, reason = "the model needs a part of it")]
#[path = "../../src/cache/single_flight.rs"]
mod single_flight;

pub(crate) use tool_runtime::CacheScope;

/// Replaces `src/sync.rs`.
mod sync {
    use shuttle::sync::PoisonError;
    pub(crate) use shuttle::{
        future::{AbortHandle, spawn},
        sync::MutexGuard,
    };

    /// Mutex of shuttle with the interface of `parking_lot`.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }
}

mod flights;
mod permits;

use shuttle::{
    Config, Runner,
    scheduler::{DfsScheduler, RandomScheduler, Scheduler},
};

/// Tries all interleavings, and returns their number. An interleaving that waits forever fails the test.
fn every_order(scenario: impl Fn() + Send + Sync + 'static) -> usize {
    run(DfsScheduler::new(None, false), scenario)
}

/// Tries a part of the interleavings, the same ones each time.
fn many_orders(scenario: impl Fn() + Send + Sync + 'static) -> usize {
    run(RandomScheduler::new_from_seed(11, 1000), scenario)
}

fn run(scheduler: impl Scheduler + 'static, scenario: impl Fn() + Send + Sync + 'static) -> usize {
    let mut config = Config::new();
    config.stack_size = 1 << 18;
    Runner::new(scheduler, config).run(scenario)
}
