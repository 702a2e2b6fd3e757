//! Secrets that come back in any encoding.

use base64::{
    Engine, alphabet,
    engine::{GeneralPurpose, GeneralPurposeConfig},
};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use proptest::{collection::vec, prelude::*, sample::select, test_runner::RngSeed};
use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::{HIDDEN, SecretSearch};

/// Encoding of a text, with its random choices.
#[derive(Debug, Clone)]
enum Encoding {
    /// Escapes of JSON without the surrounding quotes, for this many nested strings.
    Json {
        chance: Vec<u8>,
        nested: usize,
    },
    Percent {
        chance: Vec<u8>,
        is_form: bool,
    },
    /// Percent-encoding by [`percent_encoding`], sometimes in lower case.
    PercentLibrary {
        keeps_letters: bool,
        is_lower: bool,
    },
    /// Form encoding by [`url::form_urlencoded`].
    Form,
    /// Hexadecimal digits by [`hex`].
    HexLibrary {
        is_upper: bool,
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

/// Repeats random choices forever.
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
            Self::PercentLibrary {
                keeps_letters,
                is_lower,
            } => {
                let text: String = match *keeps_letters {
                    true => percent_encode(text, NON_ALPHANUMERIC).collect(),
                    false => text
                        .iter()
                        .map(|byte| format!("%{}", hex::encode_upper([*byte])))
                        .collect(),
                };
                let text = if *is_lower { lower_escapes(&text) } else { text };
                text.into_bytes()
            }
            Self::Form => url::form_urlencoded::byte_serialize(text)
                .collect::<String>()
                .into_bytes(),
            Self::HexLibrary { is_upper: true } => hex::encode_upper(text).into_bytes(),
            Self::HexLibrary { is_upper: false } => hex::encode(text).into_bytes(),
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

    /// Decodes the text with a library; `None` if it is not in this encoding.
    fn decode(&self, text: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Json { nested, .. } => {
                let mut text = String::from_utf8(text.to_vec()).ok()?;
                for _ in 0..=*nested {
                    text = serde_json::from_str(&format!("\"{text}\"")).ok()?;
                }
                Some(text.into_bytes())
            }
            Self::Percent { .. } | Self::PercentLibrary { .. } => {
                Some(percent_encoding::percent_decode(text).collect())
            }
            Self::HexLibrary { .. } => hex::decode(text).ok(),
            _ => None,
        }
    }
}

/// Writes the escapes of percent-encoding in lower case.
fn lower_escapes(text: &str) -> String {
    let mut parts = text.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + "%" + &part[..2].to_ascii_lowercase() + &part[2..]
    })
}

/// Writes a text as the content of a JSON string, with more escapes than necessary.
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
    // A backslash before a text is read together with the text.
    let bytes = || {
        vec(
            any::<u8>().prop_map(|byte| if byte == b'\\' { b'.' } else { byte }),
            0..6,
        )
    };
    let width = prop_oneof![Just(usize::MAX), 1..80_usize, Just(64), Just(76)];
    prop_oneof![
        (chance(), 0..4_usize).prop_map(|(chance, nested)| Encoding::Json { chance, nested }),
        (chance(), any::<bool>()).prop_map(|(chance, is_form)| Encoding::Percent { chance, is_form }),
        any::<(bool, bool)>().prop_map(|(keeps_letters, is_lower)| Encoding::PercentLibrary {
            keeps_letters,
            is_lower
        }),
        Just(Encoding::Form),
        any::<bool>().prop_map(|is_upper| Encoding::HexLibrary { is_upper }),
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
            select(vec!["\n", "\r\n", " ", "\n  ", "\t", "\n\n"])
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

/// Generates texts before or after, without anything that may be read as part of an encoding.
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

/// Collects all strings of a value, also of JSON within them.
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
        // The end of an encoded text says nothing about the secret.
        let is_end = |rest: &str| {
            rest.len() <= 48
                && rest
                    .replace(HIDDEN, "")
                    .chars()
                    .all(|c| !c.is_alphanumeric() || "3dD60xu:2cC0a5".contains(c))
        };
        prop_assert!(rest.is_some_and(is_end), "{:?} -> {:?}", text, hidden);
    }
    // Undoing the last encodings does not reveal the secret.
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

/// Returns the configuration of the property tests: `PROPTEST_CASES` cases, with a fixed seed unless
/// `PROPTEST_RNG_SEED` names another.
fn config() -> ProptestConfig {
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    match config.rng_seed {
        RngSeed::Random => ProptestConfig {
            rng_seed: RngSeed::Fixed(0),
            ..config
        },
        RngSeed::Fixed(_) => config,
    }
}

proptest! {
    #![proptest_config(config())]

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

/// Tests that the work is bounded by the length of the text, and that undecoded parts are hidden.
#[test]
fn what_would_take_too_much_work_is_hidden() {
    let secret = "correct-horse-battery";
    // Base64 within base64 of letters that may all belong to a secret.
    let layer = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let text = layer(&layer(&"correct-horse ".repeat(18_000)));
    let search = SecretSearch::new([secret]);
    assert_eq!(search.hide_in_text(&text), text, "the usual bound is enough");
    let bounded = SecretSearch::new([secret]).with_work(0);
    assert_eq!(bounded.hide_in_text(&text), HIDDEN);
    let value = RawJson::from(json!({"a": 1, "data": text}));
    let hidden = bounded.hide_in_json(&value).expect("it is hidden");
    assert_eq!(hidden.as_str(), r#"{"a":1,"data":"[redacted]"}"#);
    // The free work of every text.
    assert_eq!(bounded.hide_in_text(&layer(&layer(secret))), HIDDEN);
}

/// Tests that runs which end and begin again keep the search linear.
#[test]
fn long_space_between_letters_takes_no_more_work() {
    let search = SecretSearch::new(["correct-horse-battery"]);
    let text = format!("Y2{}29y{}{{", " ".repeat(500_000), "\n".repeat(500_000)).repeat(2);
    assert_eq!(search.hide_in_text(&text), text);
}

#[test]
fn base64_on_lines_that_form_encoding_joined_is_found() {
    let search = SecretSearch::new(["CANARYq8Zt+Lm/4vW=="]);
    for text in [
        // The letters of base64 as they are, and encoded.
        "Q0FOQVJZ+cThadCtM+bS80dlc9+PQ==",
        "Q0FOQVJZ+cThadCtM+bS80dlc9+PQ%3D%3D",
        "Q0FOQVJZ%0D%0AcThadCtM%0D%0AbS80dlc9%0D%0APQ%3D%3D",
    ] {
        // The padding says nothing.
        let hidden = search.hide_in_text(text).replace("%3D", "");
        assert_eq!(hidden, HIDDEN, "{text}");
    }
}
