//! Configuration files of MCP clients: recognized, and translated into servers of our own form.
//!
//! A file is never made to offer more than it does in its client. A setting that restricts a server is honoured, or that one server
//! is refused with the reason; the other servers of the file can be used.

mod format;
mod formats;
mod paths;
mod sandbox;
mod server;
mod take;
mod tool_rules;
mod translate;
mod variables;
mod workspace;

pub(crate) use self::{
    take::take,
    translate::{is_of_client, translate},
    workspace::Surroundings,
};
