use std::sync::Arc;

use crate::{BoxFuture, CallContext, Outcome, Tool, ToolError};

/// The port through which a layer makes another call: of a tool that stands in for the one that was called. Such a call
/// goes through everything that any other goes through, as what it is: nothing is passed round.
pub trait Gate: Send + Sync {
    /// Looks up the tool of this name among those that the client of a call sees. Its server may have to be started first.
    /// Whether the caller may call it is decided when it is called.
    ///
    /// # Errors
    /// When there is none.
    fn find<'a>(&'a self, tool: &'a str, cx: &'a CallContext) -> BoxFuture<'a, Result<Arc<Tool>, ToolError>>;

    /// Makes a call.
    ///
    /// # Cancellation
    /// Dropping the future cancels it.
    ///
    /// # Errors
    /// As any call.
    fn call<'a>(&'a self, cx: &'a mut CallContext) -> BoxFuture<'a, Result<Outcome, ToolError>>;
}
