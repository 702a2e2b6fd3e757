//! Concurrency limit: limits attempts that run at once, with bounded queues.

mod fair_semaphore;
mod layer;

pub use self::layer::{ConcurrencyLimit, ConcurrencyLimitLayer};
