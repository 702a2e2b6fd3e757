use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tool_core::{
    Alert, AlertKind, AlertPhase, AlertSubject, CheckReport, HealthReport, Instant, format_duration,
};

use crate::HealthTracker;

/// Thresholds of alerts.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct AlertSettings {
    /// Success rate of attempts below which an alert fires, from 0 to 1. The default is 0.90.
    pub success_rate: f64,
    /// Mean latency of attempts above which an alert fires. The default is 5 s.
    pub mean_latency: Duration,
    /// Minimum number of attempts for either alert. The default is 10.
    pub min_calls: u64,
    /// Time after the end of an alert during which it does not fire again. The default is 5 minutes.
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

/// Decides when alerts fire and when they are resolved, by the reports of a [`HealthTracker`].
///
/// # Hysteresis
/// An alert fires once, when its threshold is passed, and resolves once, when the numbers are clearly on the other side:
/// the failure rate is half of the allowed one, the mean latency is a fifth below its limit, or a check succeeds. It also
/// resolves when the subject is no longer called or checked, or was removed. It then stays quiet for the cooldown.
///
/// # Order
/// While the success rate or the checks of an upstream raise an alert, its tools raise none for their success rate. They
/// would repeat the same alert for each tool.
///
/// # Examples
///
/// ```
/// use tool_observe::{AlertMonitor, AlertSettings, HealthTracker};
///
/// fn print_alerts(monitor: &AlertMonitor, tracker: &HealthTracker) {
///     for alert in monitor.check(tracker) {
///         println!("{}: {}", alert.subject, alert.message);
///     }
/// }
///
/// let monitor = AlertMonitor::new(AlertSettings::default());
/// # let _ = (monitor, print_alerts);
/// ```
#[derive(Debug, Default)]
pub struct AlertMonitor {
    settings: Mutex<AlertSettings>,
    states: Mutex<HashMap<(AlertSubject, AlertKind), AlertState>>,
}

/// State of one alert. [`AlertState::next`] is the only transition function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AlertState {
    Firing,
    Resolved { since: Instant },
}

/// Result of comparing a report with a threshold.
enum Comparison {
    /// The alert should fire, with this message.
    Bad(String),
    /// The alert should resolve, with this message.
    Good(String),
    /// The alert keeps its state.
    Between,
}

/// Kinds of alerts that a monitor raises and resolves.
pub(crate) const KINDS: [AlertKind; 3] = [AlertKind::SuccessRate, AlertKind::Latency, AlertKind::HealthCheck];

impl AlertState {
    /// Returns the next state and the phase to report, or `None` if the state stays.
    fn next(
        before: Option<Self>,
        comparison: &Comparison,
        now: Instant,
        cooldown: Duration,
    ) -> Option<(Self, AlertPhase)> {
        match (before, comparison) {
            (None, Comparison::Bad(_)) => Some((Self::Firing, AlertPhase::Firing)),
            (Some(Self::Resolved { since }), Comparison::Bad(_)) if now.since(since) >= cooldown => {
                Some((Self::Firing, AlertPhase::Firing))
            }
            (Some(Self::Firing), Comparison::Good(_)) => {
                Some((Self::Resolved { since: now }, AlertPhase::Resolved))
            }
            _ => None,
        }
    }
}

impl AlertMonitor {
    /// Creates a monitor with these thresholds.
    #[must_use]
    pub fn new(settings: AlertSettings) -> Self {
        Self {
            settings: Mutex::new(settings),
            states: Mutex::default(),
        }
    }

    /// Replaces the thresholds, from the next check on. A firing alert resolves by the new thresholds, and a resolved one
    /// stays quiet for the new cooldown.
    pub fn reconfigure(&self, settings: AlertSettings) {
        *self.settings.lock() = settings;
    }

    /// Compares all reports of the tracker with the thresholds. Returns the alerts that begin to fire or resolve now. To be
    /// called every few seconds.
    pub fn check(&self, tracker: &HealthTracker) -> Vec<Alert> {
        let now = tracker.clock().now();
        let settings = *self.settings.lock();
        let reports = tracker.reports();
        let mut states = self.states.lock();
        let mut alerts = resolve_removed(&mut states, &reports, tracker);
        // Upstreams first, since their alerts suppress those of their tools.
        let (upstreams, tools): (Vec<_>, Vec<_>) = reports
            .iter()
            .partition(|(subject, ..)| matches!(subject, AlertSubject::Upstream(_)));
        for (subject, upstream, report) in upstreams.into_iter().chain(tools) {
            for kind in KINDS {
                let key = (subject.clone(), kind);
                let before = states.get(&key).copied();
                let comparison = settings.compare(kind, report, tracker.window());
                let Some((after, phase)) = AlertState::next(before, &comparison, now, settings.cooldown)
                else {
                    continue;
                };
                if phase == AlertPhase::Firing
                    && kind == AlertKind::SuccessRate
                    && is_firing_for_upstream(&states, upstream.as_ref())
                {
                    continue;
                }
                states.insert(key, after);
                let (Comparison::Bad(message) | Comparison::Good(message)) = comparison else {
                    continue;
                };
                let alert = Alert::new(kind, phase, subject.clone(), message, tracker.clock().wall());
                alerts.push(alert.with_health(*report));
            }
        }
        states.retain(|_, state| match state {
            AlertState::Firing => true,
            AlertState::Resolved { since } => now.since(*since) < settings.cooldown,
        });
        alerts
    }
}

impl AlertSettings {
    /// Sets the success rate below which an alert fires, from 0 to 1.
    #[must_use]
    pub fn with_success_rate(mut self, success_rate: f64) -> Self {
        self.success_rate = success_rate;
        self
    }

    /// Sets the mean latency above which an alert fires.
    #[must_use]
    pub fn with_mean_latency(mut self, mean_latency: Duration) -> Self {
        self.mean_latency = mean_latency;
        self
    }

    /// Sets the minimum number of attempts for either alert.
    #[must_use]
    pub fn with_min_calls(mut self, min_calls: u64) -> Self {
        self.min_calls = min_calls;
        self
    }

    /// Sets the time during which a resolved alert does not fire again.
    #[must_use]
    pub fn with_cooldown(mut self, cooldown: Duration) -> Self {
        self.cooldown = cooldown;
        self
    }

    fn compare(&self, kind: AlertKind, report: &HealthReport, window: Duration) -> Comparison {
        match kind {
            AlertKind::SuccessRate => self.compare_success_rate(report, window),
            AlertKind::Latency => self.compare_latency(report, window),
            _ => compare_check(report.check),
        }
    }

    fn compare_success_rate(&self, report: &HealthReport, window: Duration) -> Comparison {
        let Some(rate) = report.success_rate() else {
            return Comparison::Good(not_called(window));
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
            Comparison::Bad(message)
        } else if rate >= good {
            Comparison::Good(message)
        } else {
            Comparison::Between
        }
    }

    fn compare_latency(&self, report: &HealthReport, window: Duration) -> Comparison {
        if report.n_calls == 0 {
            return Comparison::Good(not_called(window));
        }
        let window = format_duration(window);
        let message = format!(
            "an attempt took {} on average in the last {window}, and 5 % more than {}",
            format_duration(report.mean),
            format_duration(report.p95)
        );
        let limit = self.mean_latency;
        if report.mean > limit && report.n_calls >= self.min_calls {
            Comparison::Bad(message)
        } else if report.mean <= limit - limit / 5 {
            Comparison::Good(message)
        } else {
            Comparison::Between
        }
    }
}

/// Resolves the alerts of subjects that no longer exist.
fn resolve_removed(
    states: &mut HashMap<(AlertSubject, AlertKind), AlertState>,
    reports: &[(AlertSubject, Option<Arc<str>>, HealthReport)],
    tracker: &HealthTracker,
) -> Vec<Alert> {
    let is_removed = |subject: &AlertSubject| !reports.iter().any(|(known, ..)| known == subject);
    let mut removed: Vec<_> = states
        .iter()
        .filter(|((subject, _), state)| **state == AlertState::Firing && is_removed(subject))
        .map(|(key, _)| key.clone())
        .collect();
    removed.sort_by(|(one, _), (other, _)| one.cmp(other));
    let since = tracker.clock().now();
    removed
        .into_iter()
        .map(|key| {
            let (subject, kind) = key.clone();
            states.insert(key, AlertState::Resolved { since });
            let at = tracker.clock().wall();
            Alert::new(kind, AlertPhase::Resolved, subject, "it was removed", at)
        })
        .collect()
}

/// Returns `true` if an alert of the tool's upstream already reports failing calls.
fn is_firing_for_upstream(
    states: &HashMap<(AlertSubject, AlertKind), AlertState>,
    upstream: Option<&Arc<str>>,
) -> bool {
    upstream.is_some_and(|upstream| {
        [AlertKind::SuccessRate, AlertKind::HealthCheck]
            .into_iter()
            .any(|kind| {
                let key = (AlertSubject::Upstream(upstream.clone()), kind);
                states.get(&key) == Some(&AlertState::Firing)
            })
    })
}

fn compare_check(check: Option<CheckReport>) -> Comparison {
    match check {
        Some(CheckReport { n_failures: 0, .. }) => {
            Comparison::Good("its health check succeeds again".to_owned())
        }
        Some(CheckReport { n_failures, .. }) if n_failures >= CheckReport::UNHEALTHY => {
            Comparison::Bad(format!("its health check failed {n_failures} times in a row"))
        }
        Some(_) => Comparison::Between,
        None => Comparison::Good("it is no longer checked".to_owned()),
    }
}

fn not_called(window: Duration) -> String {
    format!("no calls in the last {}", format_duration(window))
}
