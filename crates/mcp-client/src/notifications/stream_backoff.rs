//! How long to wait before a stream is opened again on which a server tells what no request is about.

use std::time::Duration;

use tokio::time::Instant;

/// After one that lasted.
pub(crate) const FIRST: Duration = Duration::from_secs(1);
/// At most; a stream that has lived for as long has lasted.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

/// The pause behind one of `pause`, before another stream than that which was begun at `start`. All lists are read anew after
/// each end, so a server that never keeps the stream is asked ever less.
pub(crate) fn next(pause: Duration, start: Instant) -> Duration {
    if has_lasted(start) {
        FIRST
    } else {
        (pause * 2).min(LONGEST)
    }
}

pub(crate) fn has_lasted(start: Instant) -> bool {
    start.elapsed() >= LONGEST
}
