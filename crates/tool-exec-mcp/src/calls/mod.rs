//! Calls of what a server offers: the request, its preview, and the outcome that its result says.

mod mcp_call;
mod outcome;
mod preview;
mod request_options;

pub(crate) use self::{mcp_call::McpCall, outcome::input_request, request_options::request_options};
