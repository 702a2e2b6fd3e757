use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tool_core::{AlertKind, AlertPhase};

use super::{
    Gauge,
    breaker_metrics::BreakerMetrics,
    firing_alerts::FiringAlerts,
    histogram::{BYTES, BucketBounds, Histogram, HistogramSnapshot, SECONDS},
    source_metrics::SourceMetrics,
    tool_metrics::{ToolMetrics, by_cache_outcome, by_scope, by_step},
};

/// All metrics with their samples, for Prometheus and for the meters of a host program. The names are stable, since
/// dashboards are built on them.
#[derive(Debug, Default)]
pub(crate) struct MetricsPage {
    families: Vec<Family>,
    /// Name of the only family whose samples are read; `None` for all.
    only: Option<String>,
}

/// Metric: all samples of one name.
#[derive(Debug)]
pub(crate) struct Family {
    /// Name without [`PREFIX`].
    pub(crate) name: String,
    pub(crate) kind: FamilyKind,
    pub(crate) help: String,
    pub(crate) samples: Vec<Sample>,
}

/// Metric types of Prometheus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FamilyKind {
    Counter,
    Gauge,
    Histogram,
}

/// One sample of a metric.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) value: SampleValue,
}

/// Value of a [`Sample`].
#[derive(Debug)]
pub(crate) enum SampleValue {
    Number(f64),
    Histogram(HistogramSnapshot),
}

type Tools = [(Arc<str>, Arc<ToolMetrics>)];
type Subjects = Vec<(Arc<str>, Arc<FiringAlerts>)>;

impl MetricsPage {
    /// Adds the metrics of tools.
    pub(super) fn add_tools(&mut self, tools: &Tools) {
        self.each(
            tools,
            "calls_total",
            "Calls that have ended, by outcome.",
            "outcome",
            |one| one.calls.counts(),
        );
        let help = "Duration of calls, including queueing and retries.";
        self.histogram(tools, "call_duration_seconds", help, &SECONDS, |one| {
            &one.call_seconds
        });
        self.head("calls_running", FamilyKind::Gauge, "Calls that run now.");
        for (tool, one) in tools {
            let running = one.running.load(Ordering::Relaxed);
            self.line(&[("tool", tool)], running as f64);
        }
        let help = "Attempts that have ended, by outcome.";
        self.each(tools, "attempts_total", help, "outcome", |one| {
            one.attempts.counts()
        });
        let help = "Duration of attempts.";
        self.histogram(tools, "attempt_duration_seconds", help, &SECONDS, |one| {
            &one.attempt_seconds
        });
        let help = "Failed attempts that were followed by another.";
        self.counter(tools, "retries_total", help, |one| &one.retries);
        let help = "Hedged attempts.";
        self.counter(tools, "hedges_total", help, |one| &one.hedges);
        let help = "Hedged attempts that answered first.";
        self.counter(tools, "hedges_won_total", help, |one| &one.hedges_won);
        let help = "Time that attempts waited in a queue.";
        self.histogram(tools, "queue_wait_seconds", help, &SECONDS, |one| {
            &one.queue_seconds
        });
        self.head(
            "queue_length",
            FamilyKind::Gauge,
            "Attempts that wait in a queue now.",
        );
        for (tool, one) in tools {
            let waiting = one.queueing.load(Ordering::Relaxed);
            if waiting != 0 || one.queue_seconds.snapshot(&SECONDS).is_some() {
                self.line(&[("tool", tool)], waiting as f64);
            }
        }
        let help = "Calls of tools with a cache, by the source of the reply.";
        self.each(tools, "cache_total", help, "outcome", |one| {
            by_cache_outcome(&one.cache)
        });
        let help = "Calls answered with the outcome of an earlier call with the same idempotency key.";
        self.counter(tools, "replays_total", help, |one| &one.replays);
        let help = "Attempts that a rate limit refused, by the scope of the limit.";
        self.each(tools, "rate_limited_total", help, "scope", |one| {
            by_scope(&one.rate_limited)
        });
        let help = "Attempts that a full queue refused, by the scope of the concurrency limit.";
        self.each(tools, "shed_total", help, "scope", |one| by_scope(&one.shed));
        let help = "Attempts that a circuit breaker refused, by the scope of the breaker.";
        self.each(tools, "held_back_total", help, "scope", |one| {
            by_scope(&one.held_back)
        });
        let help = "Failed calls that a fallback answered, by the kind of the fallback step.";
        self.each(tools, "degraded_total", help, "step", |one| {
            by_step(&one.degraded)
        });
        let help = "Calls with a partial result.";
        self.counter(tools, "partial_total", help, |one| &one.partial);
        let breakers: Vec<_> = tools.iter().map(|(tool, one)| (tool, &one.breaker)).collect();
        self.breakers("breaker", "tool", "a tool", &breakers);
        let help = "Size of the arguments of calls, in bytes.";
        self.histogram(tools, "argument_bytes", help, &BYTES, |one| &one.argument_bytes);
        let help = "Size of the results of calls, in bytes.";
        self.histogram(tools, "result_bytes", help, &BYTES, |one| &one.result_bytes);
    }

    /// Adds the circuit breakers of upstreams.
    pub(super) fn add_upstreams(&mut self, upstreams: &[(Arc<str>, Arc<BreakerMetrics>)]) {
        let breakers: Vec<_> = upstreams.iter().map(|(name, one)| (name, &**one)).collect();
        self.breakers("upstream_breaker", "upstream", "what runs tools", &breakers);
    }

    /// Adds the starts and state changes of sources.
    pub(super) fn add_sources(&mut self, sources: &[(Arc<str>, Arc<SourceMetrics>)]) {
        let changes = "source_changes_total";
        self.head(
            changes,
            FamilyKind::Counter,
            "State changes of a source of tools, by the new state.",
        );
        for (source, one) in sources {
            for (state, count) in one.changes() {
                self.line(&[("source", source), ("state", state)], count as f64);
            }
        }
        let name = "source_start_seconds";
        let help = "Duration of starts of a source of tools, including failed starts.";
        self.head(name, FamilyKind::Histogram, help);
        for (source, one) in sources {
            if let Some(snapshot) = one.start_seconds.snapshot(&SECONDS) {
                self.sample(&[("source", source)], SampleValue::Histogram(snapshot));
            }
        }
    }

    /// Adds the calls whose target does not exist.
    pub(crate) fn add_unresolved(&mut self, kinds: impl Iterator<Item = (&'static str, u64)>) {
        self.head(
            "unresolved_calls_total",
            FamilyKind::Counter,
            "Calls of what is not there, by why.",
        );
        for (kind, count) in kinds {
            self.line(&[("kind", kind)], count as f64);
        }
    }

    /// Adds the numbers of alerts.
    pub(crate) fn add_alerts(&mut self, counts: &[[AtomicU64; AlertPhase::ALL.len()]; AlertKind::ALL.len()]) {
        let name = "alerts_total";
        let help = "Alerts, by subject and by whether they begin or end.";
        self.head(name, FamilyKind::Counter, help);
        for (kind, counts) in AlertKind::ALL.iter().zip(counts) {
            for (phase, count) in AlertPhase::ALL.iter().zip(counts) {
                let count = count.load(Ordering::Relaxed);
                if count > 0 {
                    let labels = [("kind", kind.as_str()), ("phase", phase.as_str())];
                    self.line(&labels, count as f64);
                }
            }
        }
    }

    /// Adds the alerts that fire now. Each list of subjects has the label that names them.
    pub(super) fn add_firing(&mut self, subjects: &[(&str, Subjects)]) {
        let name = "alert_firing";
        let help = "1 while an alert fires that ends by itself, otherwise 0; absent if it never fired.";
        self.head(name, FamilyKind::Gauge, help);
        for (label, subjects) in subjects {
            for (subject, one) in subjects {
                for (kind, count) in one.counts() {
                    self.line(&[("kind", kind), (label, subject)], count as f64);
                }
            }
        }
    }

    /// Adds a registered gauge or counter.
    pub(crate) fn add_gauge(&mut self, gauge: &Gauge) {
        let name = gauge.name.strip_prefix(PREFIX).unwrap_or(gauge.name);
        let is_counter = name.ends_with("_total");
        self.head(
            name,
            if is_counter {
                FamilyKind::Counter
            } else {
                FamilyKind::Gauge
            },
            gauge.help,
        );
        for (label_value, number) in (gauge.read)() {
            match gauge.label {
                Some(label) => self.line(&[(label, &label_value)], number),
                None => self.line(&[], number),
            }
        }
    }

    /// Creates a page that reads the samples of one family only.
    #[cfg(feature = "otel")]
    pub(crate) fn only(name: &str) -> Self {
        Self {
            families: Vec::new(),
            only: Some(name.to_owned()),
        }
    }

    pub(crate) fn families(self) -> Vec<Family> {
        self.families
    }

    fn breakers(
        &mut self,
        prefix: &str,
        label: &str,
        owner: &str,
        breakers: &[(&Arc<str>, &BreakerMetrics)],
    ) {
        let moved = || {
            breakers
                .iter()
                .filter_map(|(name, one)| Some((name, one, one.state()?)))
        };
        let state = format!("{prefix}_state");
        let help = format!(
            "The circuit breaker of {owner}: 0 closed, 1 half open, 2 open; absent if it never changed, or if the tool or server does not exist any more."
        );
        self.head(&state, FamilyKind::Gauge, &help);
        for (name, _, number) in moved() {
            self.line(&[(label, name)], number as f64);
        }
        let changes = format!("{prefix}_changes_total");
        self.head(
            &changes,
            FamilyKind::Counter,
            &format!("How often the circuit breaker of {owner} went into a state."),
        );
        for (name, one) in breakers.iter().filter(|(_, one)| one.has_changed()) {
            for (state, count) in one.changes() {
                self.line(&[(label, name), ("state", state)], count as f64);
            }
        }
    }

    fn counter(&mut self, tools: &Tools, name: &str, help: &str, read: impl Fn(&ToolMetrics) -> &AtomicU64) {
        self.head(name, FamilyKind::Counter, help);
        for (tool, one) in tools {
            let count = read(one).load(Ordering::Relaxed);
            if count > 0 {
                self.line(&[("tool", tool)], count as f64);
            }
        }
    }

    fn each<'a, I: Iterator<Item = (&'static str, u64)>>(
        &mut self,
        tools: &'a Tools,
        name: &str,
        help: &str,
        label: &str,
        read: impl Fn(&'a ToolMetrics) -> I,
    ) {
        self.head(name, FamilyKind::Counter, help);
        for (tool, one) in tools {
            for (value, count) in read(one) {
                self.line(&[("tool", tool), (label, value)], count as f64);
            }
        }
    }

    fn histogram(
        &mut self,
        tools: &Tools,
        name: &str,
        help: &str,
        bounds: &BucketBounds,
        read: impl Fn(&ToolMetrics) -> &Histogram,
    ) {
        self.head(name, FamilyKind::Histogram, help);
        for (tool, one) in tools {
            if let Some(snapshot) = read(one).snapshot(bounds) {
                self.sample(&[("tool", tool)], SampleValue::Histogram(snapshot));
            }
        }
    }

    fn head(&mut self, name: &str, kind: FamilyKind, help: &str) {
        self.families.push(Family {
            name: name.to_owned(),
            kind,
            help: help.to_owned(),
            samples: Vec::new(),
        });
    }

    /// Adds a sample to the last family.
    fn line(&mut self, labels: &[(&str, &str)], value: f64) {
        self.sample(labels, SampleValue::Number(value));
    }

    fn sample(&mut self, labels: &[(&str, &str)], value: SampleValue) {
        let Some(family) = self.families.last_mut() else {
            return;
        };
        if self.only.as_ref().is_some_and(|only| *only != family.name) {
            return;
        }
        let labels = labels
            .iter()
            .map(|(label, value)| ((*label).to_owned(), (*value).to_owned()));
        family.samples.push(Sample {
            labels: labels.collect(),
            value,
        });
    }
}

/// Prefix of all names.
pub(crate) const PREFIX: &str = "toolplane_";
