//! Error policy: decides how errors read for callers, and raises alerts.

mod layer;
mod masking;
mod settings;

pub use self::{
    layer::{ErrorPolicy, ErrorPolicyLayer},
    masking::tellable,
    settings::{ErrorPolicySettings, ErrorRule},
};
