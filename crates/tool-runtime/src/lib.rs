//! The execution layers of a governed call: [`DeadlineLayer`] bounds the whole of it, [`IdempotencyLayer`] makes a key have its
//! effect once, [`FallbackLayer`] finds something else when a call fails, [`CacheLayer`] keeps answers and makes identical calls
//! once, [`RetryLayer`] tries again what failed, [`HedgeLayer`] gives slow attempts company, [`ConcurrencyLimitLayer`] bounds how many
//! attempts run at once, [`TimeoutLayer`] one attempt. Each works alone around anything that implements
//! [`tool_core::Invoke`], and [`TokioClock`] is the clock they measure with.
//!
//! ```
//! use tool_core::Layer;
//! use tool_runtime::{Deadline, Retry, Timeout};
//!
//! # fn stack<S>(executor: S) {
//! let stack = Deadline.layer(Retry::default().layer(Timeout.layer(executor)));
//! # }
//! ```

mod cache;
mod clock;
mod concurrency_limit;
mod deadline;
mod fallback;
mod hedge;
mod idempotency;
mod retry;
mod sync;
mod timeout;
mod within;

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
