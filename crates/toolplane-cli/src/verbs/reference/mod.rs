//! Verbs that describe the program itself.

pub(crate) mod completions;
pub(crate) mod docs;
pub(crate) mod man;
pub(crate) mod schema;
pub(crate) mod version;
