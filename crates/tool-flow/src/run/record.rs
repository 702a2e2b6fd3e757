//! Records of the steps of a run.

use std::{fmt, sync::Arc, time::Duration};

use raw_json::RawJson;
use serde_json::{Map, Value, json};
use tool_core::{ErrorKind, format_duration};

/// Maximum number of records of a run. Others are counted.
pub(crate) const MAX_RECORDS: usize = 200;
/// Maximum length of an error message in a record, in characters.
const MAX_MESSAGE: usize = 200;

/// Record of a step.
#[derive(Debug, Clone)]
pub(crate) struct StepRecord {
    /// Path of the step, such as `pages[3].fetch`.
    pub(crate) step: String,
    /// The tool that was called; `None` for a step of other steps.
    pub(crate) tool: Option<Arc<str>>,
    pub(crate) status: StepStatus,
    pub(crate) attempts: u32,
    pub(crate) duration: Duration,
    pub(crate) error: Option<(ErrorKind, String)>,
}

/// End of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepStatus {
    Succeeded,
    /// Its fallback answered.
    FellBack,
    Failed,
    /// It did not run: its branch was not taken.
    Skipped,
    /// It ended in an earlier round.
    Earlier,
    /// It waits for input, or for a decision.
    Waiting,
}

impl StepStatus {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "success",
            Self::FellBack => "fallback",
            Self::Failed => "error",
            Self::Skipped => "skipped",
            Self::Earlier => "resumed",
            Self::Waiting => "waiting",
        }
    }
}

impl StepRecord {
    fn to_json(&self) -> Value {
        let mut record = Map::new();
        record.insert("step".to_owned(), json!(self.step));
        if let Some(tool) = &self.tool {
            record.insert("tool".to_owned(), json!(**tool));
        }
        record.insert("status".to_owned(), json!(self.status.as_str()));
        if self.attempts > 0 {
            record.insert("attempts".to_owned(), json!(self.attempts));
        }
        let milliseconds = (self.duration.as_secs_f64() * 1e6).round() / 1e3;
        record.insert("duration_ms".to_owned(), json!(milliseconds));
        if let Some((kind, message)) = &self.error {
            record.insert(
                "error".to_owned(),
                json!({"kind": kind.as_str(), "message": shortened(message)}),
            );
        }
        Value::Object(record)
    }

    /// Returns the progress report of the step. `n_ended` steps have ended.
    pub(crate) fn progress(&self, n_ended: usize) -> RawJson {
        RawJson::from(
            json!({"progress": n_ended, "message": format!("{}: {}", self.step, self.status.as_str())}),
        )
    }
}

impl fmt::Display for StepRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step `{}`", self.step)?;
        if let Some(tool) = &self.tool {
            write!(f, " (`{tool}`)")?;
        }
        write!(f, ": {}", self.status.as_str())?;
        if self.attempts > 1 {
            write!(f, " after {} attempts", self.attempts)?;
        }
        write!(f, ", {}", format_duration(self.duration))?;
        if let Some((kind, message)) = &self.error {
            write!(f, ", {kind}: {}", shortened(message))?;
        }
        Ok(())
    }
}

fn shortened(message: &str) -> String {
    let mut short: String = message.chars().take(MAX_MESSAGE).collect();
    if short.len() < message.len() {
        short.push('…');
    }
    short
}

/// Summary of a run, in the `_meta` of its result or the details of its error.
pub(crate) struct Summary;

impl Summary {
    pub(crate) fn completed(records: &[StepRecord], n_omitted: usize, is_partial: bool) -> RawJson {
        let status = if is_partial { "partial" } else { "completed" };
        RawJson::from(Value::Object(summary(records, n_omitted, status)))
    }

    /// Summarizes a run that a step ended. `detail` is what its tool reported.
    pub(crate) fn failed(
        records: &[StepRecord],
        n_omitted: usize,
        failed_at: &str,
        detail: Option<&RawJson>,
    ) -> RawJson {
        let mut summary = summary(records, n_omitted, "failed");
        summary.insert("failed_at".to_owned(), json!(failed_at));
        let summary = RawJson::from(Value::Object(summary));
        let mut members = vec![("workflow", summary)];
        members.extend(detail.map(|detail| ("detail", detail.clone())));
        RawJson::from_members(&members)
    }
}

fn summary(records: &[StepRecord], n_omitted: usize, status: &str) -> Map<String, Value> {
    let mut summary = Map::new();
    summary.insert("status".to_owned(), json!(status));
    summary.insert(
        "steps".to_owned(),
        records.iter().map(StepRecord::to_json).collect(),
    );
    if n_omitted > 0 {
        summary.insert("omitted".to_owned(), json!(n_omitted));
    }
    summary
}
