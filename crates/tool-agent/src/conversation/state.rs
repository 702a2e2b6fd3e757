use std::collections::BTreeMap;

use raw_json::{JsonKind, RawJson, hex};
use sha2::{Digest, Sha256};

use crate::{CallOutput, ModelCall, ProviderFormat};

/// A conversation of a user, a model and its tools, as data: it can be stored and go on elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    format: ProviderFormat,
    /// Instructions for the model.
    pub(super) system: Option<String>,
    pub(super) messages: Vec<RawJson>,
    pub(super) n_rounds: u32,
    pub(super) n_calls: u32,
    /// Number of equal calls, by their key.
    pub(super) seen: BTreeMap<String, u32>,
    pub(super) pending: Option<PendingCalls>,
}

/// Calls of the last turn, of which some have no result yet.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PendingCalls {
    pub(super) calls: Vec<ModelCall>,
    /// Results, in the order of the calls.
    pub(super) outputs: Vec<Option<CallOutput>>,
    /// `true` if the calls count towards the limits already.
    pub(super) is_counted: bool,
    /// `true` while the calls without a result are made.
    pub(super) is_running: bool,
}

/// Error of a text that is no conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is no stored conversation: {problem}")]
#[non_exhaustive]
pub struct StateError {
    /// Problem: a fragment.
    pub problem: String,
}

/// Version of the stored form.
const VERSION: u64 = 1;

impl PendingCalls {
    pub(super) fn new(calls: Vec<ModelCall>) -> Self {
        Self {
            outputs: vec![None; calls.len()],
            calls,
            is_counted: false,
            is_running: false,
        }
    }
}

/// Returns the key by which equal calls are counted.
pub(super) fn call_key(call: &ModelCall) -> String {
    let arguments = raw_json::digest(&call.arguments);
    let digest = Sha256::new()
        .chain_update(&call.name)
        .chain_update([0])
        .chain_update(arguments)
        .finalize();
    hex(&digest[..16])
}

impl Conversation {
    /// Begins a conversation in the format of a provider.
    #[must_use]
    pub fn new(format: ProviderFormat) -> Self {
        Self {
            format,
            system: None,
            messages: Vec::new(),
            n_rounds: 0,
            n_calls: 0,
            seen: BTreeMap::new(),
            pending: None,
        }
    }

    /// Sets the instructions for the model.
    #[must_use]
    pub fn with_system(mut self, system: impl Into<String>) -> Self {
        self.system = Some(system.into());
        self
    }

    /// Adds a message of the user. The limit of rounds begins anew with it.
    pub fn user(&mut self, said: &str) {
        self.n_rounds = 0;
        self.instruct(said);
    }

    /// Adds a message to the model in the name of the user.
    pub(super) fn instruct(&mut self, said: &str) {
        let text = RawJson::from(said);
        let role = ("role", RawJson::from("user"));
        let message = match self.format {
            ProviderFormat::Gemini => {
                let part = RawJson::from_members(&[("text", text)]);
                RawJson::from_members(&[role, ("parts", RawJson::from_items(&[part]))])
            }
            _ => RawJson::from_members(&[role, ("content", text)]),
        };
        self.messages.push(message);
    }

    /// Returns the format of the messages.
    #[must_use]
    pub fn format(&self) -> ProviderFormat {
        self.format
    }

    /// Returns the history, in the format of the provider.
    #[must_use]
    pub fn messages(&self) -> &[RawJson] {
        &self.messages
    }

    /// Returns the number of turns of the model since the last message of the user.
    #[must_use]
    pub fn n_rounds(&self) -> u32 {
        self.n_rounds
    }

    /// Returns the number of calls so far.
    #[must_use]
    pub fn n_calls(&self) -> u32 {
        self.n_calls
    }

    /// Returns `true` if calls wait for decisions.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.pending.is_some()
    }

    /// Writes the conversation for a store. It contains what was said, and results of tools.
    #[must_use]
    pub fn to_json(&self) -> RawJson {
        let seen: Vec<_> = self
            .seen
            .iter()
            .map(|(key, n)| (key.as_str(), RawJson::from(u64::from(*n))))
            .collect();
        let mut members = vec![
            ("conversation", RawJson::from(VERSION)),
            ("format", RawJson::from(self.format.as_str())),
            ("messages", RawJson::from_items(&self.messages)),
            ("rounds", RawJson::from(u64::from(self.n_rounds))),
            ("calls", RawJson::from(u64::from(self.n_calls))),
            ("seen", RawJson::from_members(&seen)),
        ];
        members.extend(
            self.system
                .as_deref()
                .map(|system| ("system", RawJson::from(system))),
        );
        if let Some(pending) = &self.pending {
            let calls = pending.calls.iter().zip(&pending.outputs).map(|(call, output)| {
                let mut members = vec![("call", call.to_json())];
                members.extend(output.as_ref().map(|output| ("output", output.to_json())));
                RawJson::from_members(&members)
            });
            let calls: Vec<_> = calls.collect();
            let pending = [
                ("calls", RawJson::from_items(&calls)),
                ("counted", RawJson::from(pending.is_counted)),
                ("running", RawJson::from(pending.is_running)),
            ];
            members.push(("pending", RawJson::from_members(&pending)));
        }
        RawJson::from_members(&members)
    }

    /// Reads a stored conversation.
    ///
    /// # Errors
    /// If it is none, or of another version.
    pub fn from_json(stored: &RawJson) -> Result<Self, StateError> {
        let wrong = |problem: &str| StateError {
            problem: problem.to_owned(),
        };
        let number = |value: &RawJson, key: &str| -> Result<u32, StateError> {
            let number = value.get(key).and_then(|number| number.to().ok());
            number.ok_or_else(|| wrong(&format!("`{key}` is missing")))
        };
        if number(stored, "conversation")? != VERSION as u32 {
            return Err(wrong("another version of toolplane wrote it"));
        }
        let format = stored.get("format").and_then(|format| format.string());
        let format = format
            .and_then(|name| ProviderFormat::named(&name))
            .ok_or_else(|| wrong("its format is unknown"))?;
        let list = |value: &RawJson, key: &str| {
            let list = value.get(key).filter(|list| list.kind() == JsonKind::Array);
            list.ok_or_else(|| wrong(&format!("`{key}` is missing")))
        };
        let seen = stored.get("seen").unwrap_or(RawJson::object());
        let pending = match stored.get("pending") {
            None => None,
            Some(pending) => {
                let mut read = PendingCalls::new(Vec::new());
                let is = |key: &str| pending.get(key).is_some_and(|value| value.as_str() == "true");
                (read.is_counted, read.is_running) = (is("counted"), is("running"));
                for entry in list(&pending, "calls")?.items() {
                    let call = entry.get("call").as_ref().and_then(ModelCall::from_json);
                    read.calls
                        .push(call.ok_or_else(|| wrong("a call cannot be read"))?);
                    let output = match entry.get("output") {
                        None => None,
                        Some(output) => {
                            let output = CallOutput::from_json(&output);
                            Some(output.ok_or_else(|| wrong("a result cannot be read"))?)
                        }
                    };
                    read.outputs.push(output);
                }
                Some(read)
            }
        };
        Ok(Self {
            format,
            system: stored.get("system").and_then(|system| system.string()),
            messages: list(stored, "messages")?.items().collect(),
            n_rounds: number(stored, "rounds")?,
            n_calls: number(stored, "calls")?,
            seen: seen
                .members()
                .filter_map(|(key, n)| Some((key.into_owned(), n.to().ok()?)))
                .collect(),
            pending,
        })
    }
}
