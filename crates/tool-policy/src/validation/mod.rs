//! Validation: checks arguments against the input schema and results against the output schema.

mod layer;
mod settings;

pub use self::{
    layer::{ResultValidation, ResultValidationLayer, Validation, ValidationLayer},
    settings::ArgumentSettings,
};
