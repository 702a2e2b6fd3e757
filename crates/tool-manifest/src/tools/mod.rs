//! Tools as files describe them.

pub(crate) mod examples;
pub(crate) mod metadata;
pub(crate) mod schema_field;
pub(crate) mod tool;
pub(crate) mod workflow;
