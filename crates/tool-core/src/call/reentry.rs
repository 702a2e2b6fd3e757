use std::sync::Arc;

use crate::{BoxFuture, CallContext, Outcome, Tool, ToolError};

/// The port through which a layer makes another call: of a tool that stands in for the one that was called. Such a call
/// goes through everything that any other goes through, as what it is: nothing is passed round.
pub trait Reentry: Send + Sync {
    /// Looks up the tool of this name among those that the client of a call sees, without a check of permissions: they are
    /// checked when it is called. May start the server of the tool first.
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
