//! Execution layers of a governed call: how long it may take, and how often and where it is attempted.
//!
//! - [`DeadlineLayer`] ends a call at its deadline.
//! - [`IdempotencyLayer`] runs a tool once for all calls with one idempotency key.
//! - [`FallbackLayer`] answers in place of a tool that failed.
//! - [`CacheLayer`] caches results, and runs identical concurrent calls once (single flight).
//! - [`RetryLayer`] re-attempts failed calls, within a budget.
//! - [`HedgeLayer`] sends a second attempt when the first is slow.
//! - [`ConcurrencyLimitLayer`] limits the attempts that run at once, with a fair semaphore.
//! - [`TimeoutLayer`] ends one attempt.
//!
//! Each layer works alone around anything that implements [`tool_core::Invoke`]. [`TokioClock`] is the clock of their calls.
//!
//! # Examples
//! ```
//! use tool_core::Layers;
//! use tool_runtime::{DeadlineLayer, RetryLayer, TimeoutLayer};
//!
//! # fn stack<S>(executor: S) {
//! let stack = Layers::outermost(DeadlineLayer)
//!     .then(RetryLayer::default())
//!     .then(TimeoutLayer)
//!     .around(executor);
//! # }
//! ```

mod cache;
mod clock;
mod concurrency_limit;
mod deadline;
mod degraded;
mod fallback;
mod hedge;
mod idempotency;
mod retry;
mod sync;
mod timeout;

pub use self::{
    cache::{Cache, CacheCapacity, CacheLayer, CacheScope, CacheSettings},
    clock::TokioClock,
    concurrency_limit::{ConcurrencyLimit, ConcurrencyLimitLayer, ConcurrencyLimits},
    deadline::{Deadline, DeadlineLayer},
    fallback::{FailureStep, Fallback, FallbackLadder, FallbackLayer},
    hedge::{Hedge, HedgeAfter, HedgeLayer, HedgePercent, HedgeSettings},
    idempotency::{
        Idempotency, IdempotencyKeyPlace, IdempotencyLayer, IdempotencySettings, LedgerCapacity,
        LedgerLimits, MemoryLedger,
    },
    retry::{Backoff, Retry, RetryBudget, RetryLayer, RetrySettings},
    timeout::{Timeout, TimeoutLayer},
};
