use std::{pin::pin, sync::Arc};

use tool_core::{
    CallContext, ErrorKind, Instant, Invoke, Layer, NamedLayer, Outcome, Progress, ToolError, format_duration,
};

use super::within::{Limits, ProgressWatch, within_limits};

/// Ends one attempt at the tool's time limit, or at the call's deadline if that is earlier.
///
/// Acts on every call, with the `attempt_timeout` of the tool's `Settings`: 30 s by default. Without
/// [`DeadlineLayer`](crate::DeadlineLayer), a call has a deadline only if its context came with one.
///
/// # Progress
/// A tool that reports progress is at work: each report restarts its time limit. No report extends the call's deadline.
///
/// # Cancellation
/// The attempt's future is dropped. The attempt's [`Dispatch`](tool_core::Dispatch) mark then says whether the tool may have run:
/// see [`CallContext::unanswered`].
///
/// # Examples
/// ```
/// use std::{future::pending, time::Duration};
/// use tool_core::{Arguments, CallContext, ErrorKind, Invoke, Layer, Outcome, TargetBackend, Tool, ToolError, invoke_fn};
/// use tool_runtime::TimeoutLayer;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let hangs = Tool::builder("hangs")
///     .timeouts(Duration::from_millis(60000), Duration::from_millis(10))
///     .read_only(true) // or it ends as unknown: the tool may have run
///     .run(invoke_fn(|_| pending::<Result<Outcome, ToolError>>()));
/// let stack = TimeoutLayer.layer(TargetBackend);
/// let error = stack.invoke(&mut CallContext::local(&hangs, Arguments::none())).await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Timeout);
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct TimeoutLayer;

/// Service of [`TimeoutLayer`].
#[derive(Debug, Clone)]
pub struct Timeout<S> {
    inner: S,
}

impl NamedLayer for TimeoutLayer {
    const NAME: &'static str = "timeout";
}

impl<S> Layer<S> for TimeoutLayer {
    type Invoke = Timeout<S>;

    fn layer(self, inner: S) -> Timeout<S> {
        Timeout { inner }
    }
}

impl<S: Invoke> Invoke for Timeout<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let limits = Limits {
            attempt: cx.tool().settings().attempt_timeout,
            call: cx.remaining(),
        };
        cx.explain(TimeoutLayer::NAME, || {
            format!("{} for this attempt", format_duration(limits.attempt))
        });
        let start = cx.clock.now();
        let ask = cx.origin.ask.clone();
        let progress = cx.origin.progress.take();
        let watch = progress
            .clone()
            .map(|progress| ProgressWatch::new(progress, ask.clone()));
        cx.origin.progress = watch.clone().map(|watch| watch as Arc<dyn Progress>);
        let ended = {
            let attempt = pin!(self.inner.invoke(cx));
            within_limits(limits, ask.as_ref(), watch.as_deref(), attempt).await
        };
        cx.origin.progress = progress;
        ended.unwrap_or_else(|| {
            if cx.has_expired() {
                return Err(past_deadline(cx, start));
            }
            let missing = match watch {
                Some(watch) if watch.has_any() => "no answer and no progress",
                _ => "no answer",
            };
            let message = format!("{missing} within {}", format_duration(limits.attempt));
            Err(cx.unanswered(ErrorKind::Timeout, message))
        })
    }
}

/// Returns the error of an attempt that the call's deadline ended. It says something about the tool only if the attempt ran for
/// about as long as its limits allow.
fn past_deadline(cx: &CallContext, start: Instant) -> ToolError {
    let error = cx.unanswered(ErrorKind::Timeout, "no answer before the call's deadline");
    if cx.ran_until_timeout(cx.clock.now().since(start)) {
        error
    } else {
        error.ignored_by_health()
    }
}
