use std::{pin::pin, sync::Arc};

use tool_core::{CallContext, ErrorKind, Invoke, Layer, Outcome, Progress, ToolError, format_duration};

use crate::within::{Heard, within_progress};

/// Bounds one attempt by the tool's own limit, within what the call's deadline leaves.
///
/// # Progress
/// A tool that tells the caller of its progress is at work: with each report its limit begins anew. The call's deadline
/// is not put off by any.
///
/// # Cancellation
/// The attempt's future is dropped. Whether the tool may have run is then read from the attempt's
/// [`Dispatch`](tool_core::Dispatch) mark: see [`CallContext::unanswered`].
#[derive(Debug, Clone, Copy, Default)]
pub struct TimeoutLayer;

/// The layer of [`TimeoutLayer`].
#[derive(Debug, Clone)]
pub struct Timeout<S> {
    inner: S,
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
        cx.explain("timeout", || {
            format!("{} for this attempt", format_duration(limit))
        });
        let ask = cx.origin.ask.clone();
        let progress = cx.origin.progress.take();
        let heard = progress.clone().map(|progress| Heard::new(progress, ask.clone()));
        cx.origin.progress = heard.clone().map(|heard| heard as Arc<dyn Progress>);
        let ended = {
            let attempt = pin!(self.inner.invoke(cx));
            within_progress(limit, ask.as_ref(), heard.as_deref(), attempt).await
        };
        cx.origin.progress = progress;
        match ended {
            Some(result) => result,
            None => {
                let what = match heard {
                    Some(heard) if heard.has_any() => "no answer and no progress",
                    _ => "no answer",
                };
                Err(cx.unanswered(
                    ErrorKind::Timeout,
                    format!("{what} within {}", format_duration(limit)),
                ))
            }
        }
    }
}
