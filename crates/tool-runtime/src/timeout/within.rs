use std::{pin::Pin, sync::Arc, time::Duration};

use parking_lot::Mutex;
use raw_json::RawJson;
use tokio::time::{Instant, sleep, sleep_until};
use tool_core::{Asker, Progress};

/// Runs a future for at most this long. Returns `None` if it did not end in time. The time for which the caller is asked a
/// question does not count.
///
/// [`tokio::time::timeout`] reads the clock first. This function sets its timer only when the future first has to wait: a result
/// that is ready at once costs neither a timer nor a read of the clock.
///
/// The future stays where it is pinned. If it were moved in, the caller's future would hold it twice, with all layers below.
pub(crate) fn within<F: Future>(
    limit: Duration,
    ask: Option<&Asker>,
    future: Pin<&mut F>,
) -> impl Future<Output = Option<F::Output>> {
    within_progress(limit, ask, None, future)
}

/// Runs a future like [`within`], and restarts the time limit with each report of progress.
pub(super) async fn within_progress<F: Future>(
    limit: Duration,
    ask: Option<&Asker>,
    watch: Option<&ProgressWatch>,
    future: Pin<&mut F>,
) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = async { time_out(limit, ask, watch).await } => None,
    }
}

/// Interval at which an open question is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Forwards a tool's progress reports, and records the time of the last one.
pub(super) struct ProgressWatch {
    progress: Arc<dyn Progress>,
    ask: Option<Asker>,
    /// Time of the last report, and the time for which the caller had been asked by then.
    last: Mutex<Option<(Instant, Duration)>>,
}

impl ProgressWatch {
    pub(super) fn new(progress: Arc<dyn Progress>, ask: Option<Asker>) -> Arc<Self> {
        Arc::new(Self {
            progress,
            ask,
            last: Mutex::default(),
        })
    }

    /// Returns `true` if progress was reported.
    pub(super) fn has_any(&self) -> bool {
        self.last().is_some()
    }

    fn last(&self) -> Option<(Instant, Duration)> {
        *self.last.lock()
    }
}

impl Progress for ProgressWatch {
    fn report(&self, report: RawJson) {
        let now = (Instant::now(), asked_for(self.ask.as_ref()));
        *self.last.lock() = Some(now);
        self.progress.report(report);
    }
}

/// Returns the total time for which the caller was asked questions.
fn asked_for(ask: Option<&Asker>) -> Duration {
    ask.map_or(Duration::ZERO, Asker::waited)
}

/// Waits until the limit has passed since the start or the last report, not counting the time of questions.
async fn time_out(limit: Duration, ask: Option<&Asker>, watch: Option<&ProgressWatch>) {
    if ask.is_none() && watch.is_none() {
        return sleep(limit).await;
    }
    let begun = (Instant::now(), asked_for(ask));
    loop {
        let (start, asked_before) = watch.and_then(ProgressWatch::last).unwrap_or(begun);
        let end = start + limit + asked_for(ask).saturating_sub(asked_before);
        let now = Instant::now();
        if end <= now {
            return;
        }
        let is_waiting = ask.is_some_and(Asker::is_waiting);
        let pause = if is_waiting { POLL_INTERVAL } else { Duration::ZERO };
        sleep_until(end.max(now + pause)).await;
    }
}
