//! Fallback: answers in place of a tool that failed, with another tool, a stale result or a default.

mod layer;
mod settings;

pub(crate) use self::layer::mark_degraded;
pub use self::{
    layer::{Fallback, FallbackLayer},
    settings::{FailureStep, FallbackLadder},
};
