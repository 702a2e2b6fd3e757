//! Building of a toolplane from a configuration, and its replacement by another one.

pub(crate) mod assemble;
pub(crate) mod background;
pub(crate) mod builder;
pub(crate) mod chaos;
pub(crate) mod error;
pub(crate) mod executors;
pub(crate) mod features;
#[cfg(feature = "exec-mcp")]
pub(crate) mod list_store;
pub(crate) mod observers;
pub(crate) mod policies;
pub(crate) mod reload;
