//! Report of a choice.

use std::{fmt, time::Duration};

use raw_json::RawJson;
use serde::Serialize;
use tool_core::{FailedStep, Tool, format_duration};

use crate::{Obstacle, choice::Ranking, score::Out};

/// Maximum number of candidates that the `_meta` of a reply tells.
const MAX_TOLD: usize = 10;

/// Candidates of a route at one moment, the best first, and the one that a call goes to.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RouteReport {
    /// Name of the chosen tool; `None` if every candidate is out.
    pub tool: Option<String>,
    /// Candidates: those with a score in its order, then those that are out.
    pub candidates: Vec<CandidateReport>,
}

/// A candidate of a route.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct CandidateReport {
    /// Name of the tool.
    pub tool: String,
    /// Score; `None` if it is out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Measured latency.
    #[serde(
        rename = "latency_ms",
        skip_serializing_if = "Option::is_none",
        serialize_with = "milliseconds"
    )]
    pub latency: Option<Duration>,
    /// Parts of the score, such as `+20 takes 80 ms`. Every score begins with 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<String>,
    /// Reason for which it is out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out: Option<String>,
    /// `true` if the caller may not call it.
    #[serde(skip)]
    pub is_forbidden: bool,
    #[serde(skip)]
    pub(crate) retry_after: Option<Duration>,
}

impl RouteReport {
    /// Makes the report of a ranking. `tool` is the index of the chosen candidate.
    pub(crate) fn whole(
        ranking: &Ranking<'_>,
        tool: Option<usize>,
        obstacle: &dyn Fn(&Tool) -> Option<Obstacle>,
    ) -> Self {
        let order = ranking.order(usize::MAX).into_iter();
        Self::sorted(
            ranking,
            tool,
            order
                .map(|index| CandidateReport::new(ranking, index, obstacle))
                .collect(),
        )
    }

    /// Makes the report for the caller: the first candidates that it may know of.
    pub(crate) fn for_caller(
        ranking: &Ranking<'_>,
        tool: Option<usize>,
        obstacle: &dyn Fn(&Tool) -> Option<Obstacle>,
    ) -> Self {
        let order = ranking.order(MAX_TOLD).into_iter();
        let reports = order.map(|index| CandidateReport::new(ranking, index, obstacle));
        let visible = reports.filter(|report| !report.is_forbidden);
        Self::sorted(ranking, tool, visible.take(MAX_TOLD).collect())
    }

    fn sorted(ranking: &Ranking<'_>, tool: Option<usize>, mut candidates: Vec<CandidateReport>) -> Self {
        // Of equally good ones, the chosen one first, then by name.
        let chosen = tool.map(|index| ranking.candidates().entries[index].tool.name().to_string());
        candidates.sort_by(|one, other| {
            let score = |report: &CandidateReport| report.score.unwrap_or(f64::NEG_INFINITY);
            let is_chosen = |report: &CandidateReport| Some(&report.tool) == chosen.as_ref();
            score(other)
                .total_cmp(&score(one))
                .then_with(|| is_chosen(other).cmp(&is_chosen(one)))
                .then_with(|| one.tool.cmp(&other.tool))
        });
        Self {
            tool: chosen,
            candidates,
        }
    }

    /// Returns the shortest time after which a candidate that is out may be in again.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.candidates
            .iter()
            .filter_map(|candidate| candidate.retry_after)
            .min()
    }

    /// Returns the record for a reply: the chosen tool, the first candidates, and those that failed before.
    pub(crate) fn to_meta(&self, failed: &[FailedStep]) -> RawJson {
        let mut meta = serde_json::json!({"tool": self.tool, "candidates": self.candidates});
        if !failed.is_empty() {
            let failed = failed.iter();
            meta["failed"] = failed
                .map(|step| serde_json::json!({"tool": step.tool.as_deref(), "error": step.kind.as_str()}))
                .collect();
        }
        RawJson::from(meta)
    }
}

impl CandidateReport {
    fn new(ranking: &Ranking<'_>, index: usize, obstacle: &dyn Fn(&Tool) -> Option<Obstacle>) -> Self {
        let mut because = Vec::new();
        let (scored, score) = ranking.judged(index, |points, words| {
            because.push(format!("{points:+} {}", words()));
        });
        let tool = &ranking.candidates().entries[index].tool;
        let found = ranking.obstacle_of(index).cloned().or_else(|| obstacle(tool));
        let mut report = Self {
            tool: tool.name().to_string(),
            score: score.ok().filter(|_| found.is_none()),
            latency: scored.measured_latency(),
            because,
            out: score.err().map(|out| out.words(ranking.route())),
            is_forbidden: found == Some(Obstacle::Forbidden),
            retry_after: score.err().and_then(Out::retry_after),
        };
        match found {
            None => {}
            Some(Obstacle::Forbidden) => report.out = Some("the caller may not call it".to_owned()),
            Some(Obstacle::OutOfService { reason, retry_after }) => {
                report.out.get_or_insert(reason);
                report.retry_after = retry_after.max(report.retry_after);
            }
        }
        report
    }
}

impl fmt::Display for CandidateReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: ", self.tool)?;
        match (&self.out, self.score) {
            (Some(out), _) => write!(f, "out, {out}"),
            (None, score) => {
                write!(f, "{:.1}", score.unwrap_or_default())?;
                if let Some(latency) = self.latency {
                    write!(f, ", {}", format_duration(latency))?;
                }
                match self.because.is_empty() {
                    true => Ok(()),
                    false => write!(f, " ({})", self.because.join(", ")),
                }
            }
        }
    }
}

#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn milliseconds<S: serde::Serializer>(latency: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    let milliseconds = latency.unwrap_or_default().as_secs_f64() * 1e3;
    serializer.serialize_f64((milliseconds * 10.0).round() / 10.0)
}
