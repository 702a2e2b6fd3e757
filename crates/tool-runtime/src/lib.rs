//! The execution layers of a governed call: [`Deadline`] bounds the whole of it, [`Idempotency`] makes a key have its
//! effect once, [`Degrade`] finds something else when a call fails, [`Share`] keeps answers and makes identical calls
//! once, [`Retry`] tries again what failed, [`Hedge`] gives slow attempts company, [`Concurrency`] bounds how many
//! attempts run at once, [`Timeout`] one attempt. Each works alone around anything that implements
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

mod answers;
mod backoff;
mod budget;
mod clock;
mod concurrency;
mod deadline;
mod degrade;
mod flights;
mod gate;
mod hedge;
mod idempotency;
mod memory_ledger;
mod retry;
mod share;
mod sync;
mod timeout;
mod within;

pub use self::{
    backoff::Backoff,
    budget::RetryBudget,
    clock::TokioClock,
    concurrency::{Concurrency, Limiting},
    deadline::{Deadline, Deadlined},
    degrade::{Degrade, Degrading},
    hedge::{Hedge, Hedging},
    idempotency::{Idempotency, Idempotent},
    memory_ledger::{LedgerLimits, MemoryLedger},
    retry::{Retry, Retrying},
    share::{Share, Sharing},
    timeout::{Timeout, Timing},
};
