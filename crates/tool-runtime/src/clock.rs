use std::time::SystemTime;

use tokio::time::Instant as TokioInstant;
use tool_core::{Clock, Instant};

/// The clock of tokio's runtime: it stands still where a test has paused that.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    start: TokioInstant,
}

impl TokioClock {
    /// A clock that starts now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            start: TokioInstant::now(),
        }
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Instant {
        Instant::since_start(self.start.elapsed())
    }

    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }
}
