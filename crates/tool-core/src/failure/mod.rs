//! Errors, dispatch marks and health signals, and the rules that follow from them.

mod dispatch;
mod error;
mod health_signal;
mod retry_after;

pub use self::{
    dispatch::{Dispatch, DispatchHistory, DispatchState, SideEffect, is_status_not_taken},
    error::{Category, ErrorKind, ToolError},
    health_signal::{HealthSignal, HealthSignals},
    retry_after::{RetryAfter, retry_after},
};
