use raw_json::RawJson;
use schemars::schema_for;
use serde_json::{Map, Value};
use tool_core::PrepareError;
use tool_settings::{NearestName, keep_readable, pointer};

use super::settings::{KeySettings, RequestMapping, ResponseMapping, Settings};
use crate::operation::OperationSettings;

/// Problems in one tool's settings, collected so that an operator sees all of them at once.
#[derive(Debug, Default)]
pub(crate) struct Problems(pub Vec<PrepareError>);

impl Problems {
    pub(crate) fn add(&mut self, pointer: impl Into<String>, message: impl Into<String>) {
        self.0.push(PrepareError::at(pointer, message));
    }

    pub(crate) fn hint(
        &mut self,
        pointer: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.0.push(PrepareError::at(pointer, message).with_hint(hint));
    }

    /// Returns the value, or records the problem under this JSON Pointer.
    pub(crate) fn keep<T>(&mut self, pointer: &str, result: Result<T, String>) -> Option<T> {
        result.map_err(|message| self.add(pointer, message)).ok()
    }
}

/// Returns the JSON Pointer of the first text that matches, or of the settings' root if none does.
pub(crate) fn pointer_of(config: &Value, is_it: &dyn Fn(&str) -> bool) -> String {
    fn find(value: &Value, place: &str, is_it: &dyn Fn(&str) -> bool) -> Option<String> {
        match value {
            Value::String(text) => is_it(text).then(|| place.to_owned()),
            Value::Array(list) => {
                let mut places = list.iter().enumerate();
                places.find_map(|(index, item)| find(item, &format!("{place}/{index}"), is_it))
            }
            Value::Object(members) => {
                let mut places = members.iter();
                places.find_map(|(key, item)| find(item, &pointer(place, key), is_it))
            }
            _ => None,
        }
    }
    find(config, "", is_it).unwrap_or_default()
}

/// Reads the settings. Keys that cannot be read are reported and keep their defaults.
pub(crate) fn read_settings(config: &Value, problems: &mut Problems) -> Settings {
    let Value::Object(members) = config else {
        problems.add("", "the settings of an `http` tool must be an object");
        return Settings::default();
    };
    let mut members = members.clone();
    for (key, nested) in [
        ("request", keep_readable::<RequestMapping> as Check),
        ("response", keep_readable::<ResponseMapping> as Check),
        ("idempotency", keep_readable::<KeySettings> as Check),
        ("async", keep_readable::<OperationSettings> as Check),
    ] {
        if let Some(Value::Object(inner)) = members.get_mut(key) {
            nested(inner, &format!("/{key}"), nearest, &mut problems.0);
        }
    }
    keep_readable::<Settings>(&mut members, "", nearest, &mut problems.0);
    serde_json::from_value(Value::Object(members)).unwrap_or_else(|error| {
        problems.add("", error.to_string());
        Settings::default()
    })
}

/// Returns the JSON Schema of the settings.
pub(crate) fn settings_schema() -> RawJson {
    RawJson::from(schema_for!(Settings).to_value())
}

type Check = fn(&mut Map<String, Value>, &str, NearestName, &mut Vec<PrepareError>);

/// Returns the known name that was probably meant, by Damerau-Levenshtein distance.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |name: &str| -> String {
        let letters = name.chars().filter(|letter| !matches!(letter, '_' | '-'));
        letters.flat_map(char::to_lowercase).collect()
    };
    let name = plain(name);
    let name = match name.as_str() {
        "uri" | "endpoint" => "url",
        "verb" | "httpmethod" => "method",
        other => other,
    };
    known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, &plain(candidate)), *candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min()
        .map(|(_, candidate)| candidate)
}
