use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// Returns the members of an object, verbatim.
pub(crate) fn members(object: &str) -> BTreeMap<String, String> {
    let members: BTreeMap<String, Box<RawValue>> =
        serde_json::from_str(object).unwrap_or_else(|error| panic!("no object ({error}): {object:.500}"));
    members
        .into_iter()
        .map(|(key, value)| (key, value.get().to_owned()))
        .collect()
}

/// Returns an object with these members.
pub(crate) fn object(members: &BTreeMap<String, String>) -> String {
    let members: Vec<_> = members
        .iter()
        .map(|(key, value)| format!("{}:{value}", serde_json::Value::from(key.as_str())))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// Returns the text of a JSON string.
pub(crate) fn text(string: &str) -> String {
    serde_json::from_str(string).unwrap()
}

/// Checks that every member of a result is equal to the direct one, verbatim: except for `resultType`, our own `_meta`,
/// and members that only the modern era requires.
pub(crate) fn assert_same_result(what: &str, direct: &str, relayed: &str) {
    let (direct, mut relayed) = (without_ours(direct), without_ours(relayed));
    for demanded in ["ttlMs", "cacheScope"] {
        if !direct.contains_key(demanded) {
            relayed.remove(demanded);
        }
    }
    assert_eq!(direct, relayed, "{what}");
}

/// Checks that every member of a definition is equal to the server's, verbatim; the name may differ.
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
