use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use raw_json::{Kind, RawJson};
use tool_core::{Provider, Reference, Secret};

use crate::encode;

/// What stands in the place of something hidden.
pub(crate) const HIDDEN: &str = "[redacted]";

/// The values that must not be shown in one call, in every form in which an upstream may give them back: as they
/// are, percent-encoded, in base64 and as JSON strings.
#[derive(Default)]
pub(crate) struct Masks {
    /// Forms of every value that was put in: hidden in messages.
    all: Vec<String>,
    /// Forms of the values that are secrets by their name or their use: hidden in results as well. A region or a
    /// base address is none, and hiding it would spoil the result.
    secret: Vec<String>,
}

/// A value shorter than this is hidden nowhere: it would be found by chance.
const MIN_LENGTH: usize = 4;
/// The same for results, where finding one by chance spoils data.
const MIN_LENGTH_IN_RESULTS: usize = 8;

impl Masks {
    pub(crate) fn new(values: &HashMap<Reference, Secret>, secret: &HashSet<Reference>) -> Self {
        let mut masks = Self::default();
        for (reference, value) in values {
            let value = value.expose().trim();
            if value.len() >= MIN_LENGTH {
                masks.all.extend(forms(value));
            }
            if value.len() >= MIN_LENGTH_IN_RESULTS && secret.contains(reference) {
                masks.secret.extend(forms(value));
            }
        }
        // A value that holds another one is hidden as a whole.
        for list in [&mut masks.all, &mut masks.secret] {
            list.sort_by_key(|form| std::cmp::Reverse(form.len()));
            list.dedup();
        }
        masks
    }

    /// A text for a message.
    pub(crate) fn message<'a>(&self, text: &'a str) -> Cow<'a, str> {
        hide(text, &self.all)
    }

    /// A text for a result.
    pub(crate) fn result<'a>(&self, text: &'a str) -> Cow<'a, str> {
        hide(text, &self.secret)
    }
}

fn hide<'a>(text: &'a str, forms: &[String]) -> Cow<'a, str> {
    let mut text = Cow::Borrowed(text);
    for form in forms {
        if text.contains(form.as_str()) {
            text = Cow::Owned(text.replace(form.as_str(), HIDDEN));
        }
    }
    text
}

fn forms(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned()];
    let mut encoded = String::new();
    encode::push_value(&mut encoded, value);
    forms.push(lower_hex(&encoded));
    forms.push(encoded.clone());
    let mut path = String::new();
    encode::push_path(&mut path, value);
    forms.push(path);
    forms.push(encoded.replace("%20", "+"));
    // As a JSON string, and as one within another: upstreams like to say back a body as text.
    let once = json_inside(value);
    forms.push(json_inside(&once));
    forms.push(once.replace('/', "\\/"));
    forms.push(once);
    // In the middle of something encoded, a value begins at one of three offsets within a group of four characters.
    for offset in 0..3 {
        let mut bytes = vec![0; offset];
        bytes.extend_from_slice(value.as_bytes());
        let whole = bytes.len() / 3 * 4;
        let start = [0, 2, 3][offset];
        for text in [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
            if whole > start + MIN_LENGTH {
                forms.push(text[start..whole].to_owned());
            }
        }
    }
    forms.sort();
    forms.dedup();
    forms
}

/// A text as it stands between the quotes of a JSON string.
fn json_inside(text: &str) -> String {
    let json = RawJson::from(text);
    json.as_str()[1..json.len() - 1].to_owned()
}

/// Percent-encoded text with small hexadecimal digits.
fn lower_hex(encoded: &str) -> String {
    let mut left = 0;
    let lowered = encoded.chars().map(|next| {
        let digit = left > 0;
        left = if next == '%' { 2 } else { left.max(1) - 1 };
        if digit { next.to_ascii_lowercase() } else { next }
    });
    lowered.collect()
}

/// Whether a value is a secret: it comes from a secret store or a file, or its name says so.
pub(crate) fn is_secret(reference: &Reference) -> bool {
    reference.provider != Provider::Environment || names_secret(&reference.name)
}

/// Whether a variable's or a header's name says that its value is a secret.
pub(crate) fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "key",
        "token",
        "secret",
        "passw",
        "auth",
        "credential",
        "cookie",
        "webhook",
        "signature",
    ]
    .iter()
    .any(|word| name.contains(word))
}

/// A value with every member of these names hidden, at any depth; all else keeps its own bytes.
pub(crate) fn hide_fields(value: &RawJson, names: &[String]) -> RawJson {
    if names.is_empty() {
        return value.clone();
    }
    match value.kind() {
        Kind::Object => {
            let mut changed: Vec<(String, RawJson)> = Vec::new();
            for (key, member) in value.members() {
                let hidden = if names.iter().any(|name| *name == key) {
                    RawJson::from(HIDDEN)
                } else {
                    hide_fields(&member, names)
                };
                if hidden != member {
                    changed.push((key.into_owned(), hidden));
                }
            }
            let changed: Vec<(&str, RawJson)> = changed
                .iter()
                .map(|(key, member)| (key.as_str(), member.clone()))
                .collect();
            value.with_members(&changed).unwrap_or_else(|_| RawJson::null())
        }
        Kind::Array => {
            let elements: Vec<RawJson> = value.to().unwrap_or_default();
            let hidden: Vec<RawJson> = elements
                .iter()
                .map(|element| hide_fields(element, names))
                .collect();
            if hidden == elements {
                value.clone()
            } else {
                RawJson::from_serialize(&hidden).unwrap_or_else(|_| RawJson::null())
            }
        }
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use base64::{Engine, engine::general_purpose::STANDARD};
    use raw_json::RawJson;
    use tool_core::{Secret, Template};

    use super::{Masks, hide_fields};

    fn masks(value: &str, secret: bool) -> Masks {
        let reference = Template::parse("${NAME}")
            .unwrap()
            .references()
            .next()
            .unwrap()
            .clone();
        let values = HashMap::from([(reference.clone(), Secret::new(value))]);
        let secrets = if secret {
            HashSet::from([reference])
        } else {
            HashSet::new()
        };
        Masks::new(&values, &secrets)
    }

    #[test]
    fn every_form_is_hidden() {
        let value = "s3cr/t \"quoted\"+val=ue?>";
        let masks = masks(value, true);
        let mut texts = vec![
            format!("a {value} b"),
            format!("a {} b", RawJson::from(value)),
            "a s3cr%2Ft%20%22quoted%22%2Bval%3Due%3F%3E b".to_owned(),
            "a s3cr%2ft%20%22quoted%22%2bval%3due%3f%3e b".to_owned(),
            "a s3cr/t%20%22quoted%22%2Bval%3Due%3F%3E b".to_owned(),
        ];
        for before in ["", "u", "us", "use", "user:"] {
            texts.push(STANDARD.encode(format!("{before}{value}")));
            texts.push(STANDARD.encode(format!("{before}{value}and more")));
        }
        for text in texts {
            let shown = masks.message(&text);
            assert!(shown.contains("[redacted]"), "{text} -> {shown}");
            assert!(
                !shown.contains("s3cr") && !shown.contains("quoted"),
                "{text} -> {shown}"
            );
            assert_eq!(shown, masks.result(&text));
        }
    }

    #[test]
    fn what_is_no_secret_stays_in_results() {
        let masks = masks("eu-central-1", false);
        assert_eq!(masks.result("in eu-central-1"), "in eu-central-1");
        assert_eq!(masks.message("in eu-central-1"), "in [redacted]");
        assert_eq!(self::masks("eu", true).message("euphoric"), "euphoric");
    }

    #[test]
    fn fields() {
        let names = ["ssn".to_owned(), "a/b".to_owned()];
        for (value, expected) in [
            (r#"{"ssn": "1", "n": 1e2}"#, r#"{"ssn": "[redacted]", "n": 1e2}"#),
            (
                r#"[ {"x": {"ssn": {"deep": 1}}},2.0 ]"#,
                r#"[{"x": {"ssn": "[redacted]"}},2.0]"#,
            ),
            (r#"{"\u0073sn": 1}"#, r#"{"\u0073sn": "[redacted]"}"#),
            (
                r#"{"a/b": null, "ssnx": 1}"#,
                r#"{"a/b": "[redacted]", "ssnx": 1}"#,
            ),
            (r#"{"list": [ 1.0,  2 ]}"#, r#"{"list": [ 1.0,  2 ]}"#),
            ("30", "30"),
        ] {
            assert_eq!(
                hide_fields(&RawJson::parse(value).unwrap(), &names).as_str(),
                expected
            );
        }
    }
}
