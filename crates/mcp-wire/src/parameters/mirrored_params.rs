use std::collections::HashSet;

use raw_json::{JsonKind, RawJson};

use crate::header;

/// Arguments of one tool that clients mirror in `Mcp-Param-*` headers (`x-mcp-header` in its schema), so that a proxy in
/// front of a server can decide by them without reading bodies (2026-07-28).
///
/// Both sides read the annotations in the same way. They differ in how they treat an invalid one: a client leaves out the
/// tool ([`MirroredParams::problem`]), a server ignores the annotation.
///
/// # Examples
///
/// ```
/// use mcp_wire::MirroredParams;
/// use raw_json::RawJson;
///
/// let schema = r#"{"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#;
/// let mirrored = MirroredParams::from_schema(&RawJson::parse(schema)?);
/// let [region] = mirrored.params() else { unreachable!() };
/// assert_eq!(region.header(), "mcp-param-region");
/// let arguments = RawJson::parse(r#"{"region":"us"}"#)?;
/// assert_eq!(region.value(Some(&arguments)).as_deref(), Some("us"));
/// # Ok::<(), raw_json::JsonError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MirroredParams {
    params: Vec<MirroredParam>,
    problem: Option<String>,
}

/// One mirrored argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirroredParam {
    header: String,
    path: Vec<String>,
}

/// Keyword that marks an argument in a schema.
const MARK: &str = "x-mcp-header";
/// Keywords of a schema whose values are data, not schemas.
const DATA: [&str; 5] = ["const", "default", "enum", "examples", "required"];
/// Keywords of a schema whose members are named schemas.
const NAMED: [&str; 5] = [
    "properties",
    "patternProperties",
    "dependentSchemas",
    "$defs",
    "definitions",
];

impl MirroredParams {
    /// Reads a tool's `inputSchema`. Only arguments that are reached through `properties` alone can be mirrored, and only
    /// strings, integers and booleans.
    #[must_use]
    pub fn from_schema(schema: &RawJson) -> Self {
        // An escape could hide the keyword.
        if !schema.as_str().contains(MARK) && !schema.as_str().contains("\\u") {
            return Self::default();
        }
        let mut search = Search::default();
        search.schema(schema, true);
        search.found
    }

    /// Returns the arguments with a valid annotation, in the order of the schema.
    #[must_use]
    pub fn params(&self) -> &[MirroredParam] {
        &self.params
    }

    /// Describes the first invalid annotation. Returns `None` if all are valid.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }
}

impl MirroredParam {
    /// Returns the name of the header, in lower case.
    #[must_use]
    pub fn header(&self) -> &str {
        &self.header
    }

    /// Returns the keys that lead to the argument.
    #[must_use]
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// Returns the value of the header for these arguments, before it is [encoded](header::encode). Returns `None` if the
    /// argument is absent, or of a type that is not mirrored.
    #[must_use]
    pub fn value(&self, arguments: Option<&RawJson>) -> Option<String> {
        let start = arguments.cloned();
        let value = self.path.iter().fold(start, |value, key| value?.get(key))?;
        match value.kind() {
            JsonKind::String => value.string(),
            JsonKind::Bool => Some(value.as_str().to_owned()),
            JsonKind::Number => Some(decimal(value.as_str())),
            JsonKind::Null | JsonKind::Array | JsonKind::Object => None,
        }
    }
}

/// Formats an integer in decimal, in whatever notation it was written.
fn decimal(text: &str) -> String {
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return text.to_owned();
    }
    let whole = text.parse().ok().filter(|double: &f64| double.fract() == 0.0);
    whole.map_or_else(|| text.to_owned(), |double| format!("{double:.0}"))
}

/// Walk through a schema, whose depth is bounded by that of a message.
#[derive(Default)]
struct Search {
    path: Vec<String>,
    names: HashSet<String>,
    found: MirroredParams,
}

impl Search {
    /// Searches a schema; `reachable` if only `properties` lead to it.
    fn schema(&mut self, schema: &RawJson, reachable: bool) {
        for (key, value) in schema.members() {
            if key == MARK {
                if let Err(problem) = self.mark(schema, &value, reachable) {
                    self.found.problem.get_or_insert(problem);
                }
            } else if NAMED.contains(&&*key) {
                for (name, inner) in value.members() {
                    self.path.push(name.into_owned());
                    self.schema(&inner, reachable && key == "properties");
                    self.path.pop();
                }
            } else if !DATA.contains(&&*key) {
                self.schema(&value, false);
                for item in value.items() {
                    self.schema(&item, false);
                }
            }
        }
    }

    fn mark(&mut self, schema: &RawJson, value: &RawJson, reachable: bool) -> Result<(), String> {
        if !reachable || self.path.is_empty() {
            return Err("`x-mcp-header` outside of an argument".to_owned());
        }
        if !is_primitive(schema) {
            return Err("`x-mcp-header` at an argument that is not a string, integer or boolean".to_owned());
        }
        let name = value.string().filter(|name| is_token(name));
        let name = name.ok_or_else(|| format!("invalid header name {value}"))?;
        let lower = name.to_ascii_lowercase();
        if !self.names.insert(lower.clone()) {
            return Err(format!("duplicate header name `{name}`"));
        }
        self.found.params.push(MirroredParam {
            header: format!("{}{lower}", header::PARAM_PREFIX),
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

/// Returns `true` for a token (RFC 9110, section 5.6.2).
fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}
