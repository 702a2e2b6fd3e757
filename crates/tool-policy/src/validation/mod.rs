//! Validation: checks arguments against the input schema and results against the output schema.

mod arguments;
mod result;
mod settings;

use tool_core::CheckError;

pub use self::{
    arguments::{Validation, ValidationLayer},
    result::{ResultValidation, ResultValidationLayer},
    settings::ArgumentSettings,
};

/// Describes a failed check without the checked values.
fn masked(error: &CheckError) -> String {
    match error {
        CheckError::Mismatch(mismatch) => mismatch.masked(),
        other => other.to_string(),
    }
}
