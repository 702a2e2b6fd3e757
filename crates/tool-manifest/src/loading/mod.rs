//! Loading: files and directories into one configuration.

pub(crate) mod checks;
pub(crate) mod client_files;
pub(crate) mod code_files;
pub(crate) mod draft;
pub(crate) mod itself;
pub(crate) mod load;
pub(crate) mod plain;
pub(crate) mod search;
