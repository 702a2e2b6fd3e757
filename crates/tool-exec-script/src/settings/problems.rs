use raw_json::RawJson;
use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tool_core::PrepareError;

use super::{BashBody, Body, Limits, PythonBody};
use crate::ScriptLanguage;

/// Problems in the settings of one tool, collected so that an operator sees all of them at once.
#[derive(Debug, Default)]
pub(crate) struct Problems(pub(crate) Vec<PrepareError>);

impl Problems {
    pub(crate) fn add(
        &mut self,
        pointer: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let hint = hint.into();
        let problem = PrepareError::at(pointer, message);
        self.0.push(match hint.is_empty() {
            true => problem,
            false => problem.with_hint(hint),
        });
    }
}

/// Returns the JSON Pointer (RFC 6901) of a member.
pub(crate) fn pointer(parent: &str, key: &str) -> String {
    format!("{parent}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// Returns the JSON Schema of the settings of a language.
pub(crate) fn schema(language: ScriptLanguage) -> RawJson {
    RawJson::from(match language {
        ScriptLanguage::Bash => schema_for!(BashBody).to_value(),
        ScriptLanguage::Python => schema_for!(PythonBody).to_value(),
    })
}

/// Reads the settings. Keys that cannot be read are reported and keep their defaults.
pub(crate) fn read(language: ScriptLanguage, config: &Value, problems: &mut Problems) -> Body {
    let Value::Object(members) = config else {
        problems.add("", "the settings of a tool with code must be an object", "");
        return Body::default();
    };
    let mut members = members.clone();
    if let Some(Value::Object(limits)) = members.get_mut("limits") {
        checked::<Limits>(limits, "/limits", problems);
    }
    match language {
        ScriptLanguage::Bash => whole::<BashBody>(members, problems).into(),
        ScriptLanguage::Python => whole::<PythonBody>(members, problems).into(),
    }
}

fn whole<T: DeserializeOwned + JsonSchema + Default>(
    mut members: Map<String, Value>,
    problems: &mut Problems,
) -> T {
    checked::<T>(&mut members, "", problems);
    serde_json::from_value(Value::Object(members)).unwrap_or_else(|error| {
        problems.add("", error.to_string(), "");
        T::default()
    })
}

/// Removes from `members` the keys that `T` does not know or cannot read, and reports them. Every field of `T` has a default,
/// so that each field can be tried alone.
fn checked<T: DeserializeOwned + JsonSchema>(
    members: &mut Map<String, Value>,
    parent: &str,
    problems: &mut Problems,
) {
    let schema = schema_for!(T).to_value();
    let known: Vec<&str> = schema["properties"]
        .as_object()
        .map(|properties| properties.keys().map(String::as_str).collect())
        .unwrap_or_default();
    members.retain(|key, value| {
        let place = pointer(parent, key);
        if !known.contains(&key.as_str()) {
            let hint = match nearest(key, &known) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("there are {}", known.join(", ")),
            };
            problems.add(place, format!("unknown setting `{key}`"), hint);
            return false;
        }
        let one = Map::from_iter([(key.clone(), value.clone())]);
        match serde_json::from_value::<T>(Value::Object(one)) {
            Ok(_) => true,
            Err(error) => {
                let text = error.to_string();
                // The second line of a message of `tool-settings` is its hint.
                let (message, hint) = text.split_once('\n').unwrap_or((&text, ""));
                problems.add(place, message, hint);
                false
            }
        }
    });
}

/// Returns the known name that was probably meant, by Damerau-Levenshtein distance.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |name: &str| -> String {
        let letters = name.chars().filter(|letter| !matches!(letter, '_' | '-'));
        letters.flat_map(char::to_lowercase).collect()
    };
    let name = plain(name);
    let name = match name.as_str() {
        "source" | "command" | "inline" => "code",
        "requirements" | "dependencies" | "packages" => "requires",
        "environment" | "variables" => "env",
        "main" => "entrypoint",
        other => other,
    };
    known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, &plain(candidate)), *candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min()
        .map(|(_, candidate)| candidate)
}
