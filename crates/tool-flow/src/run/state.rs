//! State of a run that waits: what its calls have returned, so that none of them is made again.

use std::collections::BTreeMap;

use raw_json::{JsonKind, RawJson};
use serde_json::json;
use tool_core::{ErrorKind, InputRequest, PendingCall, Resume, ToolError};

/// Result of a call of a step.
#[derive(Debug, Clone)]
pub(crate) enum Recorded {
    Result(RawJson),
    Failed(ToolError),
}

/// Call that waits.
pub(crate) struct Waiting {
    /// Path of its step.
    pub(crate) step: String,
    pub(crate) what: WaitingFor,
}

pub(crate) enum WaitingFor {
    Input(Box<InputRequest>),
    Decision(Box<PendingCall>),
}

/// State of a workflow between two rounds.
pub(crate) struct FlowState {
    pub(crate) recorded: BTreeMap<String, Recorded>,
    /// Path of the step that waits, and the state that its tool expects back.
    pub(crate) waiting: Option<(String, Option<RawJson>)>,
}

/// Version of the form of states.
const VERSION: u64 = 1;

impl FlowState {
    /// Writes the state of a workflow with this digest.
    pub(crate) fn to_json(&self, digest: &str) -> RawJson {
        let steps: Vec<_> = self
            .recorded
            .iter()
            .map(|(path, recorded)| (path.as_str(), recorded.to_json()))
            .collect();
        let mut members = vec![
            ("workflow", RawJson::from(VERSION)),
            ("digest", RawJson::from(digest)),
            ("steps", RawJson::from_members(&steps)),
        ];
        if let Some((path, inner)) = &self.waiting {
            members.push(("waiting", RawJson::from(path.as_str())));
            members.extend(inner.clone().map(|inner| ("inner", inner)));
        }
        RawJson::from_members(&members)
    }

    /// Reads a state.
    ///
    /// # Errors
    /// If it is none, or that of another definition.
    pub(crate) fn read(state: &RawJson, digest: &str) -> Result<Self, ToolError> {
        let other = || {
            let message = "the state of the call is not that of a workflow; call again without it";
            ToolError::new(ErrorKind::InvalidArguments, message)
        };
        if state.get("workflow").and_then(|version| version.to().ok()) != Some(VERSION) {
            return Err(other());
        }
        if state
            .get("digest")
            .and_then(|written| written.string())
            .as_deref()
            != Some(digest)
        {
            let message = "the workflow has changed since the call began; begin again, after a look at what its steps did";
            return Err(ToolError::new(ErrorKind::ToolChanged, message));
        }
        let steps = state
            .get("steps")
            .filter(|steps| steps.kind() == JsonKind::Object)
            .ok_or_else(other)?;
        let mut recorded = BTreeMap::new();
        for (path, entry) in steps.members() {
            recorded.insert(path.into_owned(), Recorded::read(&entry).ok_or_else(other)?);
        }
        let waiting = state.get("waiting").and_then(|path| path.string());
        let inner = state.get("inner");
        Ok(Self {
            recorded,
            waiting: waiting.map(|path| (path, inner)),
        })
    }

    /// Returns the answers for the step that waits for them.
    pub(crate) fn resume(&mut self, responses: &RawJson) -> Option<(String, Resume)> {
        let (path, inner) = self.waiting.take()?;
        Some((path, Resume::new(responses.clone()).with_state(inner)))
    }
}

impl Recorded {
    fn to_json(&self) -> RawJson {
        match self {
            Self::Result(result) => RawJson::from_members(&[("result", result.clone())]),
            Self::Failed(error) => RawJson::from(json!({
                "error": error.kind().as_str(),
                "message": error.message(),
                "may_have_run": error.may_have_run(),
            })),
        }
    }

    fn read(entry: &RawJson) -> Option<Self> {
        if let Some(result) = entry.get("result") {
            return Some(Self::Result(result));
        }
        let kind = ErrorKind::named(&entry.get("error")?.string()?)?;
        let error = ToolError::new(kind, entry.get("message")?.string()?);
        let may_have_run = entry.get("may_have_run")?.to().ok()?;
        Some(Self::Failed(if may_have_run {
            error.with_may_have_run()
        } else {
            error
        }))
    }
}
