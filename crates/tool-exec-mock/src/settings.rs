use std::path::PathBuf;

use raw_json::RawJson;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tool_core::{ErrorKind, PrepareError};

/// Settings of a mock tool. Exactly one of `result`, `result_file`, `template` and `error` defines its answer.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MockSettings {
    /// Result of every call: any JSON value.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "Value")]
    pub result: Option<Value>,
    /// Path of a file with the result as JSON. The first call reads it, and it is kept until the tool is loaded again.
    pub result_file: Option<PathBuf>,
    /// Template of the result. Placeholders such as `{{ city }}` are replaced by arguments; the output must be JSON.
    pub template: Option<String>,
    /// Duration of each call, in milliseconds.
    #[serde(default)]
    pub latency_ms: u64,
    /// Makes every call fail.
    pub error: Option<MockError>,
}

/// Error of a mock tool.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MockError {
    /// Error kind, such as `rate_limited`.
    pub kind: String,
    /// Message of the error.
    #[serde(default)]
    pub message: Option<String>,
}

impl MockError {
    /// Creates an error of this kind, such as `rate_limited`, without a message.
    #[must_use]
    pub fn new(kind: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            message: None,
        }
    }
}

/// Validated answer of a mock tool.
#[derive(Debug)]
pub(crate) enum Answer {
    Result(RawJson),
    File(PathBuf),
    Template(String),
    Error(ErrorKind, String),
}

const FIELDS: [&str; 5] = ["result", "result_file", "template", "latency_ms", "error"];
const ERROR_FIELDS: [&str; 2] = ["kind", "message"];

/// Deserializes a result, of which `null` is a valid one.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl MockSettings {
    /// Reads settings, or returns every problem in them.
    pub(crate) fn read(config: &Value) -> Result<(Answer, u64), Vec<PrepareError>> {
        let mut problems = Vec::new();
        check_fields(config, "", &FIELDS, &mut problems);
        if !problems.is_empty() && !config.is_object() {
            return Err(problems);
        }
        check_type(
            config,
            "",
            "result_file",
            Value::is_string,
            "a path",
            &mut problems,
        );
        check_type(config, "", "template", Value::is_string, "a text", &mut problems);
        check_type(
            config,
            "",
            "latency_ms",
            Value::is_u64,
            "a whole number of milliseconds",
            &mut problems,
        );
        if let Some(error) = config.get("error") {
            check_error(error, &mut problems);
        }
        check_answer(config, &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        let settings = Self::deserialize(config).map_err(|error| {
            vec![PrepareError::at(
                "",
                format!("the settings are not usable: {error}"),
            )]
        })?;
        settings.into_answer()
    }

    fn into_answer(self) -> Result<(Answer, u64), Vec<PrepareError>> {
        let answer = if let Some(error) = self.error {
            let kind = kind_named(&error.kind).ok_or_else(|| vec![unknown_kind(&error.kind)])?;
            let message = error
                .message
                .unwrap_or_else(|| "the mock fails as configured".to_owned());
            Answer::Error(kind, message)
        } else if let Some(template) = self.template {
            Answer::Template(template)
        } else if let Some(path) = self.result_file {
            Answer::File(path)
        } else {
            Answer::Result(RawJson::from(self.result.unwrap_or_default()))
        };
        Ok((answer, self.latency_ms))
    }
}

fn check_fields(config: &Value, pointer: &str, known: &[&str], problems: &mut Vec<PrepareError>) {
    let Some(members) = config.as_object() else {
        problems.push(PrepareError::at(pointer, "must be a mapping"));
        return;
    };
    for key in members.keys().filter(|key| !known.contains(&key.as_str())) {
        let escaped = key.replace('~', "~0").replace('/', "~1");
        let hint = match meant(key, known) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("known settings: {}", quoted(known)),
        };
        problems.push(
            PrepareError::at(format!("{pointer}/{escaped}"), format!("unknown setting `{key}`"))
                .with_hint(hint),
        );
    }
}

/// Returns the setting that another spelling means, such as `mock_result` of PromptKit and `resultFile`.
fn meant<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |name: &str| -> String {
        let letters = name.chars().filter(|letter| !matches!(letter, '_' | '-'));
        letters.flat_map(char::to_lowercase).collect()
    };
    let written = plain(written);
    let written = written.strip_prefix("mock").unwrap_or(&written);
    let written = match written {
        "response" | "value" | "output" => "result",
        "latency" | "delay" | "delayms" => "latencyms",
        other => other,
    };
    known.iter().find(|name| plain(name) == written).copied()
}

fn check_type(
    config: &Value,
    pointer: &str,
    field: &str,
    fits: impl Fn(&Value) -> bool,
    wanted: &str,
    problems: &mut Vec<PrepareError>,
) {
    if config.get(field).is_some_and(|value| !fits(value)) {
        problems.push(PrepareError::at(
            format!("{pointer}/{field}"),
            format!("must be {wanted}"),
        ));
    }
}

fn check_error(error: &Value, problems: &mut Vec<PrepareError>) {
    check_fields(error, "/error", &ERROR_FIELDS, problems);
    if !error.is_object() {
        return;
    }
    check_type(error, "/error", "message", Value::is_string, "a text", problems);
    match error.get("kind") {
        None => problems.push(PrepareError::at("/error", "`kind` is missing").with_hint(known_kinds())),
        Some(Value::String(kind)) if kind_named(kind).is_some() => {}
        Some(Value::String(kind)) => problems.push(unknown_kind(kind)),
        Some(_) => problems.push(PrepareError::at("/error/kind", "must be a text").with_hint(known_kinds())),
    }
}

fn check_answer(config: &Value, problems: &mut Vec<PrepareError>) {
    let answers = ["result", "result_file", "template", "error"];
    let given: Vec<&str> = answers
        .into_iter()
        .filter(|field| config.get(field).is_some())
        .collect();
    match given.as_slice() {
        [] => problems.push(
            PrepareError::at("", "a mock needs an answer")
                .with_hint("add `result`, `result_file`, `template` or `error`"),
        ),
        [_] => {}
        [first, rest @ ..] => problems.extend(rest.iter().map(|field| {
            PrepareError::at(
                format!("/{field}"),
                format!("`{field}` and `{first}` exclude each other"),
            )
        })),
    }
}

fn kind_named(name: &str) -> Option<ErrorKind> {
    ErrorKind::ALL.iter().copied().find(|kind| kind.as_str() == name)
}

fn unknown_kind(name: &str) -> PrepareError {
    PrepareError::at("/error/kind", format!("unknown kind of error `{name}`")).with_hint(known_kinds())
}

fn known_kinds() -> String {
    let names: Vec<&str> = ErrorKind::ALL.iter().copied().map(ErrorKind::as_str).collect();
    format!("known kinds: {}", quoted(&names))
}

fn quoted(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}
