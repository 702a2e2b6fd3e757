//! Calls of tools, prompts, resources and completions: the request, its preview, and the outcome.

mod input_request;
mod mcp_call;
mod outcome;
mod preview;
mod request_options;

pub(crate) use self::{input_request::input_request, mcp_call::McpCall, request_options::request_options};
