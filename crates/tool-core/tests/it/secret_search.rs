//! Secrets that come back in any encoding.

use base64::{
    Engine, alphabet,
    engine::{GeneralPurpose, GeneralPurposeConfig},
};
use proptest::{collection::vec, prelude::*, sample::select};
use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::{HIDDEN, SecretSearch};

/// A way to write a text as another, with what it chooses by chance.
#[derive(Debug, Clone)]
enum Encoding {
    /// Escapes of JSON, without the quotes around; for as many strings within each other.
    Json {
        chance: Vec<u8>,
        nested: usize,
    },
    Percent {
        chance: Vec<u8>,
        is_form: bool,
    },
    Html {
        chance: Vec<u8>,
    },
    Hex {
        chance: Vec<u8>,
        separator: &'static str,
    },
    Base64 {
        before: Vec<u8>,
        after: Vec<u8>,
        is_url: bool,
        pads: bool,
        width: usize,
        wrap: &'static str,
    },
}

/// Choices that were made by chance, over and over.
fn chances(chance: &[u8]) -> impl Iterator<Item = u8> {
    let chance = if chance.is_empty() {
        vec![255]
    } else {
        chance.to_vec()
    };
    chance.into_iter().cycle()
}

impl Encoding {
    fn encode(&self, text: &[u8]) -> Vec<u8> {
        match self {
            Self::Json { chance, nested } => {
                let text = String::from_utf8_lossy(text);
                let mut encoded = json_escaped(&text, chance);
                for _ in 0..*nested {
                    let quoted = serde_json::to_string(&encoded).expect("a text is JSON");
                    encoded = quoted[1..quoted.len() - 1].to_owned();
                }
                encoded.into_bytes()
            }
            Self::Percent { chance, is_form } => {
                let mut chance = chances(chance);
                let encode = |&byte: &u8| {
                    let chance = chance.next().expect("it goes on");
                    match byte {
                        b' ' if *is_form && chance.is_multiple_of(2) => "+".to_owned(),
                        b'%' | b'+' => format!("%{byte:02X}"),
                        _ if chance.is_multiple_of(2) => char::from(byte)
                            .to_string()
                            .replace(|c: char| !c.is_ascii(), &format!("%{byte:02x}")),
                        _ if chance % 4 == 1 => format!("%{byte:02x}"),
                        _ => format!("%{byte:02X}"),
                    }
                };
                text.iter().map(encode).collect::<String>().into_bytes()
            }
            Self::Html { chance } => {
                let mut chance = chances(chance);
                let text = String::from_utf8_lossy(text);
                let encode = |letter: char| {
                    let code = u32::from(letter);
                    match (letter, chance.next().expect("it goes on") % 8) {
                        ('&', 0..=4) => "&amp;".to_owned(),
                        ('<', 0..=4) => "&lt;".to_owned(),
                        ('>', 0..=4) => "&gt;".to_owned(),
                        ('"', 0..=4) => "&quot;".to_owned(),
                        ('\'', 0..=4) => "&apos;".to_owned(),
                        (_, 5) => format!("&#x{code:x};"),
                        (_, 6) => format!("&#X{code:05X};"),
                        ('&', _) | (_, 7) => format!("&#{code};"),
                        _ => letter.to_string(),
                    }
                };
                text.chars().map(encode).collect::<String>().into_bytes()
            }
            Self::Hex { chance, separator } => {
                let mut chance = chances(chance);
                let bytes = text
                    .iter()
                    .map(|byte| match chance.next().expect("it goes on") % 3 {
                        0 => format!("{byte:02x}"),
                        1 => format!("{byte:02X}"),
                        _ => format!("{:x}{:X}", byte >> 4, byte & 15),
                    });
                let prefix = if separator.ends_with('x') {
                    separator.trim_start_matches(", ")
                } else {
                    ""
                };
                let bytes: Vec<_> = bytes.collect();
                format!("{prefix}{}", bytes.join(separator)).into_bytes()
            }
            Self::Base64 {
                before,
                after,
                is_url,
                pads,
                width,
                wrap,
            } => {
                let alphabet = if *is_url {
                    alphabet::URL_SAFE
                } else {
                    alphabet::STANDARD
                };
                let engine =
                    GeneralPurpose::new(&alphabet, GeneralPurposeConfig::new().with_encode_padding(*pads));
                let encoded = engine.encode([before.as_slice(), text, after].concat());
                let lines: Vec<_> = encoded.as_bytes().chunks(*width).collect();
                lines.join(wrap.as_bytes())
            }
        }
    }

    /// Reads it as a library does; `None` if it is nothing of the kind.
    fn decode(&self, text: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Json { nested, .. } => {
                let mut text = String::from_utf8(text.to_vec()).ok()?;
                for _ in 0..=*nested {
                    text = serde_json::from_str(&format!("\"{text}\"")).ok()?;
                }
                Some(text.into_bytes())
            }
            Self::Percent { .. } => Some(percent_encoding::percent_decode(text).collect()),
            _ => None,
        }
    }
}

/// A text as it stands in a JSON string, with more escapes than it needs.
fn json_escaped(text: &str, chance: &[u8]) -> String {
    let mut chance = chances(chance);
    let escape = |letter: char| {
        let chance = chance.next().expect("it goes on") % 8;
        if chance >= 5 {
            let mut units = [0; 2];
            let units = letter.encode_utf16(&mut units).iter();
            return units
                .map(|unit| {
                    if chance == 5 {
                        format!("\\u{unit:04x}")
                    } else {
                        format!("\\u{unit:04X}")
                    }
                })
                .collect();
        }
        match letter {
            '/' if chance > 2 => "\\/".to_owned(),
            letter => {
                let quoted = serde_json::to_string(&letter).expect("a letter is JSON");
                quoted[1..quoted.len() - 1].to_owned()
            }
        }
    };
    text.chars().map(escape).collect()
}

fn chance() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..12)
}

fn encoding() -> impl Strategy<Value = Encoding> {
    let bytes = || vec(any::<u8>(), 0..6);
    let width = prop_oneof![Just(usize::MAX), 1..80_usize, Just(64), Just(76)];
    prop_oneof![
        (chance(), 0..4_usize).prop_map(|(chance, nested)| Encoding::Json { chance, nested }),
        (chance(), any::<bool>()).prop_map(|(chance, is_form)| Encoding::Percent { chance, is_form }),
        chance().prop_map(|chance| Encoding::Html { chance }),
        (
            chance(),
            select(vec!["", ":", " ", "-", "\\x", ", 0x", "0x", ", ", "\n"])
        )
            .prop_map(|(chance, separator)| Encoding::Hex { chance, separator }),
        (
            bytes(),
            bytes(),
            any::<bool>(),
            any::<bool>(),
            width,
            select(vec!["\n", "\r\n", " ", "\n  "])
        )
            .prop_map(|(before, after, is_url, pads, width, wrap)| Encoding::Base64 {
                before,
                after,
                is_url,
                pads,
                width,
                wrap
            }),
    ]
}

fn secret() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Za-z0-9]{8,40}",
        "[A-Za-z0-9+/=_.~-]{8,40}",
        "[A-Za-z0-9+/=<>&\"\\\\% ]{8,24}",
        "[A-Za-z0-9é密+/\u{1f511}]{8,16}",
    ]
    .prop_map(|secret| secret.trim().to_owned())
    .prop_filter("long enough", |secret| secret.len() >= 8)
}

/// What stands before or after, without what may be read as a part of an encoding.
fn around() -> impl Strategy<Value = String> {
    "[a-z ]{0,12}[.!?(){}é]{0,2}[ \n]?"
}

fn inside(place: usize, text: &str) -> String {
    match place {
        0 => json!(text),
        1 => json!({"a": [1, {"b": text, "c": null}]}),
        2 => json!({ text: 1e2 }),
        3 => json!(json!({ "a": text }).to_string()),
        _ => json!({"content": [{"type": "text", "text": json!([json!({ "x": text }).to_string()]).to_string()}]}),
    }
    .to_string()
}

/// All strings in a value, as a reader has them: also what is JSON within them.
fn strings(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            found.push(text.clone());
            if let Ok(inner) = serde_json::from_str::<Value>(text) {
                strings(&inner, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, found)),
        Value::Object(members) => members.iter().for_each(|(key, value)| {
            found.push(key.clone());
            strings(value, found);
        }),
        _ => {}
    }
}

fn check(
    secret: &str,
    encodings: &[Encoding],
    before: &str,
    after: &str,
    place: usize,
) -> Result<(), TestCaseError> {
    let mut encoded = secret.as_bytes().to_vec();
    for encoding in encodings {
        encoded = encoding.encode(&encoded);
    }
    let encoded = String::from_utf8(encoded).expect("all encodings write text");
    let text = format!("{before}{encoded}{after}");
    let search = SecretSearch::new([secret, "another-secret-that-is-not-there"]);

    let hidden = search.hide_in_text(&text);
    prop_assert!(hidden.contains(HIDDEN), "not found in {:?}", text);
    let is_whole = encodings.iter().all(|encoding| match encoding {
        Encoding::Base64 { before, after, .. } => before.is_empty() && after.is_empty(),
        _ => true,
    });
    if is_whole {
        let rest = hidden
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(after));
        let rest = rest.and_then(|rest| rest.strip_prefix(HIDDEN));
        // What only closes an encoded text tells nothing of it.
        let is_end = |rest: &str| {
            rest.len() <= 48
                && rest
                    .replace(HIDDEN, "")
                    .chars()
                    .all(|c| !c.is_alphanumeric() || "3dD60xu:2cC0a5".contains(c))
        };
        prop_assert!(rest.is_some_and(is_end), "{:?} -> {:?}", text, hidden);
    }
    // Nobody who undoes the last encodings has the secret.
    let mut read = hidden.into_owned().into_bytes();
    for encoding in encodings.iter().rev() {
        let Some(decoded) = encoding.decode(&read) else {
            break;
        };
        read = decoded;
        prop_assert!(!String::from_utf8_lossy(&read).contains(secret));
    }

    let value = RawJson::parse(inside(place, &text)).expect("JSON");
    let hidden = search.hide_in_json(&value);
    prop_assert!(hidden.is_some(), "not found in {}", value);
    let hidden = hidden.expect("it was found");
    let (mut then, mut now) = (Vec::new(), Vec::new());
    strings(&serde_json::from_str(value.as_str()).expect("JSON"), &mut then);
    strings(
        &serde_json::from_str(hidden.as_str()).expect("it stays JSON"),
        &mut now,
    );
    prop_assert!(
        then.contains(&text)
            && now
                .iter()
                .all(|now| !now.contains(&encoded) && !now.contains(secret))
    );
    prop_assert!(
        search.hide_in_json(&hidden).is_none(),
        "something is left in {}",
        hidden
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_secret_is_hidden_in_every_encoding(
        secret in secret(), encoding in encoding(), before in around(), after in around(), place in 0..5_usize,
    ) {
        check(&secret, &[encoding], &before, &after, place)?;
    }

    #[test]
    fn a_secret_is_hidden_in_two_encodings_within_each_other(
        secret in secret(), inner in encoding(), outer in encoding(), before in around(), after in around(), place in 0..5_usize,
    ) {
        check(&secret, &[inner, outer], &before, &after, place)?;
    }

    #[test]
    fn a_text_without_secrets_keeps_its_bytes(text in ".{0,200}|[A-Za-z0-9+/=%&#;\\\\ux \n]{0,300}", place in 0..5_usize) {
        let search = SecretSearch::new(["correct-horse-battery", "Xq7=+/9&<\">é"]);
        prop_assert_eq!(search.hide_in_text(&text), &*text);
        let value = RawJson::parse(inside(place, &text)).expect("JSON");
        prop_assert!(search.hide_in_json(&value).is_none());
    }
}
