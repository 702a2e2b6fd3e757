//! Quota: limits the calls and costs of a conversation or a turn.

mod layer;
mod usage_counters;

pub use self::layer::{MicroDollars, Quota, QuotaLayer, QuotaLimits};
