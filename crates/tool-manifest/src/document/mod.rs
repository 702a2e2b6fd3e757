//! Documents: YAML and JSON as values that know where they stand.

pub(crate) mod json;
pub(crate) mod lists;
pub(crate) mod node;
pub(crate) mod place;
pub(crate) mod scalar;
pub(crate) mod source;
pub(crate) mod spellings;
pub(crate) mod suggest;
pub(crate) mod toml;
pub(crate) mod unknown_keys;
pub(crate) mod yaml;
