use std::{fmt, sync::Arc};

use crate::{Arguments, Backend, CallContext, Invoke, Outcome, ToolError};

/// Closure as a callable: see [`invoke_fn`].
#[derive(Clone, Copy)]
pub struct InvokeFn<F>(F);

/// Makes a callable, and a backend, of a closure from arguments to a result.
///
/// A call counts as sent when the closure is called and as answered when its future ends. So a call that is cancelled
/// in between may have run, and is only repeated if its tool is declared idempotent.
///
/// # Examples
/// ```
/// use tool_core::{
///     Arguments, CallContext, Invoke, TargetBackend, Tool, ToolError, invoke_fn, serde_json::json,
/// };
///
/// # async fn example() -> Result<(), ToolError> {
/// let tool = Tool::builder("greet").run(invoke_fn(|arguments| async move {
///     let name = arguments.value()["name"].as_str().unwrap_or("you").to_owned();
///     Ok::<_, ToolError>(json!(format!("Good morning, {name}!")))
/// }));
/// let arguments = Arguments::from_serialize(&json!({"name": "Ada"}))?;
/// let outcome = TargetBackend.invoke(&mut CallContext::local(&tool, arguments)).await?;
/// assert_eq!(outcome.into_reply()?.text(), "Good morning, Ada!");
/// # Ok(())
/// # }
/// # let mut example = Box::pin(example());
/// # let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
/// # assert!(matches!(example.as_mut().poll(&mut cx), std::task::Poll::Ready(Ok(()))));
/// ```
pub fn invoke_fn<F, Fut, O>(function: F) -> InvokeFn<F>
where
    F: Fn(Arc<Arguments>) -> Fut + Send + Sync,
    Fut: Future<Output = Result<O, ToolError>> + Send,
    O: Into<Outcome>,
{
    InvokeFn(function)
}

impl<F, Fut, O> Invoke for InvokeFn<F>
where
    F: Fn(Arc<Arguments>) -> Fut + Send + Sync,
    Fut: Future<Output = Result<O, ToolError>> + Send,
    O: Into<Outcome>,
{
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let dispatch = cx.dispatch();
        dispatch.sent();
        let result = (self.0)(cx.arguments.clone()).await;
        dispatch.answered();
        result.map(Into::into)
    }
}

impl<F, Fut, O> Backend for InvokeFn<F>
where
    F: Fn(Arc<Arguments>) -> Fut + Send + Sync,
    Fut: Future<Output = Result<O, ToolError>> + Send,
    O: Into<Outcome>,
{
}

impl<F> fmt::Debug for InvokeFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InvokeFn(..)")
    }
}
