//! Settings of servers without their secrets.

use std::borrow::Cow;

use serde_json::Value;
use toolplane::core::{hide_credentials, names_secret};

/// Text instead of a secret.
const HIDDEN: &str = "[redacted]";

/// Returns settings whose secrets are hidden: values of variables and headers that name one, the value after an option such as
/// `--token`, and credentials in any text.
pub(in crate::verbs) fn settings(settings: &Value) -> Value {
    masked(settings, false)
}

fn masked(value: &Value, is_secret: bool) -> Value {
    match value {
        Value::String(text) => match is_secret && is_literal(text) {
            true => HIDDEN.into(),
            false => without_credentials(text).into(),
        },
        Value::Array(items) => {
            let mut is_value = false;
            let items = items.iter().map(|item| {
                let shown = masked(item, is_secret || is_value);
                is_value = item.as_str().is_some_and(|text| {
                    text.starts_with('-') && !text.contains('=') && names_secret(text.trim_start_matches('-'))
                });
                shown
            });
            items.collect()
        }
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(key, value)| (key.clone(), masked(value, names_secret(key))));
            Value::Object(members.collect())
        }
        other => other.clone(),
    }
}

/// Hides the credentials in a text. References such as `${env:TOKEN}` stay, since they are none; the default of one may be.
fn without_credentials(text: &str) -> String {
    let mut shown = String::new();
    let (mut rest, mut literal) = (text, 0);
    while let Some(dollar) = rest[literal..].find('$').map(|at| at + literal) {
        let after = &rest[dollar + 1..];
        let end = after.find('}').filter(|_| after.starts_with('{'));
        let Some(end) = end.map(|end| dollar + 1 + end) else {
            // `$$` is one dollar sign, and begins no reference.
            literal = dollar + if after.starts_with('$') { 2 } else { 1 };
            continue;
        };
        shown.push_str(&hide_credentials(&rest[..dollar]));
        shown.push_str(&shown_reference(&rest[dollar..=end]));
        (rest, literal) = (&rest[end + 1..], 0);
    }
    shown.push_str(&hide_credentials(rest));
    shown
}

/// Returns a reference without a secret in its default.
fn shown_reference(reference: &str) -> Cow<'_, str> {
    let default = reference
        .split_once(":-")
        .map(|(name, rest)| (name, rest.trim_end_matches('}')));
    match default {
        None | Some((_, "")) => Cow::Borrowed(reference),
        Some((name, _)) if names_secret(name) => Cow::Owned(format!("{name}:-{HIDDEN}}}")),
        Some((name, default)) => Cow::Owned(format!("{name}:-{}}}", hide_credentials(default))),
    }
}

/// Returns the secrets that settings have written out: the section and key of each.
pub(in crate::verbs) fn literal_secrets(settings: &Value) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for section in ["env", "headers"] {
        let members = settings[section].as_object().into_iter().flatten();
        for (key, value) in members {
            let is_written_out = value
                .as_str()
                .is_some_and(|text| !text.is_empty() && is_literal(text));
            if is_written_out && names_secret(key) {
                found.push((section, key.clone()));
            }
        }
    }
    found
}

/// Returns the name of a variable for the value of a key: `X_API_KEY` for `X-Api-Key`.
pub(in crate::verbs) fn variable(key: &str) -> String {
    key.to_ascii_uppercase()
        .replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

/// Returns `true` if a text has no reference to a value elsewhere.
fn is_literal(text: &str) -> bool {
    !text.contains("${")
}

/// Returns the command or URL of a server on one line, without secrets.
pub(in crate::verbs) fn summary(settings: &Value) -> String {
    let settings = self::settings(settings);
    let url = ["url", "serverUrl", "httpUrl"]
        .into_iter()
        .find_map(|key| settings[key].as_str());
    if let Some(url) = url {
        return url.to_owned();
    }
    let command = settings["command"].as_str().unwrap_or_default();
    let args = settings["args"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    [command].into_iter().chain(args).collect::<Vec<_>>().join(" ")
}
