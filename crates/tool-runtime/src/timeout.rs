use std::pin::pin;

use tool_core::{CallContext, ErrorKind, Invoke, Layer, Outcome, ToolError};

use crate::within::within;

/// Bounds one attempt by the tool's own limit, within what the call's deadline leaves.
///
/// # Cancellation
/// The attempt's future is dropped. Whether the tool may have run is then read from the attempt's
/// [`Dispatch`](tool_core::Dispatch) mark: see [`CallContext::unanswered`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Timeout;

/// The layer of [`Timeout`].
#[derive(Debug, Clone)]
pub struct Timing<S> {
    inner: S,
}

impl<S> Layer<S> for Timeout {
    type Invoke = Timing<S>;

    fn layer(self, inner: S) -> Timing<S> {
        Timing { inner }
    }
}

impl<S: Invoke> Invoke for Timing<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let limit = cx.tool().settings().attempt_timeout;
        cx.note("timeout", || format!("{limit:?} for this attempt"));
        let ask = cx.ask.clone();
        let ended = {
            let attempt = pin!(self.inner.invoke(cx));
            within(limit, ask.as_ref(), attempt).await
        };
        match ended {
            Some(result) => result,
            None => Err(cx.unanswered(ErrorKind::Timeout, format!("no answer within {limit:?}"))),
        }
    }
}
