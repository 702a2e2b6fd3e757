//! Fallback: answers in place of a tool that failed, with another tool, a stale result or a default.

mod layer;
mod reply_check;
mod run;
mod settings;

pub use self::{
    layer::{Fallback, FallbackLayer},
    settings::{FailureStep, FallbackLadder},
};
