//! Settings of tools: one typed slot for each layer, and the few facts that several crates share.
//!
//! A layer's own settings are in the crate of the layer. The settings in this module are read by several crates, or
//! by the contract of a call itself.

mod cache_outcome;
mod degraded;
mod limits;
mod redacted_fields;
mod resolved;
mod setting;

pub use self::{
    cache_outcome::CacheOutcome,
    degraded::{Degraded, DegradedStep, FailedStep, FallbackOf},
    limits::{ConcurrencySettings, Scopes},
    redacted_fields::RedactedFields,
    resolved::{Settings, TaskSupport},
    setting::{Overrides, Setting, SettingLevel},
};
