use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tool_core::{AlertKind, AlertPhase};

use crate::{
    Gauge,
    histogram::{BYTES, Bounds, Histogram, SECONDS, Shown},
    series::{Breaker, Firing, Series, Starts, cache, scopes, steps},
};

/// A page in the text format of Prometheus. The names on it are a promise: dashboards are built on them.
#[derive(Debug, Default)]
pub(crate) struct Page {
    text: String,
}

type Tools = [(Arc<str>, Arc<Series>)];
type Subjects = Vec<(Arc<str>, Arc<Firing>)>;

impl Page {
    /// Everything about tools.
    pub(crate) fn series(&mut self, tools: &Tools) {
        self.each(
            tools,
            "calls_total",
            "Calls that have ended, by outcome.",
            "outcome",
            |one| one.calls.shown(),
        );
        let help = "How long calls took, queueing and retries included.";
        self.histogram(tools, "call_duration_seconds", help, &SECONDS, |one| {
            &one.call_seconds
        });
        self.head("calls_running", "gauge", "Calls that run now.");
        for (tool, one) in tools {
            let running = one.running.load(Ordering::Relaxed);
            self.line("calls_running", &[("tool", tool)], running as f64);
        }
        let help = "Attempts that have ended, by outcome.";
        self.each(tools, "attempts_total", help, "outcome", |one| {
            one.attempts.shown()
        });
        let help = "How long attempts took.";
        self.histogram(tools, "attempt_duration_seconds", help, &SECONDS, |one| {
            &one.attempt_seconds
        });
        let help = "Failed attempts that were followed by another.";
        self.counter(tools, "retries_total", help, |one| &one.retries);
        let help = "Attempts that were made beside a slow one.";
        self.counter(tools, "hedges_total", help, |one| &one.hedges);
        let help = "Those of them that answered first.";
        self.counter(tools, "hedges_won_total", help, |one| &one.hedges_won);
        let help = "How long attempts waited for their turn.";
        self.histogram(tools, "queue_wait_seconds", help, &SECONDS, |one| {
            &one.queue_seconds
        });
        self.head("queue_length", "gauge", "Attempts that wait for their turn now.");
        for (tool, one) in tools {
            let waiting = one.queueing.load(Ordering::Relaxed);
            if waiting != 0 || one.queue_seconds.shown(&SECONDS).is_some() {
                self.line("queue_length", &[("tool", tool)], waiting as f64);
            }
        }
        let help = "Calls of tools with a cache, by where their answers came from.";
        self.each(tools, "cache_total", help, "outcome", |one| cache(&one.cache));
        let help = "Calls that came to what an earlier one with their idempotency key has come to.";
        self.counter(tools, "replays_total", help, |one| &one.replays);
        let help = "Attempts that a rate limit refused, by whose it is.";
        self.each(tools, "rate_limited_total", help, "scope", |one| {
            scopes(&one.rate_limited)
        });
        let help = "Attempts that were refused since too many others run and wait, by whose limit it is.";
        self.each(tools, "shed_total", help, "scope", |one| scopes(&one.shed));
        let help = "Attempts that a circuit breaker refused, by whose it is.";
        self.each(tools, "held_back_total", help, "scope", |one| {
            scopes(&one.held_back)
        });
        let help = "Calls that failed and were answered in another way, by the step of the tool's ladder.";
        self.each(tools, "degraded_total", help, "step", |one| steps(&one.degraded));
        let help = "Calls that were answered in part.";
        self.counter(tools, "partial_total", help, |one| &one.partial);
        let breakers: Vec<_> = tools.iter().map(|(tool, one)| (tool, &one.breaker)).collect();
        self.breakers("breaker", "tool", "a tool", &breakers);
        let help = "How large the arguments of calls were.";
        self.histogram(tools, "argument_bytes", help, &BYTES, |one| &one.argument_bytes);
        let help = "How large the results of calls were.";
        self.histogram(tools, "result_bytes", help, &BYTES, |one| &one.result_bytes);
    }

    /// The circuit breakers of upstreams.
    pub(crate) fn upstreams(&mut self, upstreams: &[(Arc<str>, Arc<Breaker>)]) {
        let breakers: Vec<_> = upstreams.iter().map(|(name, one)| (name, &**one)).collect();
        self.breakers("upstream_breaker", "upstream", "what runs tools", &breakers);
    }

    /// How sources of tools fare.
    pub(crate) fn sources(&mut self, sources: &[(Arc<str>, Arc<Starts>)]) {
        let changes = "source_changes_total";
        self.head(
            changes,
            "counter",
            "How often a source of tools came into a state.",
        );
        for (source, one) in sources {
            for (state, count) in one.changes() {
                self.line(changes, &[("source", source), ("state", state)], count as f64);
            }
        }
        let name = "source_start_seconds";
        let help = "How long starts of a source of tools took, those that failed included.";
        self.head(name, "histogram", help);
        for (source, one) in sources {
            if let Some(shown) = one.seconds.shown(&SECONDS) {
                self.parts(name, ("source", source), &shown);
            }
        }
    }

    /// The calls that found nothing to call.
    pub(crate) fn unresolved(&mut self, kinds: impl Iterator<Item = (&'static str, u64)>) {
        self.head(
            "unresolved_calls_total",
            "counter",
            "Calls of what is not there, by why.",
        );
        for (kind, count) in kinds {
            self.line("unresolved_calls_total", &[("kind", kind)], count as f64);
        }
    }

    /// How often operators were told of something.
    pub(crate) fn alerts(&mut self, counts: &[[AtomicU64; AlertPhase::ALL.len()]; AlertKind::ALL.len()]) {
        let name = "alerts_total";
        let help = "Alerts, by what they are about and whether they begin or are over.";
        self.head(name, "counter", help);
        for (kind, counts) in AlertKind::ALL.iter().zip(counts) {
            for (phase, count) in AlertPhase::ALL.iter().zip(counts) {
                let count = count.load(Ordering::Relaxed);
                if count > 0 {
                    let labels = [("kind", kind.as_str()), ("phase", phase.as_str())];
                    self.line(name, &labels, count as f64);
                }
            }
        }
    }

    /// Of what alerts fire, by the label that says what it is.
    pub(crate) fn firing(&mut self, subjects: &[(&str, Subjects)]) {
        let name = "alert_firing";
        let help = "Whether an alert fires that ends by itself; absent if it never did.";
        self.head(name, "gauge", help);
        for (label, subjects) in subjects {
            for (subject, one) in subjects {
                for (kind, count) in one.shown() {
                    self.line(name, &[("kind", kind), (label, subject)], count as f64);
                }
            }
        }
    }

    /// A figure that somebody else knows.
    pub(crate) fn gauge(&mut self, gauge: &Gauge) {
        let name = gauge.name.strip_prefix(PREFIX).unwrap_or(gauge.name);
        let is_counter = name.ends_with("_total");
        self.head(name, if is_counter { "counter" } else { "gauge" }, gauge.help);
        for (value, figure) in (gauge.read)() {
            match gauge.label {
                Some(label) => self.line(name, &[(label, &value)], figure),
                None => self.line(name, &[], figure),
            }
        }
    }

    pub(crate) fn text(self) -> String {
        self.text
    }

    fn breakers(&mut self, prefix: &str, label: &str, whose: &str, breakers: &[(&Arc<str>, &Breaker)]) {
        let moved = || {
            breakers
                .iter()
                .filter_map(|(name, one)| Some((name, one, one.state()?)))
        };
        let state = format!("{prefix}_state");
        let help = format!(
            "The circuit breaker of {whose}: 0 closed, 1 half open, 2 open; absent if it never moved, or if there is no such tool or server any more."
        );
        self.head(&state, "gauge", &help);
        for (name, _, number) in moved() {
            self.line(&state, &[(label, name)], number as f64);
        }
        let changes = format!("{prefix}_changes_total");
        self.head(
            &changes,
            "counter",
            &format!("How often the circuit breaker of {whose} went into a state."),
        );
        for (name, one) in breakers.iter().filter(|(_, one)| one.has_moved()) {
            for (word, count) in one.changes() {
                self.line(&changes, &[(label, name), ("state", word)], count as f64);
            }
        }
    }

    fn counter(&mut self, tools: &Tools, name: &str, help: &str, of: impl Fn(&Series) -> &AtomicU64) {
        self.head(name, "counter", help);
        for (tool, one) in tools {
            let count = of(one).load(Ordering::Relaxed);
            if count > 0 {
                self.line(name, &[("tool", tool)], count as f64);
            }
        }
    }

    fn each<'a, I: Iterator<Item = (&'static str, u64)>>(
        &mut self,
        tools: &'a Tools,
        name: &str,
        help: &str,
        label: &str,
        of: impl Fn(&'a Series) -> I,
    ) {
        self.head(name, "counter", help);
        for (tool, one) in tools {
            for (value, count) in of(one) {
                self.line(name, &[("tool", tool), (label, value)], count as f64);
            }
        }
    }

    fn histogram(
        &mut self,
        tools: &Tools,
        name: &str,
        help: &str,
        bounds: &Bounds,
        of: impl Fn(&Series) -> &Histogram,
    ) {
        self.head(name, "histogram", help);
        for (tool, one) in tools {
            if let Some(shown) = of(one).shown(bounds) {
                self.parts(name, ("tool", tool), &shown);
            }
        }
    }

    /// The parts of a histogram.
    fn parts(&mut self, name: &str, of: (&str, &str), shown: &Shown) {
        let bucket = format!("{name}_bucket");
        for (bound, count) in &shown.up_to {
            self.line(&bucket, &[of, ("le", &bound.to_string())], *count as f64);
        }
        self.line(&bucket, &[of, ("le", "+Inf")], shown.count as f64);
        self.line(&format!("{name}_sum"), &[of], shown.sum);
        self.line(&format!("{name}_count"), &[of], shown.count as f64);
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(
            self.text,
            "# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} {kind}"
        );
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let _ = write!(self.text, "{PREFIX}{name}");
        for (index, (label, value)) in labels.iter().enumerate() {
            self.text.push_str(if index == 0 { "{" } else { "," });
            let _ = write!(self.text, "{label}=\"");
            for letter in value.chars() {
                match letter {
                    '\\' | '"' => self.text.extend(['\\', letter]),
                    '\n' => self.text.push_str("\\n"),
                    _ => self.text.push(letter),
                }
            }
            self.text.push('"');
        }
        self.text.push_str(if labels.is_empty() { " " } else { "} " });
        let _ = writeln!(self.text, "{value}");
    }
}

/// What all names begin with.
const PREFIX: &str = "toolplane_";
