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

use crate::vitals::{Mark, Vitals, nanoseconds};

/// Keeps account of how the attempts of the last minutes went, for each tool and each upstream.
///
/// # What counts
/// Attempts, not calls: a retry that succeeds hides from the caller that the tool failed, not from the operator. An
/// attempt is a failure if its error [counts for health](tool_core::ErrorKind::counts_for_health), or if nobody waited for it any
/// longer though it [had its time](CallContext::had_its_time). Other errors count neither way. For an upstream an
/// answer counts as one even if it is an error of the tool: one broken tool of a server does not take the others
/// with it.
///
/// The time that a caller took to answer questions is not the tool's.
///
/// # Accuracy
/// Counts and means are exact; percentiles are within 3.2 %. The window reaches back nine to ten tenths of its length, and
/// after [a change](HealthBook::look_back) up to a tenth of the one before further, until that is over.
///
/// # Memory
/// That of one tool lies with what its layers know of it, and is gone when the tool is: some 2 KiB for one that
/// behaves, 40 KiB at most.
pub struct HealthTracker {
    id: u64,
    clock: Arc<dyn Clock>,
    /// In nanoseconds.
    window: AtomicU64,
    entries: RwLock<HashMap<AlertSubject, Entry>>,
}

/// Where the vitals of something are.
struct Entry {
    vitals: Weak<Vitals>,
    /// What runs a tool.
    upstream: Option<Arc<str>>,
}

/// Tells books apart.
static LAST_ID: AtomicU64 = AtomicU64::new(0);

impl HealthTracker {
    /// How far back attempts count where nothing else is said.
    pub const WINDOW: Duration = Duration::from_secs(300);

    /// An empty book.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, window: Duration) -> Self {
        Self {
            id: LAST_ID.fetch_add(1, Ordering::Relaxed) + 1,
            clock,
            window: AtomicU64::new(nanoseconds(window)),
            entries: RwLock::default(),
        }
    }

    /// How far back attempts count.
    #[must_use]
    pub fn window(&self) -> Duration {
        Duration::from_nanos(self.window.load(Ordering::Relaxed))
    }

    /// Has attempts count as far back as this from now on. What is known stays as far as it is within it; what was forgotten
    /// before does not come back.
    pub fn set_window(&self, window: Duration) {
        self.window.store(nanoseconds(window), Ordering::Relaxed);
    }

    /// Where the time comes from.
    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The report on this, and nothing if nothing was ever known of it or it is gone.
    #[must_use]
    pub fn report(&self, subject: &AlertSubject) -> Option<HealthReport> {
        let vitals = self.vitals(subject)?;
        Some(vitals.report(self.clock.now(), self.window()))
    }

    /// The reports on everything of which anything is known, with what runs each tool, by kind and name.
    #[must_use]
    pub fn reports(&self) -> Vec<(AlertSubject, Option<Arc<str>>, HealthReport)> {
        let (now, window) = (self.clock.now(), self.window());
        let mut entries = self.entries.write();
        entries.retain(|_, entry| entry.vitals.strong_count() > 0);
        let known: Vec<_> = entries
            .iter()
            .filter_map(|(subject, entry)| {
                Some((subject.clone(), entry.upstream.clone(), entry.vitals.upgrade()?))
            })
            .collect();
        drop(entries);
        let mut reports: Vec<_> = known
            .into_iter()
            .map(|(subject, upstream, vitals)| (subject, upstream, vitals.report(now, window)))
            .collect();
        reports.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        reports
    }

    /// Takes note of what a check of a tool found.
    pub fn record_tool_check(&self, tool: &tool_core::Tool, succeeded: bool, took: Duration) {
        self.tool_vitals(tool).checked(succeeded, took);
    }

    /// Takes note of what a check of an upstream found.
    pub fn record_upstream_check(&self, upstream: &Arc<UpstreamState>, succeeded: bool, took: Duration) {
        self.upstream_vitals(upstream).checked(succeeded, took);
    }

    /// Forgets what checks of this found, since it is not checked any more.
    pub fn unchecked(&self, subject: &AlertSubject) {
        if let Some(vitals) = self.vitals(subject) {
            vitals.unchecked();
        }
    }

    fn vitals(&self, subject: &AlertSubject) -> Option<Arc<Vitals>> {
        let entries = self.entries.read();
        entries.get(subject)?.vitals.upgrade()
    }

    fn tool_vitals(&self, tool: &tool_core::Tool) -> Arc<Vitals> {
        let state = tool.state();
        let vitals = state.get_or_init(Vitals::default);
        if vitals.is_new_to(self.id) {
            let upstream = state.upstream().map(|upstream| upstream.name().clone());
            self.enter(AlertSubject::Tool(tool.name().clone()), &vitals, upstream);
        }
        vitals
    }

    fn upstream_vitals(&self, upstream: &Arc<UpstreamState>) -> Arc<Vitals> {
        let vitals = upstream.get_or_init(Vitals::default);
        if vitals.is_new_to(self.id) {
            self.enter(AlertSubject::Upstream(upstream.name().clone()), &vitals, None);
        }
        vitals
    }

    fn enter(&self, subject: AlertSubject, vitals: &Arc<Vitals>, upstream: Option<Arc<str>>) {
        let vitals = Arc::downgrade(vitals);
        let mut entries = self.entries.write();
        entries.insert(subject, Entry { vitals, upstream });
    }

    fn attempt(
        &self,
        cx: &CallContext,
        result: Option<&Result<Outcome, ToolError>>,
        elapsed: Duration,
        at: Instant,
    ) {
        if matches!(cx.target, Target::Task { .. }) {
            // Waiting for a task is not the tool's time, and what it says of itself it said when it was called.
            return;
        }
        let signs = HealthSignals::of(cx, result, elapsed);
        let (Some(of_tool), Some(of_upstream)) = (mark(signs.tool), mark(signs.upstream)) else {
            return;
        };
        let waited = cx.origin.ask.as_ref().map_or(Duration::ZERO, Asker::waited);
        let took = elapsed.saturating_sub(waited);
        let window = self.window();
        // Prompts and resources may have the names of tools; they count for their server alone.
        if matches!(cx.target, Target::Tool(_)) {
            self.tool_vitals(cx.tool()).record(at, window, of_tool, took);
        }
        if let Some(upstream) = cx.tool().state().upstream() {
            self.upstream_vitals(upstream)
                .record(at, window, of_upstream, took);
        }
    }
}

/// As what an attempt counts; nothing if it does not.
fn mark(sign: HealthSignal) -> Option<Mark> {
    match sign {
        HealthSignal::Answered | HealthSignal::ToolFailure => Some(Mark::Answered),
        HealthSignal::Reported => Some(Mark::Reported),
        HealthSignal::Failure | HealthSignal::AuthFailure => Some(Mark::Failed),
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
        f.debug_struct("HealthBook")
            .field("window", &self.window())
            .finish_non_exhaustive()
    }
}
