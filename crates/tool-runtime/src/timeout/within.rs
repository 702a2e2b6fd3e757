use std::{future::pending, pin::Pin, sync::Arc, time::Duration};

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
    within_limits(
        Limits {
            attempt: limit,
            call: None,
        },
        ask,
        None,
        future,
    )
}

/// Runs a future like [`within`], and restarts the limit of the attempt with each report of progress.
pub(super) async fn within_limits<F: Future>(
    limits: Limits,
    ask: Option<&Asker>,
    watch: Option<&ProgressWatch>,
    future: Pin<&mut F>,
) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = async { time_out(limits, ask, watch).await } => None,
    }
}

/// Time limits of an attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Limit that progress restarts.
    pub(super) attempt: Duration,
    /// Time left for the call, which nothing extends; `None` if the call has no deadline.
    pub(super) call: Option<Duration>,
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

/// Waits until a limit has passed since the start, or that of the attempt since the last report. The time of questions does not
/// count.
async fn time_out(limits: Limits, ask: Option<&Asker>, watch: Option<&ProgressWatch>) {
    let call = limits.call.unwrap_or(Duration::MAX);
    if ask.is_none() && watch.is_none() {
        return sleep(limits.attempt.min(call)).await;
    }
    let begun = (Instant::now(), asked_for(ask));
    let end_of = |(start, asked_before): (Instant, Duration), limit| {
        let asked = asked_for(ask).saturating_sub(asked_before);
        start.checked_add(asked.saturating_add(limit))
    };
    loop {
        let last = watch.and_then(ProgressWatch::last).unwrap_or(begun);
        let ends = [end_of(last, limits.attempt), end_of(begun, call)];
        let now = Instant::now();
        let Some(end) = ends.into_iter().flatten().min() else {
            return pending().await;
        };
        if end <= now {
            return;
        }
        let is_waiting = ask.is_some_and(Asker::is_waiting);
        let pause = if is_waiting { POLL_INTERVAL } else { Duration::ZERO };
        sleep_until(end.max(now + pause)).await;
    }
}
