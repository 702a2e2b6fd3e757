//! Keys that some readers take for others are refused.

use mcp_wire::{Message, ParseErrorKind};
use proptest::prelude::*;

/// Reads a request with this key in its parameters, before or behind real ones.
fn read(place: &str, key: &str, is_first: bool) -> Result<Message, ParseErrorKind> {
    let key = serde_json_text(key);
    let pair = format!("{key}:{{}}");
    let params = match (place, is_first) {
        ("params", true) => format!(r#"{{{pair},"x":1}}"#),
        ("params", false) => format!(r#"{{"x":1,{pair}}}"#),
        (_, true) => format!(r#"{{"_meta":{{{pair},"x":1}}}}"#),
        (_, false) => format!(r#"{{"_meta":{{"x":1,{pair}}}}}"#),
    };
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"any/method","params":{params}}}"#);
    Message::from_client(text).map_err(|error| error.kind().clone())
}

/// A JSON string with every character beyond letters escaped.
fn serde_json_text(text: &str) -> String {
    let mut json = String::from("\"");
    for unit in text.encode_utf16() {
        match char::from_u32(u32::from(unit)).filter(char::is_ascii_alphanumeric) {
            Some(letter) => json.push(letter),
            None => json.push_str(&format!("\\u{unit:04x}")),
        }
    }
    json + "\""
}

const PARAMS: [&str; 9] = [
    "name",
    "arguments",
    "uri",
    "ref",
    "argument",
    "_meta",
    "cursor",
    "requestState",
    "protocolVersion",
];
const META: [&str; 4] = [
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "traceparent",
    "tracestate",
];

#[test]
fn look_alikes_are_refused_and_others_pass() {
    for key in [
        "Name",
        "Arguments",
        "_Meta",
        "argument\u{17f}",
        "name\0",
        "NAME",
        " name",
        "na\u{200b}me",
        "\u{ff4e}ame",
        "n\u{430}me",
        "N\u{391}ME",
        "\u{251}rguments",
    ] {
        let refused = Err(ParseErrorKind::LookAlikeKey(key.to_owned()));
        assert_eq!(read("params", key, true), refused, "{key:?}");
        assert_eq!(read("params", key, false), refused, "{key:?}");
    }
    for key in [
        "TraceParent",
        "progresstoken",
        "tracestate\u{7f}",
        "IO.modelcontextprotocol/logLevel",
    ] {
        assert!(read("meta", key, true).is_err(), "{key:?}");
    }
    for key in ["names", "vendor/Name", "x-name", "nom\u{e9}", "\u{43d}ame"] {
        assert!(read("params", key, true).is_ok(), "{key:?}");
        assert!(read("meta", key, true).is_ok(), "{key:?}");
    }
    for key in PARAMS {
        assert!(read("params", key, true).is_ok(), "{key:?}");
    }
}

/// The Cyrillic letter that looks the same.
fn cyrillic(letter: char) -> char {
    let alike = [('a', 'а'), ('c', 'с'), ('e', 'е'), ('o', 'о'), ('p', 'р')];
    let found = alike.iter().find(|(latin, _)| *latin == letter);
    found.map_or(letter, |(_, cyrillic)| *cyrillic)
}

/// Spells a key in another way that some readers fold, as these bytes choose.
fn spelled(key: &str, choices: &[u8]) -> String {
    let mut spelled = String::new();
    for (index, letter) in key.chars().enumerate() {
        let wide = u32::from(letter).checked_add(0xfee0).and_then(char::from_u32);
        match choices.get(index).map_or(0, |choice| choice % 10) {
            1 => spelled.extend(letter.to_uppercase()),
            2 => spelled.push(wide.unwrap_or(letter)),
            3 if letter == 's' => spelled.push('\u{17f}'),
            4 if letter == 'k' => spelled.push('\u{212a}'),
            5 => spelled.extend([letter, '\u{200d}']),
            6 => spelled.extend([letter, '\u{1}']),
            7 => spelled.extend(['\u{e0041}', letter]),
            8 => spelled.extend(letter.to_lowercase()),
            9 => spelled.push(cyrillic(letter)),
            _ => spelled.push(letter),
        }
    }
    spelled
}

proptest! {
    #[test]
    fn every_other_spelling_of_a_key_is_refused(
        choices in prop::collection::vec(any::<u8>(), 45),
        index in 0..PARAMS.len() + META.len(),
        is_first in any::<bool>(),
    ) {
        let (place, key) = match PARAMS.get(index) {
            Some(key) => ("params", *key),
            None => ("meta", META[index - PARAMS.len()]),
        };
        let spelled = spelled(key, &choices);
        if spelled == key {
            prop_assert!(read(place, &spelled, is_first).is_ok());
        } else {
            prop_assert_eq!(read(place, &spelled, is_first), Err(ParseErrorKind::LookAlikeKey(spelled)));
        }
    }
}
