//! Scores of candidates.

use std::{fmt::Write as _, time::Duration};

use tool_core::{HealthReport, HealthStatus, Instant, LatencyClass, format_duration};

use crate::{RouteDefinition, candidates::Candidate, figures::Recent};

/// Minimum number of attempts in the window of health for measurements to replace what is declared.
pub(crate) const MIN_MEASURED: u64 = 10;
/// Minimum number of recent calls by routes for their mean latency to count instead of that of the window.
const MIN_RECENT: f64 = 3.0;
/// Minimum number of recent calls by routes for their failures to count.
const MIN_RECENT_FAILURES: f64 = 5.0;
/// Points of every candidate.
const BASE: f64 = 100.0;
/// Share of failed calls of a tool that neither declares nor shows one, in percent.
const UNKNOWN_FAILURES: f64 = 1.0;
/// Latency that a tool is taken to have for the comparison of loads, if it neither declares nor shows one.
const UNKNOWN_LATENCY: Duration = Duration::from_millis(500);

/// Figures of health that scores use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HealthFigures {
    pub(crate) status: HealthStatus,
    n_calls: u64,
    /// Mean latency in the window, if it has enough attempts.
    latency: Option<Duration>,
    /// Share of failed attempts in percent, if the window has enough attempts.
    failures: Option<f64>,
}

/// Reason for which a candidate is out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Out {
    Unhealthy,
    Rests(Duration),
    TooSlow(Option<Duration>),
    TooExpensive(Option<f64>),
    TooUnreliable(Option<f64>),
    /// An agent made it, and no operator accepted what it declares.
    NotAccepted,
}

/// Latency of a candidate, and where it is from.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Latency {
    Measured(Duration),
    Declared(LatencyClass),
    Unknown,
}

impl HealthFigures {
    pub(crate) fn new(report: &HealthReport) -> Self {
        let is_measured = report.n_calls >= MIN_MEASURED;
        let rate = report.success_rate().filter(|_| is_measured);
        let by_rate = rate.map(HealthStatus::from_rate);
        let by_check = report.check.map(|check| check.status());
        let worst = by_rate
            .into_iter()
            .chain(by_check)
            .max_by_key(|status| *status as u8);
        Self {
            status: worst.unwrap_or(HealthStatus::Unknown),
            n_calls: report.n_calls,
            latency: is_measured.then_some(report.mean),
            failures: rate.map(|rate| (1.0 - rate) * 100.0),
        }
    }
}

/// A candidate with its figures at one moment.
pub(crate) struct Scored<'a> {
    pub(crate) candidate: &'a Candidate,
    pub(crate) health: &'a HealthFigures,
    pub(crate) now: Instant,
}

impl Scored<'_> {
    /// Returns the score, or why the candidate is out. `tell` gets each part of the score that is not zero, and its words.
    #[inline]
    pub(crate) fn score(
        &self,
        route: &RouteDefinition,
        mut tell: impl FnMut(f64, &dyn Fn() -> String),
    ) -> Result<f64, Out> {
        let candidate = self.candidate;
        let recent = candidate.figures.recent(self.now);
        if candidate.awaits_acceptance {
            return Err(Out::NotAccepted);
        }
        if let Some(rest) = candidate.figures.rest(self.now) {
            return Err(Out::Rests(rest));
        }
        let status = self.status(recent);
        if status == HealthStatus::Unhealthy {
            return Err(Out::Unhealthy);
        }
        self.check_constraints(route, recent)?;
        let weights = &route.weights;
        let mut score = BASE;
        let mut add = |points: f64, words: &dyn Fn() -> String| {
            if points != 0.0 {
                score += points;
                tell(points, words);
            }
        };
        if status == HealthStatus::Degraded {
            add(-weights.degraded, &|| "degraded".to_owned());
        }
        if route.priority.speed {
            let latency = self.latency(recent);
            let points = match latency {
                Latency::Measured(latency) if latency > weights.slow_above => -weights.slow,
                Latency::Declared(LatencyClass::Slow) => -weights.slow,
                Latency::Measured(latency) if latency < weights.fast_below => weights.fast,
                Latency::Declared(LatencyClass::Fast) => weights.fast,
                _ => 0.0,
            };
            add(points, &|| latency.words());
        }
        if route.priority.cost {
            let cost = candidate.cost.unwrap_or_default();
            add(-cost * weights.cost, &|| format!("costs {cost} US dollars"));
        }
        if route.priority.reliability {
            let failures = self.failures().unwrap_or(UNKNOWN_FAILURES);
            add(-failures * weights.failures, &|| match self.failures() {
                Some(failures) => format!("{failures:.1} % of its calls fail"),
                None => format!("no share of failures is known, so {UNKNOWN_FAILURES} % are assumed"),
            });
        }
        if candidate.n_met > 0 {
            let n_met = f64::from(candidate.n_met);
            add(n_met * weights.requirement, &|| {
                let mut words = format!("meets {n_met} of {}", route.requirements.len());
                // A text takes any text.
                let _ = write!(
                    words,
                    " requirement{}",
                    if route.requirements.len() == 1 { "" } else { "s" }
                );
                words
            });
        }
        Ok(score)
    }

    /// Returns the load: the time that a call may take, for each of the calls on their way and one more.
    pub(crate) fn load(&self) -> f64 {
        let n_calls = self.candidate.figures.n_in_flight() + 1;
        self.usual_latency().as_secs_f64() * f64::from(n_calls)
    }

    /// Returns the latency that loads are compared by.
    pub(crate) fn usual_latency(&self) -> Duration {
        match self.latency(self.candidate.figures.recent(self.now)) {
            Latency::Measured(latency) => latency,
            Latency::Declared(LatencyClass::Fast) => Duration::from_millis(50),
            Latency::Declared(LatencyClass::Slow) => Duration::from_secs(2),
            Latency::Declared(LatencyClass::Medium) | Latency::Unknown => UNKNOWN_LATENCY,
        }
    }

    /// Returns the measured latency, if there is one.
    pub(crate) fn measured_latency(&self) -> Option<Duration> {
        match self.latency(self.candidate.figures.recent(self.now)) {
            Latency::Measured(latency) => Some(latency),
            _ => None,
        }
    }

    /// Returns the status: the worse of health and recent calls by routes.
    fn status(&self, recent: Recent) -> HealthStatus {
        let n_failed = recent.weight * recent.failures;
        let by_recent = match HealthStatus::from_rate(1.0 - recent.failures) {
            // A few failures after few calls may be accidents.
            HealthStatus::Unhealthy if recent.weight >= MIN_RECENT_FAILURES && n_failed >= 2.5 => {
                HealthStatus::Unhealthy
            }
            HealthStatus::Unhealthy | HealthStatus::Degraded if n_failed >= 1.5 => HealthStatus::Degraded,
            _ => HealthStatus::Unknown,
        };
        match (self.health.status as u8).cmp(&(by_recent as u8)) {
            std::cmp::Ordering::Less => by_recent,
            _ => self.health.status,
        }
    }

    fn latency(&self, recent: Recent) -> Latency {
        if recent.weight >= MIN_RECENT {
            return Latency::Measured(recent.latency);
        }
        match (self.health.latency, self.candidate.latency) {
            (Some(latency), _) => Latency::Measured(latency),
            (None, Some(class)) => Latency::Declared(class),
            (None, None) => Latency::Unknown,
        }
    }

    /// Returns the share of failed calls in percent, measured or declared.
    fn failures(&self) -> Option<f64> {
        self.health.failures.or_else(|| Some(100.0 - self.candidate.sla?))
    }

    fn check_constraints(&self, route: &RouteDefinition, recent: Recent) -> Result<(), Out> {
        if let Some(longest) = route.max_latency {
            match self.latency(recent) {
                Latency::Measured(latency) if latency <= longest => {}
                Latency::Declared(LatencyClass::Fast) if longest >= Duration::from_millis(100) => {}
                Latency::Declared(LatencyClass::Medium) if longest >= Duration::from_secs(1) => {}
                Latency::Measured(latency) => return Err(Out::TooSlow(Some(latency))),
                _ => return Err(Out::TooSlow(None)),
            }
        }
        if let Some(most) = route.max_cost {
            match self.candidate.cost {
                Some(cost) if cost <= most => {}
                cost => return Err(Out::TooExpensive(cost)),
            }
        }
        if let Some(least) = route.min_sla {
            // One failure alone breaks no promise: the window must be long enough for the promised number of them.
            let enough = (100.0 / (100.0 - least).max(0.1)).clamp(MIN_MEASURED as f64, 1000.0) as u64;
            let measured = self.health.failures.filter(|_| self.health.n_calls >= enough);
            let sla = measured.map(|failures| 100.0 - failures).or(self.candidate.sla);
            match sla {
                Some(sla) if sla >= least => {}
                sla => return Err(Out::TooUnreliable(sla)),
            }
        }
        Ok(())
    }
}

impl Latency {
    fn words(self) -> String {
        match self {
            Self::Measured(latency) => format!("takes {}", format_duration(latency)),
            Self::Declared(class) => format!("is declared as {}", class.as_str()),
            Self::Unknown => "has no known latency".to_owned(),
        }
    }
}

impl Out {
    /// Returns the reason, as a fragment.
    pub(crate) fn words(self, route: &RouteDefinition) -> String {
        let bound = |duration: Option<Duration>| format_duration(duration.unwrap_or_default());
        match self {
            Self::Unhealthy => "it is unhealthy".to_owned(),
            Self::Rests(rest) => format!(
                "it failed again and again, and is tried again in {}",
                format_duration(rest)
            ),
            Self::TooSlow(Some(latency)) => {
                format!(
                    "it takes {}, and {} are allowed",
                    format_duration(latency),
                    bound(route.max_latency)
                )
            }
            Self::TooSlow(None) => {
                format!("nothing says that it takes at most {}", bound(route.max_latency))
            }
            Self::TooExpensive(Some(cost)) => {
                let most = route.max_cost.unwrap_or_default();
                format!("it costs {cost} US dollars, and {most} are allowed")
            }
            Self::TooExpensive(None) => "its cost is not declared".to_owned(),
            Self::TooUnreliable(Some(sla)) => {
                let least = route.min_sla.unwrap_or_default();
                format!("{sla:.1} % of its calls succeed, and {least} % are required")
            }
            Self::TooUnreliable(None) => {
                "its share of successful calls is neither measured nor declared".to_owned()
            }
            Self::NotAccepted => "an agent made it, and no operator accepted what it declares".to_owned(),
        }
    }

    /// Returns the time after which the candidate may be in again, if it is known.
    pub(crate) fn retry_after(self) -> Option<Duration> {
        match self {
            Self::Rests(rest) => Some(rest),
            _ => None,
        }
    }
}
