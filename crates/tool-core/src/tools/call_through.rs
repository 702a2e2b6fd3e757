use std::sync::Arc;

use serde::Serialize;

use crate::{Arguments, CallContext, Invoke, Reply, Tool, ToolError};

impl Tool {
    /// Calls the tool through a stack of layers, for the local caller, with arguments that serialize as an object.
    ///
    /// This is [`CallContext::local`], [`Invoke::invoke`] and [`Outcome::into_reply`](crate::Outcome::into_reply). A program
    /// that needs another caller, a deadline of its own, or the decisions of the layers writes these three.
    ///
    /// # Cancellation
    /// When the future is dropped, the call is cancelled. The tool may have run.
    ///
    /// # Errors
    /// If the arguments are no object, or the call fails or has no reply yet.
    ///
    /// # Examples
    /// ```
    /// use tool_core::{
    ///     Layers, TargetBackend, Tool, ToolError, invoke_fn,
    ///     serde_json::json,
    /// };
    ///
    /// # async fn example() -> Result<(), ToolError> {
    /// let tool = Tool::builder("weather").run(invoke_fn(|_| async { Ok::<_, ToolError>(json!("sunny")) }));
    /// // Here come the layers of `tool-runtime` and `tool-policy`.
    /// let stack = Layers::outermost(|inner| inner).around(TargetBackend);
    /// let reply = tool.call_through(&stack, &json!({"city": "Oslo"})).await?;
    /// assert_eq!(reply.text(), "sunny");
    /// # Ok(())
    /// # }
    /// # let mut example = Box::pin(example());
    /// # let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    /// # assert!(matches!(example.as_mut().poll(&mut cx), std::task::Poll::Ready(Ok(()))));
    /// ```
    pub async fn call_through<S, T>(self: &Arc<Self>, stack: &S, arguments: &T) -> Result<Reply, ToolError>
    where
        S: Invoke + ?Sized,
        T: Serialize + ?Sized,
    {
        let arguments = Arguments::from_serialize(arguments)?;
        let mut cx = CallContext::local(self, arguments);
        stack.invoke(&mut cx).await?.into_reply()
    }
}
