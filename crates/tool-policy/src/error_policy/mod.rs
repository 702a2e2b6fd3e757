//! Error policy: rewords errors for callers, and raises alerts.

mod layer;
mod masking;

pub use self::{
    layer::{ErrorPolicy, ErrorPolicyLayer},
    masking::text_for_caller,
};
