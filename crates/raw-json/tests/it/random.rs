//! Random texts, compared with the verdict of serde_json.

use proptest::{collection::vec, prelude::*};
use raw_json::{IndexedJson, JsonLimits, RawJson, canonical, validate};
use serde_json::{Map, Value, value::RawValue};

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            vec((any::<String>(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Almost-JSON: fragments of JSON in random order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(","),
        Just(":"),
        Just("\""),
        Just("\\"),
        Just(" "),
        Just("\n"),
        Just("true"),
        Just("null"),
        Just("0"),
        Just("12"),
        Just("-"),
        Just("."),
        Just("e"),
        Just("+"),
        Just("\"a\""),
        Just("\"b\":"),
        Just("\\u00"),
        Just("41"),
        Just("\u{1}"),
        Just("é"),
        Just("[1]"),
        Just("{\"a\":1}"),
    ];
    vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

proptest! {
    #[test]
    fn what_serde_json_writes_is_accepted_and_kept(value in value(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        prop_assert_eq!(validate(&text, JsonLimits::STRICT), Ok(()));
        let raw = RawJson::parse(text.clone()).unwrap();
        prop_assert_eq!(raw.as_str(), text.as_str());
        prop_assert_eq!(&raw.to::<Value>().unwrap(), &value);
        let members: Vec<(String, Value)> = raw.members().map(|(key, member)| (key.into_owned(), member.to().unwrap())).collect();
        let expected: Vec<(String, Value)> = value.as_object().into_iter().flatten().map(|(key, member)| (key.clone(), member.clone())).collect();
        prop_assert_eq!(members, expected);
    }

    #[test]
    fn spaces_are_those_of_serde_json(value in value()) {
        let compact = serde_json::to_string(&value).unwrap();
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        for text in [&compact, &pretty] {
            let raw = RawJson::parse(text.clone()).unwrap();
            prop_assert_eq!(&raw.indented(), &pretty);
            let without = raw.compact();
            prop_assert_eq!(without.as_str(), compact.as_str());
        }
    }

    #[test]
    fn the_canonical_form_means_the_same(value in value()) {
        let pretty = RawJson::parse(serde_json::to_string_pretty(&value).unwrap()).unwrap();
        let text = canonical(&pretty);
        let again = RawJson::parse(text.clone()).unwrap();
        prop_assert_eq!(canonical(&again), text);
        prop_assert_eq!(normal(&again.to::<Value>().unwrap()), normal(&value));
    }

    #[test]
    fn mutated_texts_are_judged_as_serde_json_does(value in value(), at in any::<prop::sample::Index>(), byte in 0_u8..128, remove in any::<bool>()) {
        let mut text = serde_json::to_string(&value).unwrap().into_bytes();
        let at = at.index(text.len());
        if remove { text.remove(at); } else { text[at] = byte; }
        if let Ok(text) = String::from_utf8(text) {
            prop_assert_eq!(validate(&text, JsonLimits::RELAY).is_ok(), is_json(&text), "{:?}", text);
        }
    }

    #[test]
    fn pieces_are_judged_as_serde_json_does(text in pieces()) {
        prop_assert_eq!(validate(&text, JsonLimits::RELAY).is_ok(), is_json(&text), "{:?}", text);
    }

    #[test]
    fn splices_are_json_and_say_what_was_asked(value in vec((any::<String>(), 0_u8..9), 0..5), key in any::<String>()) {
        let object: Map<String, Value> = value.into_iter().map(|(key, value)| (key, Value::from(value))).collect();
        let raw = RawJson::from(&Value::Object(object.clone()));
        let with = raw.with_members(&[(key.as_str(), RawJson::from("new"))]).unwrap();
        let mut expected = object.clone();
        expected.insert(key.clone(), Value::from("new"));
        prop_assert_eq!(validate(with.as_str(), JsonLimits::STRICT), Ok(()));
        prop_assert_eq!(with.to::<Map<String, Value>>().unwrap(), expected);
        let mut expected = object;
        expected.remove(&key);
        let without = with.without_members(&[key.as_str()]).unwrap();
        prop_assert_eq!(without.to::<Map<String, Value>>().unwrap(), expected);
    }
}

/// Returns a value with every number as a double: the canonical form writes `1.0` as `1`.
fn normal(value: &Value) -> Value {
    match value {
        Value::Number(number) => number
            .as_f64()
            .map_or(Value::Null, |double| Value::from(double + 0.0)),
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::Object(members) => {
            let mut members: Vec<(String, Value)> = members
                .iter()
                .map(|(key, member)| (key.clone(), normal(member)))
                .collect();
            members.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(members.into_iter().collect())
        }
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn what_is_seen_while_a_text_is_checked_is_what_is_found_in_it(value in value(), before in 0_usize..3, many in 0_usize..12) {
        let mut value = value;
        if let Some(object) = value.as_object_mut() {
            // Also exceed the number of indexed members.
            object.extend((0..many).map(|n| (format!("k{n}"), Value::from(n))));
        }
        let text = format!("{}{value:#}", " ".repeat(before));
        let parsed = IndexedJson::parse(text.clone(), JsonLimits::RELAY).expect("it is JSON");
        let raw = RawJson::parse(text).expect("it is JSON");
        prop_assert_eq!(parsed.raw(), &raw);
        let seen: Vec<_> = parsed.parts().map(|(key, part)| (key.into_owned(), part.to_raw())).collect();
        let found: Vec<_> = raw.members().map(|(key, value)| (key.into_owned(), value)).collect();
        prop_assert_eq!(seen, found);
    }
}
