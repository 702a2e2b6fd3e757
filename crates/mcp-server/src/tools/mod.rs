//! A service made of tools: definitions and closures, with everything that MCP asks of a server of tools.

mod arguments;
mod call;
mod definition;
mod error;
mod output;
mod serve;
mod service;
mod toolset;

pub use self::{
    arguments::ArgumentsError, call::ToolCall, definition::ToolDefinition, error::AddToolError,
    output::ToolOutput, toolset::Tools,
};
