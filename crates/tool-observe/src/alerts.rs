use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tool_core::{
    Alert, AlertKind, AlertPhase, AlertSubject, CheckReport, HealthReport, Instant, format_duration,
};

use crate::HealthTracker;

/// When an operator is told that something is not well.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct AlertSettings {
    /// The share of attempts below which an alert fires, from 0 to 1: 0.90.
    pub success_rate: f64,
    /// The mean time of attempts above which one fires: 5 s.
    pub mean_latency: Duration,
    /// How many attempts there must be for either: 10.
    pub min_calls: u64,
    /// How long after its end the same alert does not fire again: 5 minutes.
    pub cooldown: Duration,
}

impl Default for AlertSettings {
    fn default() -> Self {
        Self {
            success_rate: 0.90,
            mean_latency: Duration::from_secs(5),
            min_calls: 10,
            cooldown: Duration::from_secs(300),
        }
    }
}

/// Decides when alerts fire and when they are over, by the figures of a [`HealthTracker`].
///
/// # Hysteresis
/// An alert fires once, when its threshold is passed, and is over once, when the figures are well on the other side: the
/// share of failures half of what it may be, the mean time a fifth below its limit, a check that succeeds. It is over
/// as well when nothing is called or checked any more, or the tool is gone. After that it stays quiet for the cooldown.
///
/// # Order
/// While the success rate or the checks of an upstream raise an alert, its tools raise none for their success rate: it
/// would be the same news once for each tool.
#[derive(Debug, Default)]
pub struct AlertMonitor {
    settings: Mutex<AlertSettings>,
    states: Mutex<HashMap<(AlertSubject, AlertKind), State>>,
}

/// Where an alert stands. It fires and ends by [`State::next`] alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Firing,
    Over { since: Instant },
}

/// What figures say of an alert.
enum Finding {
    /// It should fire, with these words.
    Bad(String),
    /// It should be over, with these.
    Good(String),
    /// Neither: it stays as it is.
    Between,
}

/// The kinds of alerts that a monitor raises, each of which it also ends.
pub(crate) const KINDS: [AlertKind; 3] = [AlertKind::SuccessRate, AlertKind::Latency, AlertKind::HealthCheck];

impl State {
    /// What comes after this state, and the phase that an operator is to be told of.
    fn next(
        before: Option<Self>,
        finding: &Finding,
        now: Instant,
        cooldown: Duration,
    ) -> Option<(Self, AlertPhase)> {
        match (before, finding) {
            (None, Finding::Bad(_)) => Some((Self::Firing, AlertPhase::Firing)),
            (Some(Self::Over { since }), Finding::Bad(_)) if now.since(since) >= cooldown => {
                Some((Self::Firing, AlertPhase::Firing))
            }
            (Some(Self::Firing), Finding::Good(_)) => Some((Self::Over { since: now }, AlertPhase::Resolved)),
            _ => None,
        }
    }
}

impl AlertMonitor {
    /// One with these thresholds.
    #[must_use]
    pub fn new(settings: AlertSettings) -> Self {
        Self {
            settings: Mutex::new(settings),
            states: Mutex::default(),
        }
    }

    /// Goes by these thresholds from the next look on. What fires goes on until the figures are well by the new ones, and
    /// what is quiet stays so for the new cooldown.
    pub fn reconfigure(&self, settings: AlertSettings) {
        *self.settings.lock() = settings;
    }

    /// Looks at everything that the book knows of, and returns what an operator is to be told now. To be called every
    /// few seconds.
    pub fn check(&self, book: &HealthTracker) -> Vec<Alert> {
        let now = book.clock().now();
        let settings = *self.settings.lock();
        let reports = book.reports();
        let mut states = self.states.lock();
        let mut alerts = resolve_what_is_gone(&mut states, &reports, book);
        // Upstreams first: what they raise quietens their tools.
        let (upstreams, tools): (Vec<_>, Vec<_>) = reports
            .iter()
            .partition(|(subject, ..)| matches!(subject, AlertSubject::Upstream(_)));
        for (subject, upstream, report) in upstreams.into_iter().chain(tools) {
            for kind in KINDS {
                let key = (subject.clone(), kind);
                let before = states.get(&key).copied();
                let finding = settings.finding(kind, report, book.window());
                let Some((after, phase)) = State::next(before, &finding, now, settings.cooldown) else {
                    continue;
                };
                if phase == AlertPhase::Firing
                    && kind == AlertKind::SuccessRate
                    && is_known(&states, upstream.as_ref())
                {
                    continue;
                }
                states.insert(key, after);
                let (Finding::Bad(message) | Finding::Good(message)) = finding else {
                    continue;
                };
                let alert = Alert::new(kind, phase, subject.clone(), message, book.clock().wall());
                alerts.push(alert.with_health(*report));
            }
        }
        states.retain(|_, state| match state {
            State::Firing => true,
            State::Over { since } => now.since(*since) < settings.cooldown,
        });
        alerts
    }
}

impl AlertSettings {
    fn finding(&self, kind: AlertKind, report: &HealthReport, window: Duration) -> Finding {
        match kind {
            AlertKind::SuccessRate => self.of_successes(report, window),
            AlertKind::Latency => self.of_times(report, window),
            _ => check(report.check),
        }
    }

    fn of_successes(&self, report: &HealthReport, window: Duration) -> Finding {
        let Some(rate) = report.success_rate() else {
            return Finding::Good(not_called(window));
        };
        let window = format_duration(window);
        let message = format!(
            "{} of {} attempts failed in the last {window}: {:.1} % succeeded",
            report.n_failures,
            report.n_calls,
            rate * 100.0
        );
        let good = f64::midpoint(self.success_rate, 1.0);
        if rate < self.success_rate && report.n_calls >= self.min_calls {
            Finding::Bad(message)
        } else if rate >= good {
            Finding::Good(message)
        } else {
            Finding::Between
        }
    }

    fn of_times(&self, report: &HealthReport, window: Duration) -> Finding {
        if report.n_calls == 0 {
            return Finding::Good(not_called(window));
        }
        let window = format_duration(window);
        let message = format!(
            "an attempt took {} on average in the last {window}, and 5 % more than {}",
            format_duration(report.mean),
            format_duration(report.p95)
        );
        let limit = self.mean_latency;
        if report.mean > limit && report.n_calls >= self.min_calls {
            Finding::Bad(message)
        } else if report.mean <= limit - limit / 5 {
            Finding::Good(message)
        } else {
            Finding::Between
        }
    }
}

/// Ends the alerts of what is not there any more.
fn resolve_what_is_gone(
    states: &mut HashMap<(AlertSubject, AlertKind), State>,
    reports: &[(AlertSubject, Option<Arc<str>>, HealthReport)],
    book: &HealthTracker,
) -> Vec<Alert> {
    let is_gone = |subject: &AlertSubject| !reports.iter().any(|(known, ..)| known == subject);
    let mut gone: Vec<_> = states
        .iter()
        .filter(|((subject, _), state)| **state == State::Firing && is_gone(subject))
        .map(|(key, _)| key.clone())
        .collect();
    gone.sort_by(|(one, _), (other, _)| one.cmp(other));
    let since = book.clock().now();
    gone.into_iter()
        .map(|key| {
            let (subject, kind) = key.clone();
            states.insert(key, State::Over { since });
            let at = book.clock().wall();
            Alert::new(
                kind,
                AlertPhase::Resolved,
                subject,
                "it is not there any more",
                at,
            )
        })
        .collect()
}

/// Whether an alert of what runs a tool says already that its calls fail.
fn is_known(states: &HashMap<(AlertSubject, AlertKind), State>, upstream: Option<&Arc<str>>) -> bool {
    upstream.is_some_and(|upstream| {
        [AlertKind::SuccessRate, AlertKind::HealthCheck]
            .into_iter()
            .any(|kind| {
                let key = (AlertSubject::Upstream(upstream.clone()), kind);
                states.get(&key) == Some(&State::Firing)
            })
    })
}

fn check(check: Option<CheckReport>) -> Finding {
    match check {
        Some(CheckReport { n_failures: 0, .. }) => Finding::Good("its check succeeds again".to_owned()),
        Some(CheckReport { n_failures, .. }) if n_failures >= CheckReport::UNHEALTHY => {
            Finding::Bad(format!("its check failed {n_failures} times in a row"))
        }
        Some(_) => Finding::Between,
        None => Finding::Good("it is not checked any more".to_owned()),
    }
}

fn not_called(window: Duration) -> String {
    format!("nothing was called in the last {}", format_duration(window))
}
