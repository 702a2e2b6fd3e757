use raw_json::RawJson;
use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tool_core::PrepareError;
use tool_settings::{keep_readable, program::LimitSettings, suggest};

use super::{BashBody, Body, PythonBody};
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
        keep_readable::<LimitSettings>(limits, "/limits", nearest, &mut problems.0);
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
    keep_readable::<T>(&mut members, "", nearest, &mut problems.0);
    serde_json::from_value(Value::Object(members)).unwrap_or_else(|error| {
        problems.add("", error.to_string(), "");
        T::default()
    })
}

/// Returns the known name that was probably meant.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let meant = match suggest::normal(name).as_str() {
        "source" | "command" | "inline" => "code",
        "requirements" | "dependencies" | "packages" => "requires",
        "environment" | "variables" => "env",
        "main" => "entrypoint",
        _ => name,
    };
    suggest::nearest(meant, known)
}
