//! Fields that are hidden by their names.

use proptest::{collection::vec, prelude::*, sample::select};
use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::{hide_fields, hide_fields_in_text};

const VALUE: &str = "078-05-1120";

/// Generates spellings of `social_security`.
fn spelling() -> impl Strategy<Value = String> {
    let space = || select(vec!["", " ", "\t", "\u{200b}"]);
    let between = select(vec!["_", "-", "", " ", "__"]);
    (space(), "(?i)social", between, "(?i)security", space()).prop_map(
        |(before, first, between, second, after)| format!("{before}{first}{between}{second}{after}"),
    )
}

/// Nests a value in containers, repeatedly.
fn within(value: Value, places: &[u8]) -> Value {
    places.iter().fold(value, |value, place| match place % 5 {
        0 => json!({ "a": value, "n": 1e2 }),
        1 => json!([0, value]),
        2 => json!(value.to_string()),
        3 => json!({ "text": format!("it says: {value}, and more") }),
        _ => json!({ "x": [{ "social": value }] }),
    })
}

/// Returns `true` if a value contains a text, also in JSON within its texts.
fn says(value: &Value, what: &str) -> bool {
    value.to_string().contains(what)
}

proptest! {
    #[test]
    fn a_field_is_hidden_in_any_spelling_at_any_depth(name in spelling(), places in vec(any::<u8>(), 0..6)) {
        let value = within(json!({ name: VALUE, "other": "stays" }), &places);
        let raw = RawJson::from(value.clone());
        let names = ["social_security".to_owned()];
        let hidden = hide_fields(&raw, &names);
        let hidden: Value = serde_json::from_str(hidden.as_str()).expect("it stays JSON");
        prop_assert!(!says(&hidden, VALUE), "{}", hidden);
        prop_assert!(says(&hidden, "stays"));
        let text = format!("failed: {value}");
        let hidden = hide_fields_in_text(&text, &names);
        prop_assert!(!hidden.contains(VALUE) && hidden.starts_with("failed: "), "{}", hidden);
    }

    #[test]
    fn what_has_no_such_field_keeps_its_bytes(places in vec(any::<u8>(), 0..6), text in "[a-z{}\\[\\]\": ]{0,60}") {
        let value = RawJson::from(within(json!({ "society": VALUE, "text": text }), &places));
        let names = ["social_security".to_owned()];
        let hidden = hide_fields(&value, &names);
        prop_assert_eq!(hidden.as_str(), value.as_str());
    }
}
