//! Metrics of tools, upstreams, sources and alerts, for Prometheus and OpenTelemetry.

mod bounded_map;
mod breaker_metrics;
mod exposition;
mod firing_alerts;
mod histogram;
mod source_metrics;
mod text_format;
mod tool_metrics;

use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tool_core::{
    AlertKind, AlertPhase, AlertSubject, CallContext, ErrorKind, Event, Observe, Scope, Target, UpstreamState,
};

pub(crate) use self::exposition::MetricsPage;
use self::{
    bounded_map::BoundedMap, breaker_metrics::BreakerMetrics, firing_alerts::FiringAlerts,
    source_metrics::SourceMetrics, tool_metrics::ToolMetrics,
};
#[cfg(feature = "otel")]
pub(crate) use self::{
    exposition::{Family, FamilyKind, SampleValue},
    histogram::{BYTES, BucketBounds, SECONDS},
};
use crate::conventions;

/// Counts calls and their events, for Prometheus: [`Metrics::render`] returns its text format.
///
/// # Cardinality
/// The metrics of one tool take a fixed amount of memory, and only tools that exist are counted by name, so callers cannot
/// create series. A server can offer new tools at any time, though: all names after the first 1,000 are counted together,
/// as the tool `other`. Resources are counted together as well, since their number is unlimited.
///
/// # Examples
///
/// ```
/// use tool_observe::{Gauge, Metrics};
///
/// let metrics = Metrics::new();
/// metrics.add_gauge(Gauge {
///     name: "toolplane_cache_bytes",
///     help: "Open connections.",
///     label: None,
///     read: Box::new(|| vec![(String::new(), 3.0)]),
/// });
/// assert!(metrics.render().contains("toolplane_cache_bytes 3"));
/// ```
#[derive(Default)]
pub struct Metrics {
    tools: BoundedMap<ToolMetrics>,
    upstreams: BoundedMap<BreakerMetrics>,
    sources: BoundedMap<SourceMetrics>,
    unresolved: [AtomicU64; ErrorKind::ALL.len()],
    alerts: [[AtomicU64; AlertPhase::ALL.len()]; AlertKind::ALL.len()],
    /// Firing alerts of tools, and of upstreams.
    firing: [BoundedMap<FiringAlerts>; 2],
    gauges: Mutex<Vec<Gauge>>,
}

/// Metric that is read when it is rendered, instead of counted.
pub struct Gauge {
    /// Name, which begins with `toolplane_`. A name that ends in `_total` is a counter, which only grows.
    pub name: &'static str,
    /// Help text.
    pub help: &'static str,
    /// Name of the label, if the metric has one.
    pub label: Option<&'static str>,
    /// Reads the samples: the label's value, and the number.
    pub read: Box<dyn Fn() -> Vec<(String, f64)> + Send + Sync>,
}

impl Metrics {
    /// Creates metrics with all counters at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a gauge or counter that is read on every export.
    pub fn add_gauge(&self, gauge: Gauge) {
        self.gauges.lock().push(gauge);
    }

    /// Returns all metrics in the text format of Prometheus, version 0.0.4.
    #[must_use]
    pub fn render(&self) -> String {
        let mut page = MetricsPage::default();
        self.read(&mut page);
        text_format::render(page)
    }

    /// Reads all metrics onto a page.
    pub(crate) fn read(&self, page: &mut MetricsPage) {
        page.add_tools(&self.tools.all());
        page.add_upstreams(&self.upstreams.all());
        page.add_sources(&self.sources.all());
        let unresolved = self.unresolved.iter().map(|count| count.load(Ordering::Relaxed));
        let kinds = ErrorKind::ALL.iter().map(|kind| kind.as_str());
        page.add_unresolved(kinds.zip(unresolved).filter(|(_, count)| *count > 0));
        page.add_alerts(&self.alerts);
        let [tools, upstreams] = &self.firing;
        page.add_firing(&[("tool", tools.all()), ("upstream", upstreams.all())]);
        self.read_gauges(page, 0);
    }

    /// Reads the registered gauges, without the first `n_known`.
    pub(crate) fn read_gauges(&self, page: &mut MetricsPage, n_known: usize) {
        let gauges = self.gauges.lock();
        for gauge in gauges.iter().skip(n_known) {
            page.add_gauge(gauge);
        }
    }

    #[cfg(feature = "otel")]
    pub(crate) fn n_gauges(&self) -> usize {
        self.gauges.lock().len()
    }

    fn count(&self, cx: &CallContext, event: &Event<'_>) {
        match &cx.target {
            Target::Tool(tool) => self.tools.with(tool.name(), |metrics| metrics.count(event)),
            // Prompts and tools may have the same names, tasks are not calls, and the number of resources is unlimited.
            // They are counted by method, which is never the name of a tool.
            target => self
                .tools
                .with(conventions::method(target), |metrics| metrics.count(event)),
        }
    }
}

impl Observe for Metrics {
    fn observe(&self, event: &Event<'_>) {
        match event {
            Event::Unresolved { error, .. } => {
                self.unresolved[error.kind() as usize].fetch_add(1, Ordering::Relaxed);
            }
            Event::SourceChanged { change, .. } => {
                self.sources.with(&change.source, |source| source.count(change));
            }
            Event::Alert { alert, .. } => {
                self.alerts[alert.kind as usize][alert.phase as usize].fetch_add(1, Ordering::Relaxed);
                let [tools, upstreams] = &self.firing;
                let subjects = match &alert.subject {
                    AlertSubject::Tool(_) => tools,
                    _ => upstreams,
                };
                if FiringAlerts::has_kind(alert.kind) {
                    subjects.with(alert.subject.name(), |firing| firing.count(alert));
                }
            }
            Event::BreakerChanged {
                cx,
                scope: Scope::Upstream,
                change,
                ..
            } => {
                if let Some(upstream) = cx.tool().state().upstream() {
                    self.upstreams.with(upstream.name(), |breaker| {
                        let owner: Weak<UpstreamState> = Arc::downgrade(upstream);
                        breaker.enter(change.to, owner);
                    });
                }
            }
            Event::CallStarted { cx, .. }
            | Event::CallFinished { cx, .. }
            | Event::AttemptFinished { cx, .. }
            | Event::Retried { cx, .. }
            | Event::Hedged { cx, .. }
            | Event::HedgeWon { cx, .. }
            | Event::Queueing { cx, .. }
            | Event::Queued { cx, .. }
            | Event::CacheUsed { cx, .. }
            | Event::Replayed { cx, .. }
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
