//! Log lines: of calls and attempts, and of accesses, alerts, breakers, definitions, sources and switches.
//!
//! Each file names the target of its lines. Operators filter by these targets, so they stay when a file moves.

mod access_log;
mod alert_log;
mod authoring_log;
mod breaker_log;
pub(crate) mod call_log;
mod definition_log;
mod source_log;
mod switch_log;

pub use self::{
    access_log::AccessLog, alert_log::AlertLog, authoring_log::AuthoringLog, breaker_log::BreakerLog,
    definition_log::DefinitionLog, source_log::SourceLog, switch_log::SwitchLog,
};
