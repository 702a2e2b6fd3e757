//! Replies and errors of calls in the form of the protocol.

mod error;
mod result;

pub(crate) use self::{
    error::{
        Failure, is_unknown_method, is_unknown_tool, missing_capability, needs_page_visit, pending_error,
        rpc_error, upstream_error,
    },
    result::{
        failed_tool_result, failure_reply, into_reply, pending_tool_result, relay_result, resource_result,
        task_result, tool_result,
    },
};
