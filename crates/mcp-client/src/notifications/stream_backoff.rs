//! Backoff between two notification streams.

use std::time::Duration;

use tokio::time::Instant;

/// Pause after a stable stream.
pub(crate) const INITIAL: Duration = Duration::from_secs(1);
/// Maximum pause, and lifetime after which a stream counts as stable.
pub(crate) const MAX: Duration = Duration::from_secs(60);

/// Returns the pause before the next stream: doubles `pause`, or resets it if the stream opened at `start` was stable.
/// All lists are read again after each stream, so a server that never keeps a stream open is asked ever less.
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
