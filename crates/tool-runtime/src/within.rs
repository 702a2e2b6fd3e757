use std::time::Duration;

use tokio::time::sleep;

/// Runs a future for at most this long; nothing if it did not end in time.
///
/// Unlike [`tokio::time::timeout`], which reads the clock first, the timer is set when the future first has to wait:
/// an answer that is there at once costs neither a timer nor a look at the clock.
pub(crate) async fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = async { sleep(limit).await } => None,
    }
}
