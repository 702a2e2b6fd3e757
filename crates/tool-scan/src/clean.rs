//! Removes hidden text from definitions.

use std::{borrow::Cow, sync::LazyLock};

use raw_json::{JsonKind, RawJson};
use regex::Regex;

use crate::{hidden_chars, markup};

/// A terminal sequence that begins with ESC: it goes as a whole.
static SEQUENCE: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])";
    Regex::new(pattern).expect("the pattern is tested")
});

/// A text without hidden characters, terminal sequences, comments, and markup that hides text or addresses a model.
#[must_use]
pub fn clean_text(text: &str) -> Cow<'_, str> {
    let mut cleaned = Cow::Borrowed(text);
    // What remains can form what was removed.
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
        Cow::Borrowed(text) => markup::without(text),
        Cow::Owned(text) => markup::without(&text).into_owned().into(),
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

/// Members whose text is for readers: nothing goes by it when a tool is called.
const PROSE: [&str; 5] = ["title", "description", "$comment", "instructions", "errorMessage"];
/// Members whose values are data, whatever their own members are called.
const DATA: [&str; 4] = ["default", "const", "enum", "_meta"];

/// A definition with [`clean_text`] in its prose: titles, descriptions, comments and examples. Names, property names,
/// constants, defaults and whatever else calls go by stay as they are. `None` if nothing changes.
#[must_use]
pub fn clean_definition(definition: &RawJson) -> Option<RawJson> {
    cleaned(definition, false)
}

/// `is_prose` holds for each text of the value.
fn cleaned(value: &RawJson, is_prose: bool) -> Option<RawJson> {
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
                    let cleaned = cleaned(&member, is_prose || is_text || is_example)?;
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
                .map(|item| (cleaned(&item, is_prose), item))
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
