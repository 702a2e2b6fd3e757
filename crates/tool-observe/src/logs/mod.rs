//! Log lines: of calls and attempts, and of alerts, breakers, sources and switches.
//!
//! Each file names the target of its lines. Operators filter by these targets, so they stay when a file moves.

mod alert_log;
mod breaker_log;
pub(crate) mod call_log;
mod source_log;
mod switch_log;

pub use self::{alert_log::AlertLog, breaker_log::BreakerLog, source_log::SourceLog, switch_log::SwitchLog};
