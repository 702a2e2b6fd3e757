//! Error policy: rewords errors for callers, and raises alerts.

mod layer;
mod masking;
mod settings;

pub use self::{
    layer::{ErrorPolicy, ErrorPolicyLayer},
    masking::text_for_caller,
    settings::{ErrorPolicySettings, ErrorRule},
};
