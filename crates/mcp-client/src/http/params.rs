//! Headers that mirror a tool's arguments (`x-mcp-header`, 2026-07-28).

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, PoisonError, RwLock},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderName, HeaderValue};
use mcp_wire::header;
use raw_json::{Kind, RawJson};

use super::client::Headers;

/// The annotation in a schema.
const ANNOTATION: &str = "x-mcp-header";
/// Members of a schema that are no schemas: what stands in them is data.
const DATA: [&str; 5] = ["const", "default", "enum", "examples", "required"];
/// Members of a schema whose members are schemas under names of their own.
const NAMED: [&str; 5] = [
    "properties",
    "patternProperties",
    "dependentSchemas",
    "$defs",
    "definitions",
];

/// Which arguments of which tools are mirrored, as the last list of tools said.
#[derive(Debug, Default)]
pub(super) struct MirroredTools(RwLock<Arc<HashMap<String, Vec<Mirrored>>>>);

/// One argument that is mirrored.
#[derive(Debug, PartialEq, Eq)]
struct Mirrored {
    header: HeaderName,
    /// The keys that lead to the argument.
    path: Vec<String>,
}

impl MirroredTools {
    /// Learns from a list of tools; those with annotations that are not valid are taken out of it, as the protocol
    /// asks.
    pub(super) fn learn(&self, tools: Vec<RawJson>) -> Vec<RawJson> {
        let mut mirrored = HashMap::new();
        let mut kept = Vec::with_capacity(tools.len());
        for tool in tools {
            match mirrored_in(&tool) {
                Ok(arguments) => {
                    let name = tool.get("name").and_then(|name| name.string());
                    if let Some(name) = name.filter(|_| !arguments.is_empty()) {
                        mirrored.insert(name, arguments);
                    }
                    kept.push(tool);
                }
                Err(reason) => {
                    let name = tool.get("name").and_then(|name| name.string());
                    tracing::warn!(
                        tool = name,
                        reason,
                        "left out a tool whose `{ANNOTATION}` is not valid"
                    );
                }
            }
        }
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(mirrored);
        kept
    }

    /// Adds the headers that the call of a tool needs.
    pub(super) fn add(&self, headers: &mut Headers, params: Option<&RawJson>) {
        let tools = Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner));
        let Some(params) = params.filter(|_| !tools.is_empty()) else {
            return;
        };
        let name = params.get("name").and_then(|name| name.string());
        let Some(mirrored) = name.and_then(|name| tools.get(&name)) else {
            return;
        };
        let arguments = params.get("arguments");
        for Mirrored { header, path } in mirrored {
            let start = arguments.clone();
            let value = path.iter().fold(start, |value, key| value?.get(key));
            if let Some(text) = value.as_ref().and_then(text_of) {
                headers.push((header.clone(), header_value(&text)));
            }
        }
    }
}

/// The text of a value that can be mirrored.
fn text_of(value: &RawJson) -> Option<String> {
    match value.kind() {
        Kind::String => value.string(),
        Kind::Bool => Some(value.as_str().to_owned()),
        Kind::Number => Some(decimal(value.as_str())),
        Kind::Null | Kind::Array | Kind::Object => None,
    }
}

/// An integer in decimal, however it was written.
fn decimal(text: &str) -> String {
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return text.to_owned();
    }
    let double: Option<f64> = text.parse().ok().filter(|double: &f64| double.fract() == 0.0);
    double.map_or_else(|| text.to_owned(), |double| format!("{double:.0}"))
}

/// A text as the value of a header: itself where that is safe, else in base64 between marks.
pub(super) fn header_value(text: &str) -> HeaderValue {
    let plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && text.trim_ascii() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    let encoded = if plain {
        HeaderValue::from_str(text)
    } else {
        HeaderValue::try_from(format!("=?base64?{}?=", STANDARD.encode(text)))
    };
    encoded.expect("printable ASCII is the value of a header")
}

/// The arguments that a tool wants mirrored.
fn mirrored_in(tool: &RawJson) -> Result<Vec<Mirrored>, String> {
    let Some(schema) = tool.get("inputSchema") else {
        return Ok(Vec::new());
    };
    // An escape could hide the annotation.
    if !schema.as_str().contains(ANNOTATION) && !schema.as_str().contains("\\u") {
        return Ok(Vec::new());
    }
    let mut search = Search::default();
    search.schema(&schema, true)?;
    Ok(search.found)
}

/// A walk through a schema, whose depth is bounded by that of a message.
#[derive(Default)]
struct Search {
    path: Vec<String>,
    names: HashSet<String>,
    found: Vec<Mirrored>,
}

impl Search {
    /// Looks through a schema; `reachable` when only `properties` lead to it.
    fn schema(&mut self, schema: &RawJson, reachable: bool) -> Result<(), String> {
        for (key, value) in schema.members() {
            if key == ANNOTATION {
                self.annotation(schema, &value, reachable)?;
            } else if NAMED.contains(&&*key) {
                for (name, inner) in value.members() {
                    self.path.push(name.into_owned());
                    self.schema(&inner, reachable && key == "properties")?;
                    self.path.pop();
                }
            } else if !DATA.contains(&&*key) {
                self.schema(&value, false)?;
                for item in value.items() {
                    self.schema(&item, false)?;
                }
            }
        }
        Ok(())
    }

    fn annotation(&mut self, schema: &RawJson, value: &RawJson, reachable: bool) -> Result<(), String> {
        if !reachable {
            return Err("an annotation stands where no argument is".to_owned());
        }
        if !is_primitive(schema) {
            return Err(
                "an annotation stands at an argument that is no string, integer or boolean".to_owned(),
            );
        }
        let name = value.string().filter(|name| is_token(name));
        let name = name.ok_or_else(|| format!("{value} cannot be part of a header's name"))?;
        if !self.names.insert(name.to_ascii_lowercase()) {
            return Err(format!("`{name}` stands at two arguments"));
        }
        let header = HeaderName::try_from(format!("{}{name}", header::PARAM_PREFIX));
        self.found.push(Mirrored {
            header: header.map_err(|_| format!("`{name}` cannot be part of a header's name"))?,
            path: self.path.clone(),
        });
        Ok(())
    }
}

fn is_primitive(schema: &RawJson) -> bool {
    let fits = |name: &RawJson| matches!(name.as_str(), "\"string\"" | "\"integer\"" | "\"boolean\"");
    schema.get("type").is_some_and(|kind| {
        let mut names = kind.items().filter(|name| name.as_str() != "\"null\"").peekable();
        fits(&kind) || names.peek().is_some() && names.all(|name| fits(&name))
    })
}

/// RFC 9110, section 5.6.2.
fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(schema: &str) -> Result<Vec<(String, Vec<String>)>, String> {
        let tool = RawJson::parse(format!(r#"{{"name":"t","inputSchema":{schema}}}"#)).expect("JSON");
        let found = mirrored_in(&tool)?;
        Ok(found
            .into_iter()
            .map(|one| (one.header.to_string(), one.path))
            .collect())
    }

    #[test]
    fn arguments_that_are_mirrored() {
        let found = learned(
            r#"{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"Region"},
                "b":{"type":"object","properties":{"x-mcp-header":{"type":["integer","null"],"x-mcp-\u0068eader":"N"}}},
                "c":{"type":"string","default":{"x-mcp-header":1}}}}"#,
        );
        let path = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            found,
            Ok(vec![
                ("mcp-param-region".to_owned(), path(&["a"])),
                ("mcp-param-n".to_owned(), path(&["b", "x-mcp-header"])),
            ])
        );
        assert_eq!(learned("true"), Ok(Vec::new()));
    }

    #[test]
    fn annotations_that_are_not_valid() {
        for property in [
            r#"{"type":"string","x-mcp-header":""}"#,
            r#"{"type":"string","x-mcp-header":7}"#,
            r#"{"type":"string","x-mcp-header":"A b"}"#,
            r#"{"type":"string","x-mcp-header":"A:b"}"#,
            r#"{"type":"string","x-mcp-header":"Région"}"#,
            r#"{"type":"string","x-mcp-header":"A\r\nb"}"#,
            r#"{"type":"number","x-mcp-header":"A"}"#,
            r#"{"type":["string","number"],"x-mcp-header":"A"}"#,
            r#"{"type":["null"],"x-mcp-header":"A"}"#,
            r#"{"type":"object","x-mcp-header":"A"}"#,
            r#"{"x-mcp-header":"A"}"#,
            r#"{"type":"array","items":{"type":"string","x-mcp-header":"A"}}"#,
            r#"{"anyOf":[{"type":"string","x-mcp-header":"A"}]}"#,
            r#"{"if":{"properties":{"x":{"type":"string","x-mcp-header":"A"}}}}"#,
            r#"{"type":"string","x-mcp-header":"A"},"q":{"type":"string","x-mcp-header":"a"}"#,
        ] {
            let found = learned(&format!(r#"{{"properties":{{"p":{property}}}}}"#));
            assert!(found.is_err(), "{property}: {found:?}");
        }
    }

    #[test]
    fn values_of_headers() {
        for (value, expected) in [
            (r#""us-west1""#, Some("us-west1")),
            (r#""""#, Some("")),
            (r#""Hello, 世界""#, Some("=?base64?SGVsbG8sIOS4lueVjA==?=")),
            (r#"" padded ""#, Some("=?base64?IHBhZGRlZCA=?=")),
            (r#""line1\nline2""#, Some("=?base64?bGluZTEKbGluZTI=?=")),
            (
                r#""=?base64?literal?=""#,
                Some("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ),
            ("true", Some("true")),
            ("-7", Some("-7")),
            ("42.0", Some("42")),
            ("1e3", Some("1000")),
            ("null", None),
            ("{}", None),
        ] {
            let text = text_of(&RawJson::parse(value).expect("JSON"));
            let header = text.map(|text| header_value(&text));
            assert_eq!(
                header.as_ref().map(|header| header.to_str().expect("ASCII")),
                expected,
                "{value}"
            );
        }
    }
}
