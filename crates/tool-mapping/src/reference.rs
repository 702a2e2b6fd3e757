//! References: `$input.topic`, `$results.search.urls[0]`, and variables of loops such as `$item`.

use std::{fmt, sync::Arc};

use raw_json::{JsonKind, RawJson};

use super::scope::MappingValues;

/// Reference to a value. It is resolved once: a value that looks like a reference is not one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueReference {
    /// Value that it begins at.
    pub root: ReferenceRoot,
    /// Steps down from there.
    pub path: Vec<PathSegment>,
}

/// Value that a reference begins at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReferenceRoot {
    /// The input.
    Input,
    /// The result of a step.
    Result(Arc<str>),
    /// A variable of a loop.
    Variable(Arc<str>),
}

/// One step down into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathSegment {
    /// A member of an object, or, if it is a number, an item of a list.
    Member(String),
    /// An item of a list, counted from 0.
    Item(usize),
}

/// Name of the input.
pub(crate) const INPUT: &str = "input";
/// Name of the results of all steps.
pub(crate) const RESULTS: &str = "results";

impl ValueReference {
    /// Parses what follows the `$`.
    ///
    /// # Errors
    /// Says what is wrong, as a fragment.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (root, mut rest) = name(text)?;
        let root = match root {
            INPUT => ReferenceRoot::Input,
            RESULTS => {
                let Some(after) = rest.strip_prefix('.') else {
                    return Err("the name of a step is missing, as in `$results.search`".to_owned());
                };
                let (step, after) = name(after)?;
                rest = after;
                ReferenceRoot::Result(step.into())
            }
            variable => ReferenceRoot::Variable(variable.into()),
        };
        let mut path = Vec::new();
        while !rest.is_empty() {
            let (segment, after) = segment(rest)?;
            path.push(segment);
            rest = after;
        }
        Ok(Self { root, path })
    }

    /// Returns the value.
    ///
    /// # Errors
    /// Continues a sentence about the reference, such as `has no item 3 there`.
    pub fn resolve(&self, values: &MappingValues<'_>) -> Result<RawJson, String> {
        if values.is_null(&self.root) {
            return Ok(RawJson::null());
        }
        let mut value = values.root(&self.root)?;
        for segment in &self.path {
            let next = match segment {
                PathSegment::Member(key) if value.kind() == JsonKind::Object => value.get(key),
                PathSegment::Member(key) if value.kind() == JsonKind::Array => {
                    key.parse().ok().and_then(|index| value.items().nth(index))
                }
                PathSegment::Item(index) if value.kind() == JsonKind::Array => value.items().nth(*index),
                _ => None,
            };
            value = next.ok_or_else(|| format!("has no {segment} there"))?;
        }
        Ok(value)
    }
}

/// Splits off a name: letters, digits, `_` and `-`.
fn name(text: &str) -> Result<(&str, &str), String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    match text.split_at(end) {
        ("", "") => Err("a name is missing at its end".to_owned()),
        ("", rest) => {
            let found: String = rest.chars().take(1).collect();
            Err(format!("expected a name, found `{}`", found.escape_debug()))
        }
        split => Ok(split),
    }
}

/// Splits off `.key`, `[0]` or `["key"]`.
fn segment(text: &str) -> Result<(PathSegment, &str), String> {
    if let Some(rest) = text.strip_prefix('.') {
        let (key, rest) = name(rest)?;
        return Ok((PathSegment::Member(key.to_owned()), rest));
    }
    let Some(rest) = text.strip_prefix('[') else {
        let found: String = text.chars().take(1).collect();
        return Err(format!("expected `.` or `[`, found `{}`", found.escape_debug()));
    };
    let unclosed = || "a `[` is not closed".to_owned();
    if rest.starts_with('"') {
        // A JSON text, so that any key can be written.
        let mut keys = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let key = keys
            .next()
            .and_then(Result::ok)
            .ok_or_else(|| "a `\"` is not closed".to_owned())?;
        let rest = rest[keys.byte_offset()..]
            .strip_prefix(']')
            .ok_or_else(unclosed)?;
        return Ok((PathSegment::Member(key), rest));
    }
    let (index, rest) = rest.split_once(']').ok_or_else(unclosed)?;
    let index = index.parse().map_err(|_| {
        "an item is written as `[0]`, and a key with other characters as `[\"a key\"]`".to_owned()
    })?;
    Ok((PathSegment::Item(index), rest))
}

impl fmt::Display for ValueReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.root {
            ReferenceRoot::Input => f.write_str("$input")?,
            ReferenceRoot::Result(step) => write!(f, "$results.{step}")?,
            ReferenceRoot::Variable(name) => write!(f, "${name}")?,
        }
        for segment in &self.path {
            match segment {
                PathSegment::Member(key) if name(key).is_ok_and(|(_, rest)| rest.is_empty()) => {
                    write!(f, ".{key}")?;
                }
                PathSegment::Member(key) => write!(f, "[{}]", serde_json::Value::from(key.as_str()))?,
                PathSegment::Item(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for PathSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member(key) => write!(f, "`{}`", key.escape_debug()),
            Self::Item(index) => write!(f, "item {index}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::scope::Results;

    #[test]
    fn references_are_parsed_and_written() {
        for text in [
            "$input",
            "$input.topic",
            "$results.search",
            "$results.search.urls[0].a-b",
            "$item[2]",
            r#"$input["a key"].b"#,
            r#"$input["\"]"]"#,
        ] {
            let parsed = ValueReference::parse(&text[1..]).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(parsed.to_string(), text);
        }
    }

    #[test]
    fn problems_are_named() {
        for (text, problem) in [
            ("", "a name is missing at its end"),
            (
                "results",
                "the name of a step is missing, as in `$results.search`",
            ),
            ("results.", "a name is missing at its end"),
            ("input..a", "expected a name, found `.`"),
            ("input a", "expected `.` or `[`, found ` `"),
            ("input[0", "a `[` is not closed"),
            (r#"input["a]"#, "a `\"` is not closed"),
            (r#"input["a""#, "a `[` is not closed"),
            (
                "input[a]",
                "an item is written as `[0]`, and a key with other characters as `[\"a key\"]`",
            ),
        ] {
            assert_eq!(ValueReference::parse(text).unwrap_err(), problem, "{text}");
        }
    }

    /// JSON with keys of all kinds.
    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<i32>().prop_map(Value::from), ".{0,4}".prop_map(Value::from)];
        leaf.prop_recursive(4, 32, 4, |inner| {
            let key = prop_oneof!["[a-z0-9_-]{1,3}", "\\PC{0,3}"];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(key, inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// A reference leads to the same value as the JSON Pointer (RFC 6901) with the same steps, by another implementation.
        #[test]
        fn a_reference_leads_where_a_pointer_leads(value in json(), turns in prop::collection::vec(any::<prop::sample::Index>(), 0..5)) {
            let (mut at, mut path, mut pointer) = (&value, Vec::new(), String::new());
            for turn in turns {
                match at {
                    Value::Array(items) if !items.is_empty() => {
                        let index = turn.index(items.len());
                        path.push(PathSegment::Item(index));
                        pointer.push_str(&format!("/{index}"));
                        at = &items[index];
                    }
                    Value::Object(members) if !members.is_empty() => {
                        let (key, member) = members.iter().nth(turn.index(members.len())).expect("it is there");
                        path.push(PathSegment::Member(key.clone()));
                        pointer = tool_settings::pointer(&pointer, key);
                        at = member;
                    }
                    _ => break,
                }
            }
            let reference = ValueReference { root: ReferenceRoot::Input, path };
            let written = reference.to_string();
            let parsed = ValueReference::parse(&written[1..]);
            prop_assert_eq!(parsed.as_ref(), Ok(&reference), "{}", written);
            let (input, results) = (RawJson::from(&value), Results::default());
            let values = MappingValues { input: &input, results: &results, variables: &[], missing_is_null: false };
            let found: Value = reference.resolve(&values).expect("it is there").to().expect("it is JSON");
            prop_assert_eq!(Some(&found), value.pointer(&pointer));
        }
    }
}
