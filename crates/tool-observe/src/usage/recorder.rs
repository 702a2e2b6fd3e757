use std::{collections::HashMap, fmt, mem, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::Mutex as AsyncMutex, time::sleep};
use tool_core::{
    CacheOutcome, CallContext, DailyUsage, DailyUsageError, DispatchState, Event, Observe, Outcome, Target,
    ToolError, UsageFigures, UsageKey, UtcDay,
};

/// Time for which figures are gathered before they are written.
const PAUSE: Duration = Duration::from_secs(1);
/// Maximum number of keys that wait to be written. What belongs to further ones is lost, with a warning.
const MAX_WAITING: usize = 10_000;
/// Maximum number of keys that are written at once: a database with one writer makes calls wait for a long transaction.
const MAX_BATCH: usize = 500;

/// Observer that records usage: how often each principal calls each tool, and with which errors, latencies, sizes and costs.
///
/// Figures are gathered in memory and written in the background after a second. A process that ends without
/// [`UsageRecorder::flush`] loses those of its last second. A storage that does not work holds up no call: what was not
/// written is written later. Dry runs are not recorded. Clones share everything.
#[derive(Clone)]
pub struct UsageRecorder(Arc<Shared>);

/// Settings of a [`UsageRecorder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsageSettings {
    /// `true` if usage is recorded: it is.
    pub is_enabled: bool,
    /// Number of days for which usage is kept, today included: 90.
    pub retention_days: u32,
}

impl Default for UsageSettings {
    fn default() -> Self {
        Self {
            is_enabled: true,
            retention_days: 90,
        }
    }
}

struct Shared {
    store: Arc<dyn DailyUsage>,
    state: Mutex<State>,
    /// Held while figures are written: one write at a time.
    writing: AsyncMutex<()>,
}

#[derive(Default)]
struct State {
    settings: UsageSettings,
    /// Figures that are not written yet.
    waiting: HashMap<UsageKey, UsageFigures>,
    /// `true` while a task of the background will write.
    is_scheduled: bool,
    /// `true` after a failure that was logged, until a write succeeds.
    has_failed: bool,
    /// Number of figures that were lost.
    n_lost: u64,
    /// First day of those that are kept, as of the last deletion.
    kept_from: Option<UtcDay>,
}

impl State {
    /// Returns the figures of a key that wait. Returns `None`, and counts the loss, if too many keys wait.
    fn slot(&mut self, key: UsageKey) -> Option<&mut UsageFigures> {
        if self.waiting.len() >= MAX_WAITING && !self.waiting.contains_key(&key) {
            self.n_lost += 1;
            return None;
        }
        Some(self.waiting.entry(key).or_default())
    }
}

impl UsageRecorder {
    /// Creates a recorder that writes to this storage.
    #[must_use]
    pub fn new(store: Arc<dyn DailyUsage>, settings: UsageSettings) -> Self {
        Self(Arc::new(Shared {
            store,
            state: Mutex::new(State {
                settings,
                ..State::default()
            }),
            writing: AsyncMutex::default(),
        }))
    }

    /// Replaces the settings.
    pub fn reconfigure(&self, settings: UsageSettings) {
        let mut state = self.0.state.lock();
        state.settings = settings;
        state.kept_from = None;
    }

    /// Writes what is not written yet.
    ///
    /// # Cancellation
    /// If the future is dropped, figures that were being written may be lost.
    ///
    /// # Errors
    /// If the storage does not work. The figures stay, and are written later.
    pub async fn flush(&self) -> Result<(), DailyUsageError> {
        self.0.write().await
    }

    /// Adds figures of a call, and has the background write them.
    fn record(&self, cx: &CallContext, add: impl FnOnce(&mut UsageFigures)) {
        let Target::Tool(tool) = &cx.target else {
            return;
        };
        let caller = &cx.origin.caller;
        let key = UsageKey::new(
            UtcDay::of(cx.clock.wall()),
            caller.tenant.clone(),
            caller.principal.clone(),
            tool.name().clone(),
        )
        .with_version(tool.descriptor().version.as_deref().map(Arc::from))
        .with_server(tool.state().upstream().map(|upstream| upstream.name().clone()));
        {
            let mut state = self.0.state.lock();
            if !state.settings.is_enabled {
                return;
            }
            if let Some(waiting) = state.slot(key) {
                add(waiting);
            }
            if mem::replace(&mut state.is_scheduled, true) {
                return;
            }
        }
        self.schedule();
    }

    /// Writes in the background, after a pause.
    fn schedule(&self) {
        let scheduled = Scheduled(self.0.clone());
        // Outside of a runtime, the next event tries again.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            sleep(PAUSE).await;
            let shared = scheduled.0.clone();
            // What is recorded from here on is written by the next task.
            drop(scheduled);
            // A failure is logged, and the next event tries again.
            let _ = shared.write().await;
        });
    }
}

/// Mark that a task will write. It ends with the task: also if there is no runtime, or the runtime ends.
struct Scheduled(Arc<Shared>);

impl Drop for Scheduled {
    fn drop(&mut self) {
        self.0.state.lock().is_scheduled = false;
    }
}

impl Shared {
    async fn write(&self) -> Result<(), DailyUsageError> {
        let _guard = self.writing.lock().await;
        let (figures, n_lost) = {
            let mut state = self.state.lock();
            (mem::take(&mut state.waiting), mem::take(&mut state.n_lost))
        };
        if n_lost > 0 {
            tracing::warn!(n_lost, "usage is lost: too much of it waits to be stored");
        }
        let Some(today) = figures.keys().map(|key| key.day).max() else {
            return Ok(());
        };
        let figures: Vec<_> = figures.into_iter().collect();
        for (number, batch) in figures.chunks(MAX_BATCH).enumerate() {
            if let Err(error) = self.store.add(batch).await {
                self.put_back(figures.into_iter().skip(number * MAX_BATCH));
                if !mem::replace(&mut self.state.lock().has_failed, true) {
                    tracing::warn!(%error, "usage is not stored; it will be tried again");
                }
                return Err(error);
            }
        }
        self.state.lock().has_failed = false;
        self.forget_old(today).await;
        Ok(())
    }

    fn put_back(&self, figures: impl Iterator<Item = (UsageKey, UsageFigures)>) {
        let mut state = self.state.lock();
        for (key, figures) in figures {
            if let Some(waiting) = state.slot(key) {
                waiting.add(&figures);
            }
        }
    }

    /// Deletes the days that are no longer kept, once a day.
    async fn forget_old(&self, today: UtcDay) {
        let kept_from = {
            let state = self.state.lock();
            let kept_from = today.days_before(state.settings.retention_days.saturating_sub(1));
            if state.kept_from.is_some_and(|known| known >= kept_from) {
                return;
            }
            kept_from
        };
        match self.store.forget(kept_from).await {
            Ok(()) => self.state.lock().kept_from = Some(kept_from),
            Err(error) => tracing::debug!(%error, "old usage is not deleted"),
        }
    }
}

impl Observe for UsageRecorder {
    fn observe(&self, event: &Event<'_>) {
        match event {
            Event::AttemptFinished { cx, .. } if cx.dispatch().state() != DispatchState::NotSent => {
                let cost = cost(cx);
                self.record(cx, |figures| {
                    figures.n_attempts += 1;
                    figures.cost = figures.cost.saturating_add(cost);
                });
            }
            Event::CacheUsed {
                cx,
                outcome:
                    CacheOutcome::Hit | CacheOutcome::Stale | CacheOutcome::Semantic | CacheOutcome::Shared,
                ..
            }
            | Event::Replayed { cx, .. }
                if cx.attempt == 0 =>
            {
                let cost = cost(cx);
                self.record(cx, |figures| {
                    figures.n_cached += 1;
                    figures.saved_cost = figures.saved_cost.saturating_add(cost);
                });
            }
            Event::CallFinished {
                cx, result, elapsed, ..
            } if has_ended(*result) => self.record(cx, |figures| add_call(figures, cx, *result, *elapsed)),
            _ => {}
        }
    }
}

/// Returns `false` if the call goes on: it needs input or approval.
fn has_ended(result: Option<&Result<Outcome, ToolError>>) -> bool {
    match result {
        Some(Ok(outcome)) => matches!(outcome, Outcome::Reply(_) | Outcome::Task(_)),
        _ => true,
    }
}

fn add_call(
    figures: &mut UsageFigures,
    cx: &CallContext,
    result: Option<&Result<Outcome, ToolError>>,
    elapsed: Duration,
) {
    figures.n_calls += 1;
    let arguments = cx.arguments.raw().len() as u64;
    figures.argument_bytes = figures.argument_bytes.saturating_add(arguments);
    match result {
        Some(Ok(Outcome::Reply(reply))) => {
            figures.n_errors += u64::from(reply.is_error);
            let result = reply.raw().len() as u64;
            figures.result_bytes = figures.result_bytes.saturating_add(result);
        }
        Some(Err(_)) => figures.n_errors += 1,
        // A cancelled call, and a task that will end later.
        _ => {}
    }
    // A refused call and one that a cache answered say nothing about the tool.
    if cx.attempt > 0 && cx.n_begun() > 0 {
        figures.time = figures.time.saturating_add(elapsed);
        figures.latencies.add(elapsed);
    }
}

/// Returns the declared cost of an attempt, in the unit of [`UsageFigures::cost`].
fn cost(cx: &CallContext) -> u64 {
    let dollars = cx.tool().descriptor().metadata.cost_per_call.unwrap_or_default();
    // Saturates; a number that is negative or none counts as 0.
    (dollars * UsageFigures::COST_UNITS).round() as u64
}

impl fmt::Debug for UsageRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UsageRecorder")
            .field("n_waiting", &self.0.state.lock().waiting.len())
            .finish_non_exhaustive()
    }
}
