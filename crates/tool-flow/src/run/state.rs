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
    /// The process died while the call ran.
    Running,
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

/// State of a workflow that a caller sends back with its answers.
pub(crate) struct FlowState {
    /// Where the results of its calls are.
    pub(crate) recorded: KeptResults,
    /// Path of the step that waits, and the state that its tool expects back.
    pub(crate) waiting: (String, Option<RawJson>),
}

/// Place of the results of a workflow's calls.
pub(crate) enum KeptResults {
    /// In the state itself.
    Here(BTreeMap<String, Recorded>),
    /// In the storage, under this id.
    Stored(String),
}

/// Version of the form of states.
const VERSION: u64 = 1;

impl FlowState {
    /// Writes the state of a workflow with this digest.
    pub(crate) fn to_json(&self, digest: &str) -> RawJson {
        let (path, inner) = &self.waiting;
        let mut members = vec![
            ("workflow", RawJson::from(VERSION)),
            ("digest", RawJson::from(digest)),
            match &self.recorded {
                KeptResults::Here(recorded) => {
                    let steps = recorded.iter();
                    let steps: Vec<_> = steps
                        .map(|(path, entry)| (path.as_str(), entry.to_json()))
                        .collect();
                    ("steps", RawJson::from_members(&steps))
                }
                KeptResults::Stored(id) => ("run", RawJson::from(id.as_str())),
            },
            ("waiting", RawJson::from(path.as_str())),
        ];
        members.extend(inner.clone().map(|inner| ("inner", inner)));
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
        let recorded = match state.get("run").and_then(|id| id.string()) {
            Some(id) => KeptResults::Stored(id),
            None => {
                let steps = state
                    .get("steps")
                    .filter(|steps| steps.kind() == JsonKind::Object);
                let steps = steps.ok_or_else(other)?;
                let entries = steps.members().map(|(path, entry)| (path.into_owned(), entry));
                KeptResults::Here(recorded(entries).ok_or_else(other)?)
            }
        };
        let waiting = state.get("waiting").and_then(|path| path.string());
        Ok(Self {
            recorded,
            waiting: (waiting.ok_or_else(other)?, state.get("inner")),
        })
    }

    /// Returns the answers for the step that waits for them.
    pub(crate) fn resume(&self, responses: &RawJson) -> (String, Resume) {
        let (path, inner) = &self.waiting;
        let resume = Resume::new(responses.clone()).with_state(inner.clone());
        (path.clone(), resume)
    }
}

/// Reads the entries of steps. Those that wait have no result. Returns `None` if one cannot be read.
pub(crate) fn recorded(
    entries: impl IntoIterator<Item = (String, RawJson)>,
) -> Option<BTreeMap<String, Recorded>> {
    let mut recorded = BTreeMap::new();
    for (path, entry) in entries {
        if entry.get("waiting").is_none() {
            recorded.insert(path, Recorded::read(&entry)?);
        }
    }
    Some(recorded)
}

/// Returns the entry of a step whose call begins.
pub(crate) fn running_entry() -> RawJson {
    RawJson::from(json!({"running": true}))
}

/// Returns the entry of a step whose call waits: it is made again.
pub(crate) fn waiting_entry() -> RawJson {
    RawJson::from(json!({"waiting": true}))
}

impl Recorded {
    /// Returns the entry of the step.
    pub(crate) fn to_json(&self) -> RawJson {
        match self {
            Self::Running => running_entry(),
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
        if entry.get("running").is_some() {
            return Some(Self::Running);
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
