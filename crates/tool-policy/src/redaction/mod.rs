//! Redaction: hides secrets in results, progress and logs.

mod configured_secrets;
mod layer;
mod redactor;

pub use self::{
    layer::{Redaction, RedactionLayer},
    redactor::Redactor,
};
