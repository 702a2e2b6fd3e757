use std::time::SystemTime;

use tokio::time::Instant as TokioInstant;
use tool_core::{Clock, Instant};

/// Clock of tokio's runtime. It stands still while a test has paused tokio's time.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    start: TokioInstant,
}

impl TokioClock {
    /// Creates a clock that starts now.
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
