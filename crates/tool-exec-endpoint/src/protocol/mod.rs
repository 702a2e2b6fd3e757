//! Both sides of the protocol: requests, replies and errors as JSON.
//!
//! | request | reply |
//! |---|---|
//! | `{"action": "list_tools"}` | `{"type": "result", "tools": [..]}` |
//! | `{"action": "describe_tool", "tool": ".."}` | `{"type": "result", "tool": {..}}` |
//! | `{"action": "call_tool", "tool": "..", "arguments": {..}}` | `{"type": "result", "tool": "..", "result": {..}}` |
//! | any | `{"type": "error", "error": {"name": "..", "category": "..", "message": ".."}}` |
//!
//! An object with a duplicate key is refused at any depth, in requests and in replies: two readers could see different values.

mod category;
mod error;
mod reply;
mod request;

pub use self::{
    category::ErrorCategory,
    error::{EndpointFailure, ProtocolError},
    reply::EndpointReply,
    request::EndpointRequest,
};
