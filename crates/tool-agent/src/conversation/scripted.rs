use std::{collections::VecDeque, fmt, sync::Mutex};

use raw_json::RawJson;
use serde_json::Value;
use tool_core::BoxFuture;

use super::{Model, ModelError, ModelRequest};
use crate::{AssistantTurn, ModelCall, ProviderFormat, StopReason};

/// A model that follows a script: an agent is tested without a provider.
///
/// A script is a list of turns: `{text, calls: [{tool, arguments}], expect: [..]}`. `expect` lists texts that the messages since the
/// turn before must contain, such as a result.
pub struct ScriptedModel {
    format: ProviderFormat,
    turns: Mutex<VecDeque<ScriptedTurn>>,
    /// Number of messages of the history at the end of the last turn.
    n_seen: Mutex<usize>,
}

#[derive(Debug, Default)]
struct ScriptedTurn {
    number: usize,
    text: String,
    calls: Vec<(String, RawJson)>,
    expect: Vec<String>,
}

impl ScriptedModel {
    /// Reads a script. The turns are written in this format.
    ///
    /// # Errors
    /// Says which turn cannot be read, and why.
    pub fn from_json(format: ProviderFormat, script: &Value) -> Result<Self, ModelError> {
        let wrong = |problem: String| ModelError::new(format!("the script cannot be read: {problem}"));
        let turns = script
            .as_array()
            .ok_or_else(|| wrong("it is no list of turns".to_owned()))?;
        let turns = turns.iter().enumerate().map(|(index, turn)| {
            ScriptedTurn::read(index + 1, turn)
                .map_err(|problem| wrong(format!("turn {}: {problem}", index + 1)))
        });
        Ok(Self {
            format,
            turns: Mutex::new(turns.collect::<Result<_, _>>()?),
            n_seen: Mutex::new(0),
        })
    }

    fn next(&self, request: &ModelRequest<'_>) -> Result<AssistantTurn, ModelError> {
        let script = |problem: String| ModelError::new(format!("the script does not fit: {problem}"));
        let next = self.turns.lock().ok().and_then(|mut turns| turns.pop_front());
        let turn = next.ok_or_else(|| script("it has no further turn".to_owned()))?;
        let number = turn.number;
        let n_seen = self.n_seen.lock().map(|n_seen| *n_seen).unwrap_or_default();
        let new = &request.messages[n_seen.min(request.messages.len())..];
        for expected in &turn.expect {
            if !new.iter().any(|message| contains(message, expected)) {
                return Err(script(format!("turn {number} expects `{expected}` before it")));
            }
        }
        let names = request.definitions.names();
        let calls = turn
            .calls
            .into_iter()
            .enumerate()
            .map(|(index, (tool, arguments))| {
                let name = names.of_tool(&tool).map_or(tool.as_str(), |name| &**name);
                ModelCall::new(
                    request.definitions,
                    format!("call-{number}-{index}"),
                    name.to_owned(),
                    arguments,
                )
            });
        let calls: Vec<_> = calls.collect();
        let messages = AssistantTurn::write(request.definitions, &turn.text, &calls);
        if let Ok(mut n_seen) = self.n_seen.lock() {
            *n_seen = request.messages.len() + messages.len();
        }
        (request.on_text)(&turn.text);
        Ok(AssistantTurn {
            stop: match calls.is_empty() {
                true => StopReason::End,
                false => StopReason::ToolCalls,
            },
            text: turn.text,
            calls,
            messages,
            usage: None,
        })
    }
}

impl ScriptedTurn {
    fn read(number: usize, turn: &Value) -> Result<Self, String> {
        let members = turn.as_object().ok_or("it is no map")?;
        let mut read = Self {
            number,
            ..Self::default()
        };
        for (key, value) in members {
            match key.as_str() {
                "text" => read.text = value.as_str().ok_or("`text` is no text")?.to_owned(),
                "expect" => {
                    let texts = match value {
                        Value::Array(texts) => texts.iter().collect(),
                        single => vec![single],
                    };
                    for text in texts {
                        read.expect
                            .push(text.as_str().ok_or("`expect` is no list of texts")?.to_owned());
                    }
                }
                "calls" => {
                    for call in value.as_array().ok_or("`calls` is no list")? {
                        let tool = call["tool"].as_str().ok_or("a call has no `tool`")?.to_owned();
                        let arguments = match call.get("arguments") {
                            Some(arguments) => RawJson::from(arguments),
                            None => RawJson::object(),
                        };
                        read.calls.push((tool, arguments));
                    }
                }
                other => {
                    return Err(format!(
                        "unknown key `{other}`; there are `text`, `calls` and `expect`"
                    ));
                }
            }
        }
        Ok(read)
    }
}

/// Returns `true` if a text is somewhere in a message.
fn contains(message: &RawJson, expected: &str) -> bool {
    fn any(value: &Value, expected: &str) -> bool {
        match value {
            Value::String(text) => text.contains(expected),
            Value::Array(items) => items.iter().any(|item| any(item, expected)),
            Value::Object(members) => members.values().any(|member| any(member, expected)),
            other => other.to_string().contains(expected),
        }
    }
    message.to().is_ok_and(|value: Value| any(&value, expected))
}

impl Model for ScriptedModel {
    fn format(&self) -> ProviderFormat {
        self.format
    }

    fn turn<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<AssistantTurn, ModelError>> {
        Box::pin(async move { self.next(&request) })
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedModel")
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}
