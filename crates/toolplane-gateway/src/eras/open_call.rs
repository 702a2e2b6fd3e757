use std::{fmt, sync::Arc, time::Duration};

use tokio::time::sleep;
use toolplane::core::{BoxFuture, ErrorKind, Outcome, ToolError};

use super::dialogue::Dialogue;
use crate::abort_on_drop::AbortOnDrop;

/// Time for which questions are collected, so that those asked together share one round. Each round costs the client another
/// request.
const COLLECT: Duration = Duration::from_millis(20);

/// Result of a call.
type CallResult = Result<Outcome, ToolError>;

/// A call that may ask its client. Dropping it cancels the call.
pub(super) struct OpenCall {
    pub(super) dialogue: Arc<Dialogue>,
    run: Run,
}

/// Execution of a call, inline or in a task of its own.
///
/// | state | event | next state |
/// |---|---|---|
/// | `Inline` | the call ends | none: its result is returned |
/// | `Inline` | the call asks and is parked | `Spawned` |
/// | `Spawned` | the call ends | none: its result is returned to the next round |
/// | `Spawned` | the call asks and is parked again | `Spawned` |
/// | any | the call is dropped | none: it is cancelled |
enum Run {
    /// In the request that made the call, as long as it has asked nothing.
    Inline(BoxFuture<'static, CallResult>),
    /// In a task of its own, since it goes on between two requests.
    Spawned(AbortOnDrop<CallResult>),
}

/// Event of an open call.
pub(super) enum Next {
    /// The call has ended.
    Ended(CallResult),
    /// The call has questions for its client.
    Asked,
}

impl OpenCall {
    pub(super) fn new(dialogue: Arc<Dialogue>, call: BoxFuture<'static, CallResult>) -> Self {
        Self {
            dialogue,
            run: Run::Inline(call),
        }
    }

    /// Waits until the call ends or asks.
    pub(super) async fn next(&mut self) -> Next {
        let Self { dialogue, run } = self;
        let ended = async {
            match run {
                Run::Inline(call) => call.await,
                Run::Spawned(task) => (&mut task.0)
                    .await
                    .unwrap_or_else(|_| Err(ToolError::new(ErrorKind::Internal, "the call was aborted"))),
            }
        };
        let asked = async {
            dialogue.wait_for_question().await;
            sleep(COLLECT).await;
        };
        tokio::select! {
            biased;
            ended = ended => Next::Ended(ended),
            () = asked => Next::Asked,
        }
    }

    /// Cancels the call, and returns when it has ended.
    pub(super) async fn cancel(self) {
        if let Run::Spawned(mut task) = self.run {
            task.0.abort();
            // An error means that the task was aborted, as it should be.
            let _ = (&mut task.0).await;
        }
    }

    /// Moves the call into a task of its own.
    pub(super) fn spawn(self) -> Self {
        let run = match self.run {
            Run::Inline(call) => Run::Spawned(AbortOnDrop(tokio::spawn(call))),
            spawned @ Run::Spawned(_) => spawned,
        };
        Self { run, ..self }
    }
}

impl fmt::Debug for OpenCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenCall").finish_non_exhaustive()
    }
}
