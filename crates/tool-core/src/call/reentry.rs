use std::sync::Arc;

use crate::{BoxFuture, CallContext, Outcome, Tool, ToolError};

/// Port through which a layer calls another tool, such as a fallback. The call passes the whole stack, like any
/// other.
pub trait Reentry: Send + Sync {
    /// Looks up a tool by name, or by `name@version`, among those that the client of a call sees. Does not check
    /// permissions; the call does. May start the server of the tool first.
    ///
    /// # Errors
    /// If there is no such tool.
    fn find<'a>(&'a self, tool: &'a str, cx: &'a CallContext) -> BoxFuture<'a, Result<Arc<Tool>, ToolError>>;

    /// Makes a call.
    ///
    /// # Cancellation
    /// Dropping the future cancels the call.
    ///
    /// # Errors
    /// The errors of any call.
    fn call<'a>(&'a self, cx: &'a mut CallContext) -> BoxFuture<'a, Result<Outcome, ToolError>>;
}
