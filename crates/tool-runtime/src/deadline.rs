use std::pin::pin;

use tool_core::{CallContext, ErrorKind, Invoke, Layer, NamedLayer, Outcome, ToolError, format_duration};

use crate::timeout::within;

/// Ends a call at its deadline, which covers queueing, every attempt and every fallback.
///
/// Acts on every call, with the `call_timeout` of the tool's `Settings`: 60 s by default.
///
/// The deadline is the earlier of the caller's deadline and the tool's call timeout. It is set once, as an absolute point in time
/// in [`CallContext::deadline`], so that all inner layers see the remaining time.
///
/// # Examples
/// ```
/// use std::{future::pending, time::Duration};
/// use tool_core::{Arguments, CallContext, ErrorKind, Invoke, Layer, Outcome, TargetBackend, Tool, ToolError, invoke_fn};
/// use tool_runtime::DeadlineLayer;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let hangs = Tool::builder("hangs")
///     .timeouts(Duration::from_millis(10), Duration::from_millis(30000))
///     .read_only(true) // or it ends as unknown: the tool may have run
///     .run(invoke_fn(|_| pending::<Result<Outcome, ToolError>>()));
/// let stack = DeadlineLayer.layer(TargetBackend);
/// let error = stack.invoke(&mut CallContext::local(&hangs, Arguments::none())).await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Timeout);
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct DeadlineLayer;

/// Service of [`DeadlineLayer`].
#[derive(Debug, Clone)]
pub struct Deadline<S> {
    inner: S,
}

impl NamedLayer for DeadlineLayer {
    const NAME: &'static str = "deadline";
}

impl<S> Layer<S> for DeadlineLayer {
    type Invoke = Deadline<S>;

    fn layer(self, inner: S) -> Deadline<S> {
        Deadline { inner }
    }
}

impl<S: Invoke> Invoke for Deadline<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let left = cx.tighten_deadline(cx.tool().settings().call_timeout);
        cx.explain(DeadlineLayer::NAME, || {
            format!("{} for the whole call", format_duration(left))
        });
        if left.is_zero() {
            return Err(ToolError::new(
                ErrorKind::Timeout,
                "the deadline had passed before the call began",
            ));
        }
        let ask = cx.origin.ask.clone();
        let ended = {
            let call = pin!(self.inner.invoke(cx));
            within(left, ask.as_ref(), call).await
        };
        match ended {
            Some(result) => result,
            None => Err(cx.unanswered(
                ErrorKind::Timeout,
                format!("no answer within the call's {}", format_duration(left)),
            )),
        }
    }
}
