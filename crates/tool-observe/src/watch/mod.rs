//! Layers that report calls and attempts to observers, logs and tracers.

mod attempt;
mod call;
mod guard;

pub use self::{
    attempt::{WatchAttempt, WatchAttemptLayer},
    call::{Watch, WatchLayer},
};
