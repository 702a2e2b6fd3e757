//! Calls of tools, prompts, resources and completions: the request, its preview, and the outcome.

mod mcp_call;
mod outcome;
mod preview;
mod request_options;

pub(crate) use self::{mcp_call::McpCall, outcome::input_request, request_options::request_options};
