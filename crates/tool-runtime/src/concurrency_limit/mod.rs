//! Concurrency limit: limits attempts that run at once, with bounded queues.

mod fair_semaphore;
mod layer;
mod settings;

pub use self::{
    layer::{ConcurrencyLimit, ConcurrencyLimitLayer},
    settings::ConcurrencyLimits,
};
