//! Execution layers of a governed call: how long it may take, and how often and where it is attempted.
//!
//! - [`DeadlineLayer`] ends a call at its deadline.
//! - [`IdempotencyLayer`] runs a tool once for all calls with one idempotency key.
//! - [`FallbackLayer`] answers in place of a tool that failed.
//! - [`CacheLayer`] caches results, and runs identical concurrent calls once (single flight).
//! - [`RetryLayer`] re-attempts failed calls, within a budget.
//! - [`HedgeLayer`] sends a second attempt when the first is slow.
//! - [`ConcurrencyLimitLayer`] limits the attempts that run at once, with a fair semaphore.
//! - [`IntentLayer`] records a call durably before it is sent.
//! - [`TimeoutLayer`] ends one attempt.
//! - [`TaskLayer`] runs a tool that reports in the background, for clients that support tasks.
//!
//! Each layer works alone around anything that implements [`tool_core::Invoke`].
//!
//! # Settings
//! Layers are created for a stack, and most of them take their numbers from the called tool: a layer does nothing for a tool
//! whose `Settings` do not contain its setting. The documentation of each layer begins with the one that it needs, and
//! [`ToolBuilder::setting`](tool_core::ToolBuilder::setting) sets it.
//!
//! # Time
//! All layers wait by tokio's timers, so they need a runtime with `enable_time`. They remember times between calls, so all calls
//! of a stack must use one clock: `SystemClock`, of which all instances agree, or clones of one [`TokioClock`], which stands
//! still while a test has paused tokio's time.
//!
//! # Attempts
//! Layers and backends share the [dispatch mark](tool_core::Dispatch) of each attempt. A backend marks that its request is sent and
//! that it is answered; closures of [`invoke_fn`](tool_core::invoke_fn) are marked by it. Nothing that was sent is attempted again
//! unless the tool is declared to be repeatable.
//!
//! # Examples
//! ```
//! use std::{future::ready, time::Duration};
//!
//! use tool_core::{
//!     Arguments, CallContext, ErrorKind, Invoke, Layers, RawJson, TargetBackend, Tool, ToolError, invoke_fn,
//! };
//! use tool_runtime::{DeadlineLayer, RetryLayer, RetrySettings, TimeoutLayer};
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() {
//!     let busy = || ToolError::new(ErrorKind::Unavailable, "busy");
//!     let tool = Tool::builder("busy")
//!         .idempotent(true)
//!         .timeouts(Duration::from_secs(5), Duration::from_secs(1))
//!         .setting(RetrySettings::default().with_max_attempts(2))
//!         .run(invoke_fn(move |_| ready(Err::<RawJson, _>(busy()))));
//!     let stack = Layers::outermost(DeadlineLayer)
//!         .then(RetryLayer::default())
//!         .then(TimeoutLayer)
//!         .around(TargetBackend);
//!     let mut cx = CallContext::local(&tool, Arguments::none());
//!     let error = stack.invoke(&mut cx).await.unwrap_err();
//!     assert_eq!((error.message(), cx.attempt), ("busy", 2));
//! }
//! ```

mod cache;
mod clock;
mod concurrency_limit;
mod deadline;
mod degraded;
mod fallback;
mod hedge;
mod idempotency;
mod intent;
mod retry;
mod sync;
mod task;
mod timeout;

pub use self::{
    cache::{Cache, CacheCapacity, CacheLayer, CacheScope, CacheSettings, SemanticCacheSettings},
    clock::TokioClock,
    concurrency_limit::{ConcurrencyLimit, ConcurrencyLimitLayer, ConcurrencyLimits},
    deadline::{Deadline, DeadlineLayer},
    fallback::{FailureStep, Fallback, FallbackLadder, FallbackLayer},
    hedge::{Hedge, HedgeAfter, HedgeLayer, HedgePercent, HedgeSettings},
    idempotency::{
        Idempotency, IdempotencyKeyPlace, IdempotencyLayer, IdempotencySettings, LedgerCapacity,
        LedgerLimits, MemoryLedger,
    },
    intent::{Intent, IntentLayer, IntentSettings},
    retry::{Backoff, Retry, RetryBudget, RetryLayer, RetrySettings},
    task::{RunAsTask, TaskLayer},
    timeout::{Timeout, TimeoutLayer},
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
