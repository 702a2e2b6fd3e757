use raw_json::{Kind, RawJson};

use crate::HIDDEN;

/// A value with every member of these names hidden, at any depth: [`HIDDEN`] stands in its place. All else keeps its own
/// bytes.
///
/// ```
/// use raw_json::RawJson;
///
/// let value = RawJson::parse(r#"{"name": "Ann", "ssn": "078-05-1120"}"#)?;
/// let hidden = tool_core::hide_fields(&value, &["ssn".to_owned()]);
/// assert_eq!(hidden.as_str(), r#"{"name": "Ann", "ssn": "[redacted]"}"#);
/// # Ok::<(), raw_json::Error>(())
/// ```
#[must_use]
pub fn hide_fields(value: &RawJson, names: &[String]) -> RawJson {
    if names.is_empty() {
        return value.clone();
    }
    match value.kind() {
        Kind::Object => {
            let hidden = |key: &str, member: &RawJson| {
                if names.iter().any(|name| *name == *key) {
                    RawJson::from(HIDDEN)
                } else {
                    hide_fields(member, names)
                }
            };
            with_each_member(value, hidden)
        }
        Kind::Array => with_each_item(value, |item| hide_fields(item, names)),
        _ => value.clone(),
    }
}

/// The result of an MCP request with every member of these names hidden in what is data of the tool, at any depth: in
/// `structuredContent`, and in texts of its content that are JSON. The result's own members are none of it.
#[must_use]
pub fn hide_fields_of_result(result: &RawJson, names: &[String]) -> RawJson {
    if names.is_empty() {
        return result.clone();
    }
    with_each_member(result, |key, member| match key {
        "structuredContent" => hide_fields(member, names),
        "content" | "contents" => with_each_item(member, |block| in_block(block, names)),
        _ => member.clone(),
    })
}

/// A block of content, or a resource in one.
fn in_block(block: &RawJson, names: &[String]) -> RawJson {
    with_each_member(block, |key, member| match key {
        "text" => in_text(member, names),
        "resource" => in_block(member, names),
        _ => member.clone(),
    })
}

/// A text, in which something is hidden if it is JSON.
fn in_text(text: &RawJson, names: &[String]) -> RawJson {
    let Some(inner) = text
        .text()
        .filter(|inner| inner.trim_start().starts_with(['{', '[']))
    else {
        return text.clone();
    };
    let Ok(value) = RawJson::parse(inner.into_owned()) else {
        return text.clone();
    };
    let hidden = hide_fields(&value, names);
    if hidden == value {
        text.clone()
    } else {
        RawJson::from(hidden.as_str())
    }
}

/// The object with what `change` makes of its members; itself if that is nothing else, or if it is no object.
fn with_each_member(object: &RawJson, change: impl Fn(&str, &RawJson) -> RawJson) -> RawJson {
    let mut changed = Vec::new();
    for (key, member) in object.members() {
        let now = change(&key, &member);
        if now != member {
            changed.push((key.into_owned(), now));
        }
    }
    if changed.is_empty() {
        return object.clone();
    }
    let changed: Vec<(&str, RawJson)> = changed
        .iter()
        .map(|(key, member)| (key.as_str(), member.clone()))
        .collect();
    object.with_members(&changed).unwrap_or_else(|_| RawJson::null())
}

/// The list with what `change` makes of its items; itself if that is nothing else, or if it is no list.
fn with_each_item(list: &RawJson, change: impl Fn(&RawJson) -> RawJson) -> RawJson {
    let items: Vec<RawJson> = list.items().collect();
    let now: Vec<RawJson> = items.iter().map(change).collect();
    if now == items {
        list.clone()
    } else {
        RawJson::from_serialize(&now).unwrap_or_else(|_| RawJson::null())
    }
}

#[cfg(test)]
mod tests {
    use raw_json::RawJson;

    use super::{hide_fields, hide_fields_of_result};

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

    #[test]
    fn fields_of_results() {
        let names = ["ssn".to_owned(), "text".to_owned(), "content".to_owned()];
        for (result, expected) in [
            (
                r#"{"content": [{"type":"text","text":"{\"n\": 1e2, \"ssn\": 1}"}],"structuredContent":{"ssn":1, "text":2}}"#,
                r#"{"content": [{"type":"text","text":"{\"n\": 1e2, \"ssn\": \"[redacted]\"}"}],"structuredContent":{"ssn":"[redacted]", "text":"[redacted]"}}"#,
            ),
            (
                r#"{"contents":[{"uri":"a:b","text":"[{\"ssn\":1}]"}]}"#,
                r#"{"contents":[{"uri":"a:b","text":"[{\"ssn\":\"[redacted]\"}]"}]}"#,
            ),
            (
                r#"{"content":[{"type":"resource","resource":{"text":"{\"ssn\":1}"}}]}"#,
                r#"{"content":[{"type":"resource","resource":{"text":"{\"ssn\":\"[redacted]\"}"}}]}"#,
            ),
            // What is no JSON, and what is none of the tool's data, stays.
            (
                r#"{ "content": [ {"type":"text","text":"ssn: 1"} ], "ssn": 1 }"#,
                r#"{ "content": [ {"type":"text","text":"ssn: 1"} ], "ssn": 1 }"#,
            ),
        ] {
            let result = RawJson::parse(result).unwrap();
            assert_eq!(hide_fields_of_result(&result, &names).as_str(), expected);
        }
    }
}
