//! Redaction: hides secrets in results, progress and logs.

mod configured_secrets;
mod layer;
mod redactor;
mod settings;

pub use self::{
    layer::{Redaction, RedactionLayer},
    redactor::Redactor,
    settings::RedactionMode,
};
