//! How long to wait before a stream is opened again on which a server tells what no request is about.

use std::time::Duration;

use tokio::time::Instant;

/// After one that lasted.
pub(crate) const INITIAL: Duration = Duration::from_secs(1);
/// At most; a stream that has lived for as long has lasted.
pub(crate) const MAX: Duration = Duration::from_secs(60);

/// The pause behind one of `pause`, before another stream than that which was begun at `start`. All lists are read anew after
/// each end, so a server that never keeps the stream is asked ever less.
pub(crate) fn next_pause(pause: Duration, start: Instant) -> Duration {
    if was_stable(start) {
        INITIAL
    } else {
        (pause * 2).min(MAX)
    }
}

pub(crate) fn was_stable(start: Instant) -> bool {
    start.elapsed() >= MAX
}
