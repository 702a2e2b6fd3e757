//! Partial results: refuses or marks results that are incomplete.

mod layer;
mod settings;

pub use self::{
    layer::{PartialResults, PartialResultsLayer},
    settings::{PartialRule, PartialSettings},
};
