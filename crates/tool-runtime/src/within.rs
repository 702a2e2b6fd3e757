use std::{pin::Pin, sync::Arc, time::Duration};

use parking_lot::Mutex;
use raw_json::RawJson;
use tokio::time::{Instant, sleep, sleep_until};
use tool_core::{Asker, Progress};

/// Runs a future for at most this long; nothing if it did not end in time. The time in which the caller was asked for
/// something does not count.
///
/// Unlike [`tokio::time::timeout`], which reads the clock first, the timer is set when the future first has to wait:
/// an answer that is there at once costs neither a timer nor a look at the clock.
///
/// The future stays where it is pinned: taken by value it would be in the caller's future twice, with all layers below.
pub(crate) fn within<F: Future>(
    limit: Duration,
    ask: Option<&Asker>,
    future: Pin<&mut F>,
) -> impl Future<Output = Option<F::Output>> {
    within_progress(limit, ask, None, future)
}

/// The same, where the time begins anew with what is `heard`.
pub(crate) async fn within_progress<F: Future>(
    limit: Duration,
    ask: Option<&Asker>,
    heard: Option<&Heard>,
    future: Pin<&mut F>,
) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = async { over(limit, ask, heard).await } => None,
    }
}

/// How often is looked at most whether a question is still open.
const LOOK: Duration = Duration::from_millis(100);

/// Passes on what a tool tells of its progress, and keeps when it did so last.
pub(crate) struct Heard {
    progress: Arc<dyn Progress>,
    ask: Option<Asker>,
    /// And how long the caller had been waited for by then.
    last: Mutex<Option<(Instant, Duration)>>,
}

impl Heard {
    pub(crate) fn new(progress: Arc<dyn Progress>, ask: Option<Asker>) -> Arc<Self> {
        Arc::new(Self {
            progress,
            ask,
            last: Mutex::default(),
        })
    }

    /// Whether anything was heard.
    pub(crate) fn has_any(&self) -> bool {
        self.last().is_some()
    }

    fn last(&self) -> Option<(Instant, Duration)> {
        *self.last.lock()
    }
}

impl Progress for Heard {
    fn report(&self, report: RawJson) {
        let now = (Instant::now(), waited(self.ask.as_ref()));
        *self.last.lock() = Some(now);
        self.progress.report(report);
    }
}

fn waited(ask: Option<&Asker>) -> Duration {
    ask.map_or(Duration::ZERO, Asker::waited)
}

/// Waits until this much time has passed beside that of the caller, since the beginning or what was heard last.
async fn over(limit: Duration, ask: Option<&Asker>, heard: Option<&Heard>) {
    if ask.is_none() && heard.is_none() {
        return sleep(limit).await;
    }
    let begun = (Instant::now(), waited(ask));
    loop {
        let (start, before) = heard.and_then(Heard::last).unwrap_or(begun);
        let end = start + limit + waited(ask).saturating_sub(before);
        let now = Instant::now();
        if end <= now {
            return;
        }
        let is_waiting = ask.is_some_and(Asker::is_waiting);
        let pause = if is_waiting { LOOK } else { Duration::ZERO };
        sleep_until(end.max(now + pause)).await;
    }
}
