//! Checks of a workflow before it runs.

pub(crate) mod against;
pub(crate) mod structure;
mod types;
