use std::borrow::Cow;

use raw_json::{JsonKind, RawJson};

use crate::HIDDEN;

/// Returns a value with every member of these names hidden, at any depth: [`HIDDEN`] replaces its value. Everything
/// else keeps its bytes.
///
/// Names are compared without case, white space, `_` and `-`, so `account_number` equals `accountNumber` and
/// `Account-Number`. A text that is or contains JSON is searched as well.
///
/// # Examples
/// ```
/// use raw_json::RawJson;
///
/// let value = RawJson::parse(r#"{"name": "Ann", "SSN": "078-05-1120", "log": "{\"ssn\":1}"}"#)?;
/// let hidden = tool_core::hide_fields(&value, &["ssn".to_owned()]);
/// assert_eq!(hidden.as_str(), r#"{"name": "Ann", "SSN": "[redacted]", "log": "{\"ssn\":\"[redacted]\"}"}"#);
/// # Ok::<(), raw_json::JsonError>(())
/// ```
#[must_use]
pub fn hide_fields(value: &RawJson, names: &[String]) -> RawJson {
    match Fields::new(names) {
        Some(fields) => fields.hide(value),
        None => value.clone(),
    }
}

/// Returns a text with every member of these names hidden in the JSON that it is or contains: see [`hide_fields`].
#[must_use]
pub fn hide_fields_in_text<'a>(text: &'a str, names: &[String]) -> Cow<'a, str> {
    match Fields::new(names) {
        Some(fields) => fields.hide_in_text(text),
        None => Cow::Borrowed(text),
    }
}

/// Returns the result of an MCP request with every member of these names hidden in the tool's data, at any depth: in
/// `structuredContent`, and in JSON within texts of its content. The result's own members are not the tool's data.
#[must_use]
pub fn hide_fields_of_result(result: &RawJson, names: &[String]) -> RawJson {
    let Some(fields) = Fields::new(names) else {
        return result.clone();
    };
    with_each_member(result, |key, member| match key {
        "structuredContent" => fields.hide(member),
        "content" | "contents" => with_each_item(member, |block| fields.hide_in_block(block)),
        "messages" => with_each_item(member, |message| fields.hide_in_message(message)),
        _ => member.clone(),
    })
}

/// Returns a progress report or log message with every member of these names hidden in its texts and data.
#[must_use]
pub fn hide_fields_of_report(report: &RawJson, names: &[String]) -> RawJson {
    let Some(fields) = Fields::new(names) else {
        return report.clone();
    };
    with_each_member(report, |key, member| match key {
        "message" | "data" => fields.hide(member),
        _ => member.clone(),
    })
}

/// Returns the parameters of an elicitation or sampling request with every member of these names hidden in texts and
/// data. A form keeps the names of its fields, without their present values.
#[must_use]
pub fn hide_fields_of_question(params: &RawJson, names: &[String]) -> RawJson {
    let Some(fields) = Fields::new(names) else {
        return params.clone();
    };
    with_each_member(params, |key, member| match key {
        "messages" => with_each_item(member, |message| fields.hide_in_message(message)),
        "requestedSchema" => fields.hide_in_schema(member),
        "tools" => with_each_item(member, |tool| fields.hide_in_schema(tool)),
        _ if fields.contains(key) && !OF_QUESTIONS.contains(&key) => RawJson::from(HIDDEN),
        _ => fields.hide(member),
    })
}

/// Returns the questions of a result that needs input, each by its key, with every member of these names hidden: see
/// [`hide_fields_of_question`].
#[must_use]
pub fn hide_fields_of_questions(requests: &RawJson, names: &[String]) -> RawJson {
    with_each_member(requests, |_, request| {
        with_each_member(request, |key, member| match key {
            "params" => hide_fields_of_question(member, names),
            _ => member.clone(),
        })
    })
}

/// Members of the parameters of questions that are not the tool's data, whatever their names.
const OF_QUESTIONS: [&str; 14] = [
    "_meta",
    "mode",
    "message",
    "url",
    "elicitationId",
    "systemPrompt",
    "includeContext",
    "temperature",
    "maxTokens",
    "stopSequences",
    "metadata",
    "modelPreferences",
    "toolChoice",
    "task",
];

/// Names of fields, in the form in which they are compared.
struct Fields(Vec<String>);

/// Maximum number of bytes read in search of JSON, for each byte of a text.
const WORK: usize = 16;

impl Fields {
    fn new(names: &[String]) -> Option<Self> {
        (!names.is_empty()).then(|| Self(names.iter().map(|name| plain(name)).collect()))
    }

    fn contains(&self, name: &str) -> bool {
        self.0.contains(&plain(name))
    }

    fn hide(&self, value: &RawJson) -> RawJson {
        match value.kind() {
            JsonKind::Object => with_each_member(value, |key, member| {
                if self.contains(key) {
                    RawJson::from(HIDDEN)
                } else {
                    self.hide(member)
                }
            }),
            JsonKind::Array => with_each_item(value, |item| self.hide(item)),
            JsonKind::String => {
                let hidden = value.text().and_then(|text| match self.hide_in_text(&text) {
                    Cow::Borrowed(_) => None,
                    Cow::Owned(hidden) => Some(hidden),
                });
                hidden.map_or_else(|| value.clone(), |hidden| RawJson::from(&*hidden))
            }
            _ => value.clone(),
        }
    }

    /// Hides the fields in a block of content, or in a resource of one.
    fn hide_in_block(&self, block: &RawJson) -> RawJson {
        with_each_member(block, |key, member| match key {
            "text" => self.hide(member),
            "resource" => self.hide_in_block(member),
            // Arguments and results of a tool that a model calls.
            "input" | "structuredContent" => self.hide(member),
            "content" => with_each_item(member, |block| self.hide_in_block(block)),
            _ => member.clone(),
        })
    }

    /// Hides the fields in a schema: its own members stay, but its texts and the values of properties with these
    /// names are searched.
    fn hide_in_schema(&self, schema: &RawJson) -> RawJson {
        match schema.kind() {
            JsonKind::Object => with_each_member(schema, |key, member| match key {
                "properties" => with_each_member(member, |name, property| {
                    let property = self.hide_in_schema(property);
                    match self.contains(name) && property.kind() == JsonKind::Object {
                        true => property
                            .without_members(&["default", "const", "examples"])
                            .unwrap_or_else(|_| RawJson::object()),
                        false => property,
                    }
                }),
                "default" | "const" | "enum" | "examples" => self.hide(member),
                _ => self.hide_in_schema(member),
            }),
            JsonKind::Array => with_each_item(schema, |item| self.hide_in_schema(item)),
            _ => self.hide(schema),
        }
    }

    /// Hides the fields in a message of a prompt.
    fn hide_in_message(&self, message: &RawJson) -> RawJson {
        with_each_member(message, |key, member| match (key, member.kind()) {
            ("content", JsonKind::Array) => with_each_item(member, |block| self.hide_in_block(block)),
            ("content", _) => self.hide_in_block(member),
            _ => member.clone(),
        })
    }

    fn hide_in_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        // Often the whole text is JSON, possibly a string.
        if text.trim_start().starts_with('"')
            && let Ok(value) = RawJson::parse(text.to_owned())
        {
            let hidden = self.hide(&value);
            return if hidden == value {
                Cow::Borrowed(text)
            } else {
                Cow::Owned(hidden.to_string())
            };
        }
        let mut hidden = String::new();
        // End of the written text, and the place to continue.
        let (mut end, mut at) = (0, 0);
        let mut work = text.len().saturating_mul(WORK);
        while let Some(start) = text[at..].find(['{', '[', '"']).map(|start| start + at) {
            let is_string = text[start..].starts_with('"');
            // A string that may contain JSON.
            if is_string && !text[start + 1..].starts_with(['{', '[', '\\']) {
                at = start + 1;
                continue;
            }
            let Some(length) = value_length(&text.as_bytes()[start..], &mut work) else {
                if work > 0 {
                    at = start + 1;
                    continue;
                }
                // Not known to be free of the fields.
                let rest = &text[start..];
                if self.0.iter().any(|name| plain(rest).contains(name.as_str())) {
                    hidden.push_str(&text[end..start]);
                    hidden.push_str(HIDDEN);
                    return Cow::Owned(hidden);
                }
                break;
            };
            let Ok(value) = RawJson::parse(text[start..start + length].to_owned()) else {
                at = start + 1;
                continue;
            };
            let without = self.hide(&value);
            let is_same = without == value;
            // The quote of a string with nothing to hide may also end another one.
            at = start + if is_string && is_same { 1 } else { length };
            if !is_same {
                hidden.push_str(&text[end..start]);
                hidden.push_str(without.as_str());
                end = at;
            }
        }
        if end == 0 {
            return Cow::Borrowed(text);
        }
        hidden.push_str(&text[end..]);
        Cow::Owned(hidden)
    }
}

/// Returns a name in the form in which names are compared.
fn plain(name: &str) -> String {
    let is_seen = |letter: &char| {
        !(letter.is_whitespace()
            || letter.is_control()
            || matches!(
                letter,
                '_' | '-' | '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}'
            ))
    };
    name.chars()
        .filter(is_seen)
        // Some letters have an upper case and no other lower case.
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect()
}

/// Returns the length of the string, object or list at the start of a text, by its quotes and brackets; `None` if it
/// does not end or the work is used up.
fn value_length(text: &[u8], work: &mut usize) -> Option<usize> {
    let (mut depth, mut is_in_string, mut at) = (0_usize, false, 0);
    while at < text.len() {
        *work = work.checked_sub(1).unwrap_or_default();
        if *work == 0 {
            return None;
        }
        match text[at] {
            b'\\' if is_in_string => at += 1,
            b'"' if is_in_string && depth == 0 => return Some(at + 1),
            b'"' => is_in_string = !is_in_string,
            _ if is_in_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Applies `change` to each member of an object. Returns the object itself if nothing changes or it is not an object.
pub(super) fn with_each_member(object: &RawJson, change: impl Fn(&str, &RawJson) -> RawJson) -> RawJson {
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

/// Applies `change` to each item of a list. Returns the list itself if nothing changes or it is not a list.
pub(super) fn with_each_item(list: &RawJson, change: impl Fn(&RawJson) -> RawJson) -> RawJson {
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
            (
                r#"{"SSN": 1, " s_S-n\t": 2, "t": "{\"ssn\": 1}", "s": "\"[{\\\"Ssn\\\":1}]\""}"#,
                r#"{"SSN": "[redacted]", " s_S-n\t": "[redacted]", "t": "{\"ssn\": \"[redacted]\"}", "s": "\"[{\\\"Ssn\\\":\\\"[redacted]\\\"}]\""}"#,
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
            (
                r#"{"messages":[{"role":"user","content":{"type":"text","text":"is {\"SSN \":1} right?"}}]}"#,
                r#"{"messages":[{"role":"user","content":{"type":"text","text":"is {\"SSN \":\"[redacted]\"} right?"}}]}"#,
            ),
            // Text that is not JSON, and members that are not the tool's data, stay.
            (
                r#"{ "content": [ {"type":"text","text":"ssn: 1"} ], "ssn": 1 }"#,
                r#"{ "content": [ {"type":"text","text":"ssn: 1"} ], "ssn": 1 }"#,
            ),
        ] {
            let result = RawJson::parse(result).unwrap();
            assert_eq!(hide_fields_of_result(&result, &names).as_str(), expected);
        }
    }

    #[test]
    fn fields_in_texts_that_are_no_json() {
        let names = ["ssn".to_owned()];
        for (text, expected) in [
            (
                r#"bad {x} in {"ssn":1}, [{"SSN":2}]"#,
                r#"bad {x} in {"ssn":"[redacted]"}, [{"SSN":"[redacted]"}]"#,
            ),
            ("{{{ssn", "{{{ssn"),
            (r#"{"ssn":1"#, r#"{"ssn":1"#),
            ("no {}", "no {}"),
        ] {
            assert_eq!(super::hide_fields_in_text(text, &names), expected);
        }
        // Beyond the limit of work.
        let text = format!("it: {}{{\"ssn\": 1}}", "{".repeat(10_000));
        assert_eq!(
            super::hide_fields_in_text(&text, &names),
            format!("it: {}", "{".repeat(16)) + crate::HIDDEN
        );
    }
}
