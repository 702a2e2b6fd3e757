//! Removal of hidden text from definitions.

use std::{borrow::Cow, sync::LazyLock};

use raw_json::{JsonKind, RawJson};
use regex::Regex;

use crate::{hidden_chars, markup};

/// Terminal sequence that begins with ESC (ECMA-48). It is removed as a whole.
static SEQUENCE: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])";
    Regex::new(pattern).expect("the pattern is tested")
});

/// Removes hidden characters, terminal sequences, comments, and markup that hides text or addresses a model.
///
/// # Examples
///
/// ```
/// assert_eq!(tool_scan::clean::clean_text("Adds.<!-- hidden -->\u{200b}"), "Adds.");
/// ```
#[must_use]
pub fn clean_text(text: &str) -> Cow<'_, str> {
    let mut cleaned = Cow::Borrowed(text);
    // Repeated, since a removal can join its neighbours to new hidden text.
    loop {
        let once = clean_once(&cleaned);
        if once == cleaned {
            return cleaned;
        }
        cleaned = Cow::Owned(once.into_owned());
    }
}

fn clean_once(text: &str) -> Cow<'_, str> {
    let text = SEQUENCE.replace_all(text, "");
    let has_hidden = hidden_chars(&text).next().is_some();
    let text = if has_hidden {
        Cow::Owned(without_hidden(&text))
    } else {
        text
    };
    match text {
        Cow::Borrowed(text) => markup::remove(text),
        Cow::Owned(text) => markup::remove(&text).into_owned().into(),
    }
}

fn without_hidden(text: &str) -> String {
    let mut hidden = hidden_chars(text).peekable();
    let mut shown = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if hidden.next_if(|hidden| hidden.at == at).is_none() {
            shown.push(c);
        } else if matches!(c, '\u{2028}' | '\u{2029}' | '\u{85}' | '\r') {
            shown.push('\n');
        }
    }
    shown
}

/// Members whose text is for readers. It does not affect calls.
const PROSE: [&str; 5] = ["title", "description", "$comment", "instructions", "errorMessage"];
/// Members whose values are data, even if their own members have names from [`PROSE`].
const DATA: [&str; 4] = ["default", "const", "enum", "_meta"];

/// Applies [`clean_text`] to the prose of a definition: titles, descriptions, comments and examples. Names, property names,
/// constants, defaults and everything else that affects calls stay. Returns `None` if there is no change.
#[must_use]
pub fn clean_definition(definition: &RawJson) -> Option<RawJson> {
    clean_value(definition, false)
}

/// Cleans a value. `is_prose` is `true` if each text of the value is prose.
fn clean_value(value: &RawJson, is_prose: bool) -> Option<RawJson> {
    match value.kind() {
        JsonKind::String if is_prose => {
            let text = value.string()?;
            match clean_text(&text) {
                Cow::Borrowed(_) => None,
                Cow::Owned(text) => Some(RawJson::from(text.as_str())),
            }
        }
        JsonKind::Object => {
            let members: Vec<(String, RawJson)> = value
                .members()
                .filter(|(key, _)| !DATA.contains(&&**key))
                .filter_map(|(key, member)| {
                    let is_text = PROSE.contains(&&*key) && member.kind() == JsonKind::String;
                    let is_example =
                        matches!(&*key, "examples" | "example") && member.kind() != JsonKind::Object;
                    let cleaned = clean_value(&member, is_prose || is_text || is_example)?;
                    Some((key.to_string(), cleaned))
                })
                .collect();
            let members: Vec<_> = members
                .iter()
                .map(|(key, member)| (key.as_str(), member.clone()))
                .collect();
            (!members.is_empty())
                .then(|| value.with_members(&members).ok())
                .flatten()
        }
        JsonKind::Array => {
            let items: Vec<_> = value
                .items()
                .map(|item| (clean_value(&item, is_prose), item))
                .collect();
            if items.iter().all(|(cleaned, _)| cleaned.is_none()) {
                return None;
            }
            let items: Vec<String> = items
                .into_iter()
                .map(|(cleaned, item)| cleaned.unwrap_or(item).to_string())
                .collect();
            RawJson::parse(format!("[{}]", items.join(","))).ok()
        }
        _ => None,
    }
}
