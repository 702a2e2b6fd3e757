//! Partial results: refuses or marks results that are incomplete.

mod layer;

pub use self::layer::{PartialResults, PartialResultsLayer};
