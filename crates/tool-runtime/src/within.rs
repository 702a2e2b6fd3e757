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

/// A duration as people read it: what is left of a deadline has nanoseconds that nobody asked for.
pub(crate) fn readable(duration: Duration) -> Duration {
    let nanoseconds = duration.subsec_nanos();
    let unit = if duration >= Duration::from_secs(1) {
        10_000_000
    } else {
        1_000_000
    };
    let rounded = (nanoseconds + unit / 2) / unit * unit;
    Duration::from_secs(duration.as_secs()) + Duration::from_nanos(rounded.into())
}
