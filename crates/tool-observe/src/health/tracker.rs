use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::RwLock;
use tool_core::{
    AlertSubject, Asker, CallContext, Clock, Event, Health, HealthReport, HealthSignal, HealthSignals,
    Instant, Observe, Outcome, Target, ToolError, UpstreamState,
};

use super::window::{CountAs, HealthWindow, nanoseconds};

/// Tracks the health of each tool and each upstream, by a sliding window of their attempts.
///
/// The window is a ring of ten buckets, as in the rolling statistics of Netflix's Hystrix.
///
/// # What counts
/// Attempts count, not calls: a retry that succeeds hides the tool's failure from the caller, not from the operator. An
/// attempt is a failure if its error [counts for health](tool_core::ErrorKind::counts_for_health), or if it was cancelled
/// although it [ran until its timeout](CallContext::ran_until_timeout). Other errors do not count at all. For an upstream,
/// an answer counts as one even if it is an error of the tool: one broken tool does not make its server unhealthy.
///
/// The time that a caller took to answer questions does not count for the tool.
///
/// # Accuracy
/// Counts and means are exact; percentiles are within 3.2 %. The window covers between nine tenths and all of its length.
/// After [a change](HealthTracker::set_window), for one window at most, it reaches further back by up to a tenth of the
/// previous length.
///
/// # Memory
/// The window of a tool is stored in the tool's state and is dropped with it. It takes about 2 KiB for a tool with steady
/// latency, 40 KiB at most.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use tool_core::{Clock, Health, HealthStatus};
/// use tool_observe::HealthTracker;
///
/// fn tracker(clock: Arc<dyn Clock>) -> HealthTracker {
///     let tracker = HealthTracker::new(clock, HealthTracker::DEFAULT_WINDOW);
///     assert_eq!(tracker.tool("weather").status, HealthStatus::Unknown);
///     tracker
/// }
/// ```
pub struct HealthTracker {
    id: u64,
    clock: Arc<dyn Clock>,
    /// Length of the window, in nanoseconds.
    window: AtomicU64,
    entries: RwLock<HashMap<AlertSubject, Entry>>,
}

/// Reference to the window of one tool or upstream.
struct Entry {
    window: Weak<HealthWindow>,
    /// Upstream of a tool.
    upstream: Option<Arc<str>>,
}

/// Id of the newest tracker.
static LAST_ID: AtomicU64 = AtomicU64::new(0);

impl HealthTracker {
    /// Default length of the window: 5 minutes.
    pub const DEFAULT_WINDOW: Duration = Duration::from_secs(300);

    /// Creates a tracker without any attempts.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, window: Duration) -> Self {
        Self {
            id: LAST_ID.fetch_add(1, Ordering::Relaxed) + 1,
            clock,
            window: AtomicU64::new(nanoseconds(window)),
            entries: RwLock::default(),
        }
    }

    /// Returns the length of the window.
    #[must_use]
    pub fn window(&self) -> Duration {
        Duration::from_nanos(self.window.load(Ordering::Relaxed))
    }

    /// Changes the length of the window. Attempts inside the new window stay; attempts that were dropped before do not come
    /// back.
    pub fn set_window(&self, window: Duration) {
        self.window.store(nanoseconds(window), Ordering::Relaxed);
    }

    /// Returns the clock of the tracker.
    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Returns the report on a tool or upstream, or `None` if it was never observed or no longer exists.
    #[must_use]
    pub fn report(&self, subject: &AlertSubject) -> Option<HealthReport> {
        let window = self.health_window(subject)?;
        Some(window.report(self.clock.now(), self.window()))
    }

    /// Returns the reports on all tools and upstreams that were observed, with the upstream of each tool, sorted by kind and
    /// name.
    #[must_use]
    pub fn reports(&self) -> Vec<(AlertSubject, Option<Arc<str>>, HealthReport)> {
        let (now, length) = (self.clock.now(), self.window());
        let mut entries = self.entries.write();
        entries.retain(|_, entry| entry.window.strong_count() > 0);
        let known: Vec<_> = entries
            .iter()
            .filter_map(|(subject, entry)| {
                Some((subject.clone(), entry.upstream.clone(), entry.window.upgrade()?))
            })
            .collect();
        drop(entries);
        let mut reports: Vec<_> = known
            .into_iter()
            .map(|(subject, upstream, window)| (subject, upstream, window.report(now, length)))
            .collect();
        reports.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        reports
    }

    /// Records the result of a health check of a tool.
    pub fn record_tool_check(&self, tool: &tool_core::Tool, succeeded: bool, took: Duration) {
        self.window_of_tool(tool).record_check(succeeded, took);
    }

    /// Records the result of a health check of an upstream.
    pub fn record_upstream_check(&self, upstream: &Arc<UpstreamState>, succeeded: bool, took: Duration) {
        self.window_of_upstream(upstream).record_check(succeeded, took);
    }

    /// Forgets the results of health checks, for a subject that is no longer checked.
    pub fn forget_checks(&self, subject: &AlertSubject) {
        if let Some(window) = self.health_window(subject) {
            window.forget_checks();
        }
    }

    fn health_window(&self, subject: &AlertSubject) -> Option<Arc<HealthWindow>> {
        let entries = self.entries.read();
        entries.get(subject)?.window.upgrade()
    }

    fn window_of_tool(&self, tool: &tool_core::Tool) -> Arc<HealthWindow> {
        let state = tool.state();
        let window = state.get_or_init(HealthWindow::default);
        if window.register(self.id) {
            let upstream = state.upstream().map(|upstream| upstream.name().clone());
            self.insert(AlertSubject::Tool(tool.name().clone()), &window, upstream);
        }
        window
    }

    fn window_of_upstream(&self, upstream: &Arc<UpstreamState>) -> Arc<HealthWindow> {
        let window = upstream.get_or_init(HealthWindow::default);
        if window.register(self.id) {
            self.insert(AlertSubject::Upstream(upstream.name().clone()), &window, None);
        }
        window
    }

    fn insert(&self, subject: AlertSubject, window: &Arc<HealthWindow>, upstream: Option<Arc<str>>) {
        let window = Arc::downgrade(window);
        let mut entries = self.entries.write();
        entries.insert(subject, Entry { window, upstream });
    }

    fn attempt(
        &self,
        cx: &CallContext,
        result: Option<&Result<Outcome, ToolError>>,
        elapsed: Duration,
        at: Instant,
    ) {
        if matches!(cx.target, Target::Task { .. }) {
            // The wait for a task is not the tool's latency, and its result was counted when the tool was called.
            return;
        }
        let signals = HealthSignals::from_result(cx, result, elapsed);
        let (Some(of_tool), Some(of_upstream)) = (count_as(signals.tool), count_as(signals.upstream)) else {
            return;
        };
        let waited = cx.origin.ask.as_ref().map_or(Duration::ZERO, Asker::waited);
        let took = elapsed.saturating_sub(waited);
        let length = self.window();
        // Prompts and resources may have the names of tools, so they count for their server alone.
        if matches!(cx.target, Target::Tool(_)) {
            self.window_of_tool(cx.tool()).record(at, length, of_tool, took);
        }
        if let Some(upstream) = cx.tool().state().upstream() {
            self.window_of_upstream(upstream)
                .record(at, length, of_upstream, took);
        }
    }
}

/// Returns how an attempt is counted, or `None` if it is not.
fn count_as(signal: HealthSignal) -> Option<CountAs> {
    match signal {
        HealthSignal::Answered | HealthSignal::ToolFailure => Some(CountAs::Answered),
        HealthSignal::Reported => Some(CountAs::Reported),
        HealthSignal::Failure | HealthSignal::AuthFailure => Some(CountAs::Failed),
        HealthSignal::Neutral | HealthSignal::NotObserved => None,
    }
}

impl Observe for HealthTracker {
    fn observe(&self, event: &Event<'_>) {
        if let Event::AttemptFinished {
            cx,
            result,
            elapsed,
            at,
            ..
        } = event
        {
            self.attempt(cx, *result, *elapsed, *at);
        }
    }
}

impl Health for HealthTracker {
    fn tool(&self, name: &str) -> HealthReport {
        let report = self.report(&AlertSubject::Tool(name.into()));
        report.unwrap_or(HealthReport::UNKNOWN)
    }

    fn upstream(&self, name: &str) -> HealthReport {
        let report = self.report(&AlertSubject::Upstream(name.into()));
        report.unwrap_or(HealthReport::UNKNOWN)
    }
}

impl fmt::Debug for HealthTracker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HealthTracker")
            .field("window", &self.window())
            .finish_non_exhaustive()
    }
}
