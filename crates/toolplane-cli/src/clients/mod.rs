//! Programs that are MCP clients: the places and forms of their configuration files, and the gateway's entry in them.

pub(crate) mod edit;
pub(crate) mod entry;
pub(crate) mod file;
pub(crate) mod places;
pub(crate) mod table;
