//! Command endpoints as files and the environment describe them.

pub(crate) mod endpoint;
pub(crate) mod spec;
mod words;
