//! Error policy: decides how errors read for callers, and raises alerts.

mod layer;
mod masking;

pub use self::{
    layer::{ErrorPolicy, ErrorPolicyLayer},
    masking::tellable,
};
