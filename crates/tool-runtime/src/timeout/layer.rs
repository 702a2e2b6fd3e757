use std::{pin::pin, sync::Arc};

use tool_core::{
    CallContext, ErrorKind, Invoke, Layer, NamedLayer, Outcome, Progress, ToolError, format_duration,
};

use super::within::{ProgressWatch, within_progress};

/// Ends one attempt at the tool's time limit, or at the call's deadline if that is earlier.
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
/// use tool_core::Layers;
/// use tool_runtime::{DeadlineLayer, RetryLayer, TimeoutLayer};
///
/// # fn stack<S>(executor: S) {
/// let stack = Layers::outermost(DeadlineLayer)
///     .then(RetryLayer::default())
///     .then(TimeoutLayer)
///     .around(executor);
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
        let limit = cx.tool().settings().attempt_timeout;
        cx.explain(TimeoutLayer::NAME, || {
            format!("{} for this attempt", format_duration(limit))
        });
        let ask = cx.origin.ask.clone();
        let progress = cx.origin.progress.take();
        let watch = progress
            .clone()
            .map(|progress| ProgressWatch::new(progress, ask.clone()));
        cx.origin.progress = watch.clone().map(|watch| watch as Arc<dyn Progress>);
        let ended = {
            let attempt = pin!(self.inner.invoke(cx));
            within_progress(limit, ask.as_ref(), watch.as_deref(), attempt).await
        };
        cx.origin.progress = progress;
        match ended {
            Some(result) => result,
            None => {
                let missing = match watch {
                    Some(watch) if watch.has_any() => "no answer and no progress",
                    _ => "no answer",
                };
                Err(cx.unanswered(
                    ErrorKind::Timeout,
                    format!("{missing} within {}", format_duration(limit)),
                ))
            }
        }
    }
}
