use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Mutex, RwLock};
use tool_core::{
    AlertKind, AlertPhase, AlertSubject, CallContext, ErrorKind, Event, Observe, Scope, Target, UpstreamState,
};

use crate::{
    conventions,
    exposition::Page,
    series::{Breaker, Firing, Series, Starts},
    text_format,
};

/// Counts what happens to calls, for Prometheus: [`Metrics::render`] gives the text that it reads.
///
/// # Bounds
/// What is counted of one tool is a fixed amount, and only tools that exist are counted by name: so what callers send
/// makes no series. A server may offer other tools all the time, though: beyond the first 1,000 names all others are
/// counted together, as the tool `other`. Resources are counted together as well, since there may be any number.
#[derive(Default)]
pub struct Metrics {
    tools: Named<Series>,
    upstreams: Named<Breaker>,
    sources: Named<Starts>,
    unresolved: [AtomicU64; ErrorKind::ALL.len()],
    alerts: [[AtomicU64; AlertPhase::ALL.len()]; AlertKind::ALL.len()],
    /// What fires now, of tools and of upstreams.
    firing: [Named<Firing>; 2],
    gauges: Mutex<Vec<Gauge>>,
}

/// A figure that is not counted but read when somebody looks.
pub struct Gauge {
    /// Its name, which begins with `toolplane_`. One that ends in `_total` is a counter, which only grows.
    pub name: &'static str,
    /// What it is.
    pub help: &'static str,
    /// The name of its label, if it has one.
    pub label: Option<&'static str>,
    /// Reads it: the label's value, and the figure.
    pub read: Box<dyn Fn() -> Vec<(String, f64)> + Send + Sync>,
}

/// How many names are told apart.
const MAX_NAMES: usize = 1000;
/// The name of all others.
const OTHER: &str = "other";

/// Something for each name, up to a number of them.
pub(crate) struct Named<T>(RwLock<BTreeMap<Arc<str>, Arc<T>>>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<T: Default> Named<T> {
    fn with(&self, name: &str, act: impl FnOnce(&T)) {
        if let Some(known) = self.0.read().get(name) {
            return act(known);
        }
        let mut all = self.0.write();
        let name = if all.len() < MAX_NAMES || all.contains_key(name) {
            name
        } else {
            OTHER
        };
        act(all.entry(name.into()).or_default());
    }

    /// All of them, in the order of their names.
    pub(crate) fn all(&self) -> Vec<(Arc<str>, Arc<T>)> {
        let all = self.0.read();
        all.iter()
            .map(|(name, one)| (name.clone(), one.clone()))
            .collect()
    }
}

impl Metrics {
    /// Nothing counted yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows a figure as well, which is read whenever somebody looks.
    pub fn gauge(&self, gauge: Gauge) {
        self.gauges.lock().push(gauge);
    }

    /// Everything as Prometheus reads it: the text format, version 0.0.4.
    #[must_use]
    pub fn render(&self) -> String {
        let mut page = Page::default();
        self.read(&mut page);
        text_format::render(page)
    }

    /// Reads all figures onto a page.
    pub(crate) fn read(&self, page: &mut Page) {
        page.series(&self.tools.all());
        page.upstreams(&self.upstreams.all());
        page.sources(&self.sources.all());
        let unresolved = self.unresolved.iter().map(|count| count.load(Ordering::Relaxed));
        let kinds = ErrorKind::ALL.iter().map(|kind| kind.as_str());
        page.unresolved(kinds.zip(unresolved).filter(|(_, count)| *count > 0));
        page.alerts(&self.alerts);
        let [tools, upstreams] = &self.firing;
        page.firing(&[("tool", tools.all()), ("upstream", upstreams.all())]);
        self.read_gauges(page, 0);
    }

    /// Reads the figures of others, without the first `n_known`.
    pub(crate) fn read_gauges(&self, page: &mut Page, n_known: usize) {
        let gauges = self.gauges.lock();
        for gauge in gauges.iter().skip(n_known) {
            page.gauge(gauge);
        }
    }

    #[cfg(feature = "otel")]
    pub(crate) fn n_gauges(&self) -> usize {
        self.gauges.lock().len()
    }

    fn count(&self, cx: &CallContext, event: &Event<'_>) {
        match &cx.target {
            Target::Tool(tool) => self.tools.with(tool.name(), |series| series.count(event)),
            // Prompts and tools may have the same names, tasks are no calls, and of resources there may be any number.
            // None of these is the name of a tool.
            target => self
                .tools
                .with(conventions::method(target), |series| series.count(event)),
        }
    }
}

impl Observe for Metrics {
    fn observe(&self, event: &Event<'_>) {
        match event {
            Event::Unresolved { error, .. } => {
                self.unresolved[error.kind() as usize].fetch_add(1, Ordering::Relaxed);
            }
            Event::SourceChanged { change } => {
                self.sources.with(&change.source, |starts| starts.count(change));
            }
            Event::Alert { alert } => {
                self.alerts[alert.kind as usize][alert.phase as usize].fetch_add(1, Ordering::Relaxed);
                let [tools, upstreams] = &self.firing;
                let subjects = match &alert.subject {
                    AlertSubject::Tool(_) => tools,
                    AlertSubject::Upstream(_) => upstreams,
                };
                if Firing::is_of(alert.kind) {
                    subjects.with(alert.subject.name(), |firing| firing.count(alert));
                }
            }
            Event::BreakerChanged {
                cx,
                scope: Scope::Upstream,
                change,
            } => {
                if let Some(upstream) = cx.tool().state().upstream() {
                    self.upstreams.with(upstream.name(), |breaker| {
                        let owner: Weak<UpstreamState> = Arc::downgrade(upstream);
                        breaker.enter(change.to, owner);
                    });
                }
            }
            Event::CallStarted { cx }
            | Event::CallFinished { cx, .. }
            | Event::AttemptFinished { cx, .. }
            | Event::Retried { cx, .. }
            | Event::Hedged { cx, .. }
            | Event::HedgeWon { cx }
            | Event::Queueing { cx }
            | Event::Queued { cx, .. }
            | Event::CacheUsed { cx, .. }
            | Event::Replayed { cx }
            | Event::RateLimited { cx, .. }
            | Event::Shed { cx, .. }
            | Event::BreakerRejected { cx, .. }
            | Event::Degraded { cx, .. }
            | Event::BreakerChanged { cx, .. } => self.count(cx, event),
            _ => {}
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl fmt::Debug for Gauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gauge")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
