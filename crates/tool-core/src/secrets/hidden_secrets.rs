use std::borrow::Cow;

use raw_json::{JsonKind, RawJson};

use super::{
    hidden_fields::{with_each_item, with_each_member},
    sanitize::{holds_named_secret, is_naming, is_secret_name},
};
use crate::{HIDDEN, hide_credentials};

/// Returns a value whose secrets are hidden: [`HIDDEN`] replaces texts and numbers in members whose name denotes a secret, at any depth,
/// and credentials within texts. Everything else keeps its bytes.
///
/// The names are those of [`sanitize_arguments`](crate::sanitize_arguments). A text that is JSON is searched as well. Numbers of tokens
/// stay.
///
/// # Examples
/// ```
/// use raw_json::RawJson;
///
/// let value = RawJson::parse(r#"{"user": "ann", "password": "hunter2", "total_tokens": 7, "key": "a"}"#)?;
/// let hidden = tool_core::hide_secrets(&value);
/// assert_eq!(hidden.as_str(), r#"{"user": "ann", "password": "[redacted]", "total_tokens": 7, "key": "a"}"#);
/// # Ok::<(), raw_json::JsonError>(())
/// ```
#[must_use]
pub fn hide_secrets(value: &RawJson) -> RawJson {
    hide(value, false)
}

/// Hides the secrets in a value, or all texts and numbers of it.
fn hide(value: &RawJson, is_secret: bool) -> RawJson {
    match value.kind() {
        JsonKind::Object => {
            let is_named = holds_named_secret(value);
            with_each_member(value, |key, member| {
                let is_secret_here =
                    is_secret_name(key) && !is_count(key, member) || is_named && !is_naming(key);
                hide(member, is_secret || is_secret_here)
            })
        }
        JsonKind::Array => with_each_item(value, |item| hide(item, is_secret)),
        JsonKind::String | JsonKind::Number if is_secret => RawJson::from(HIDDEN),
        JsonKind::String => hide_in_string(value),
        _ => value.clone(),
    }
}

/// Returns `true` for a number of tokens of a model, such as `max_tokens` or `tokenCount`. A number alone may be a one-time token.
fn is_count(key: &str, member: &RawJson) -> bool {
    let name = key.to_ascii_lowercase();
    let is_of_many = name.contains("tokens") || name.contains("token") && name.contains("count");
    member.kind() == JsonKind::Number && is_of_many
}

fn hide_in_string(value: &RawJson) -> RawJson {
    let Some(text) = value.string() else {
        return value.clone();
    };
    if text.trim_start().starts_with(['{', '['])
        && let Ok(inside) = RawJson::parse(text.clone())
    {
        let hidden = hide(&inside, false);
        return match hidden == inside {
            true => value.clone(),
            false => RawJson::from(hidden.as_str()),
        };
    }
    match hide_credentials(&text) {
        Cow::Borrowed(_) => value.clone(),
        Cow::Owned(hidden) => RawJson::from(hidden.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use raw_json::RawJson;

    use super::hide_secrets;

    #[test]
    fn secrets_are_hidden_and_everything_else_keeps_its_bytes() {
        for (value, expected) in [
            (
                r#"{"Api-Key": "x",  "n": 1e2}"#,
                r#"{"Api-Key": "[redacted]",  "n": 1e2}"#,
            ),
            (
                r#"{"credentials": {"user": "ann", "list": ["a", 1, true]}}"#,
                r#"{"credentials": {"user": "[redacted]", "list": ["[redacted]","[redacted]",true]}}"#,
            ),
            (
                r#"{"name": "Authorization", "value": "abc"}"#,
                r#"{"name": "Authorization", "value": "[redacted]"}"#,
            ),
            (
                r#"{"t": "{\"pin\": 1234, \"n\": 1.0}"}"#,
                r#"{"t": "{\"pin\": \"[redacted]\", \"n\": 1.0}"}"#,
            ),
            (
                r#"{"u": "https://ada:pw@host/x"}"#,
                r#"{"u": "https://[redacted]@host/x"}"#,
            ),
            (
                r#"{"key": "user:1", "max_tokens": 12345678901234567890}"#,
                r#"{"key": "user:1", "max_tokens": 12345678901234567890}"#,
            ),
            (
                r#"{"tokenCount": 7, "token": 123456, "otp_token": 1}"#,
                r#"{"tokenCount": 7, "token": "[redacted]", "otp_token": "[redacted]"}"#,
            ),
            (r#"[ "a b",  "{ \"a\": 1 }" ]"#, r#"[ "a b",  "{ \"a\": 1 }" ]"#),
        ] {
            let hidden = hide_secrets(&RawJson::parse(value).unwrap());
            assert_eq!(hidden.as_str(), expected);
            assert_eq!(hide_secrets(&hidden), hidden);
        }
    }
}
