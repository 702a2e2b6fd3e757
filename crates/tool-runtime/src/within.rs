use std::{pin::Pin, time::Duration};

use tokio::time::{Instant, sleep, sleep_until};
use tool_core::Asker;

/// Runs a future for at most this long; nothing if it did not end in time. The time in which the caller was asked for
/// something does not count.
///
/// Unlike [`tokio::time::timeout`], which reads the clock first, the timer is set when the future first has to wait:
/// an answer that is there at once costs neither a timer nor a look at the clock.
///
/// The future stays where it is pinned: taken by value it would be in the caller's future twice, with all layers below.
pub(crate) async fn within<F: Future>(
    limit: Duration,
    ask: Option<&Asker>,
    future: Pin<&mut F>,
) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = async { over(limit, ask).await } => None,
    }
}

/// How often is looked at most whether a question is still open.
const LOOK: Duration = Duration::from_millis(100);

/// Waits until this much time has passed beside that of the caller.
async fn over(limit: Duration, ask: Option<&Asker>) {
    let Some(ask) = ask else {
        return sleep(limit).await;
    };
    let (start, before) = (Instant::now(), ask.waited());
    loop {
        let end = start + limit + ask.waited().saturating_sub(before);
        let now = Instant::now();
        if end <= now {
            return;
        }
        let pause = if ask.is_waiting() { LOOK } else { Duration::ZERO };
        sleep_until(end.max(now + pause)).await;
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
