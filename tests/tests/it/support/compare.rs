use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// The members of an object, each with its own text.
pub(crate) fn members(object: &str) -> BTreeMap<String, String> {
    let members: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(object).unwrap_or_else(|error| panic!("no object ({error}): {object:.500}"));
    members
        .into_iter()
        .map(|(key, value)| (key, value.get().to_owned()))
        .collect()
}

/// An object of these members.
pub(crate) fn object(members: &BTreeMap<String, String>) -> String {
    let members: Vec<_> = members
        .iter()
        .map(|(key, value)| format!("{}:{value}", serde_json::Value::from(key.as_str())))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// The text that a JSON string stands for.
pub(crate) fn text(string: &str) -> String {
    serde_json::from_str(string).unwrap()
}

/// Fails the test unless every member of a result has the text that it has in the direct one: `resultType` and what
/// is ours in `_meta` aside, and what the modern era demands of every server and a legacy one does not say.
pub(crate) fn assert_same_result(what: &str, direct: &str, relayed: &str) {
    let (direct, mut relayed) = (without_ours(direct), without_ours(relayed));
    for demanded in ["ttlMs", "cacheScope"] {
        if !direct.contains_key(demanded) {
            relayed.remove(demanded);
        }
    }
    assert_eq!(direct, relayed, "{what}");
}

/// Fails the test unless every member of a definition has the text that the server gives it; the name may be another
/// one, as given.
pub(crate) fn assert_same_definition(what: &str, direct: (&str, &str), relayed: (&str, &str)) {
    let nameless = |(name, definition): (&str, &str)| {
        let mut members = without_ours(definition);
        if members.get("name").is_some_and(|member| text(member) == name) {
            members.remove("name");
        }
        members
    };
    assert_eq!(nameless(direct), nameless(relayed), "{what}");
}

fn without_ours(object: &str) -> BTreeMap<String, String> {
    let mut members = members(object);
    members.remove("resultType");
    if let Some(meta) = members.remove("_meta") {
        for (key, value) in self::members(&meta) {
            if !key.starts_with("dev.toolplane/") {
                members.insert(format!("_meta {key}"), value);
            }
        }
    }
    members
}
