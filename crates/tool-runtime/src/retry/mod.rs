//! Retry: attempts a failed call again, within a budget.

mod backoff;
mod budget;
mod layer;
mod settings;

pub(crate) use self::layer::{budget_of, is_repeated, mark_repeated};
pub use self::{
    backoff::Backoff,
    budget::RetryBudget,
    layer::{Retry, RetryLayer},
    settings::RetrySettings,
};
