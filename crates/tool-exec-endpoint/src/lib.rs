//! Executor and source for command endpoints: programs that read one JSON request from standard input and write one JSON value
//! to standard output. This is the MCP shape of the okso runtime.
//!
//! A [`CommandEndpoint`] is a program with its settings. Its [source](CommandEndpoint::source) lists the tools that the program offers, and
//! an [`EndpointExecutor`] calls them. The [`protocol`] has both sides of the exchange.
//!
//! # Names
//! The outward name of a tool is the endpoint's prefix (its name and `__` by default) followed by its name at the endpoint,
//! brought into the alphabet and length of [`tool_core::outward_name`].
//!
//! # Processes
//! Each request starts the program once, without a shell. Its environment has the [base variables](mcp_client::BASE_VARIABLES),
//! those of the settings, and [`EndpointSettings::DEPTH_VARIABLE`]. When a call ends, at its deadline or because nobody waits for
//! it, the program is killed with all its descendants: see [`mcp_client::Command`].

mod backend;
mod definition;
mod endpoint;
mod executor;
mod failure;
mod listing;
pub mod protocol;
mod settings;
mod source;

pub use self::{
    endpoint::CommandEndpoint,
    executor::EndpointExecutor,
    settings::{EndpointCommand, EndpointKeyPlace, EndpointSettings},
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
