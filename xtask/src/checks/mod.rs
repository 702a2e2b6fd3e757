//! Checks of the repository. CI fails if one of them finds a violation.

pub(crate) mod ci;
pub(crate) mod deny;
pub(crate) mod examples;
pub(crate) mod features;
pub(crate) mod form;
pub(crate) mod layers;
pub(crate) mod packages;
pub(crate) mod source;
pub(crate) mod tidy;
