use std::collections::HashSet;

use raw_json::{JsonKind, RawJson};

use crate::header;

/// The arguments of one tool that clients mirror in `Mcp-Param-*` headers (`x-mcp-header` in its schema), so that what
/// stands in front of a server can decide by them without reading bodies (2026-07-28).
///
/// Both sides read the marks in the same way. They differ in what they make of one that is not valid: a client leaves
/// out the tool ([`MirroredParams::problem`]), a server passes over the mark.
///
/// ```
/// use mcp_wire::MirroredParams;
/// use raw_json::RawJson;
///
/// let schema = r#"{"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#;
/// let mirrored = MirroredParams::read(&RawJson::parse(schema)?);
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

/// One argument that is mirrored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirroredParam {
    header: String,
    path: Vec<String>,
}

/// What marks an argument in a schema.
const MARK: &str = "x-mcp-header";
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

impl MirroredParams {
    /// Reads a tool's `inputSchema`. Only arguments that `properties` alone lead to can be mirrored, and only those
    /// that are strings, integers or booleans.
    #[must_use]
    pub fn read(schema: &RawJson) -> Self {
        // An escape could hide the mark.
        if !schema.as_str().contains(MARK) && !schema.as_str().contains("\\u") {
            return Self::default();
        }
        let mut search = Search::default();
        search.schema(schema, true);
        search.found
    }

    /// Those whose marks are valid, in the order of the schema.
    #[must_use]
    pub fn params(&self) -> &[MirroredParam] {
        &self.params
    }

    /// What is wrong with the first mark that is not valid, if there is such.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }
}

impl MirroredParam {
    /// The name of the header, in lower case.
    #[must_use]
    pub fn header(&self) -> &str {
        &self.header
    }

    /// The keys that lead to the argument.
    #[must_use]
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// What the header has to say of these arguments, before it is [encoded](header::encode); nothing when the argument
    /// is not there, or of a kind that is not mirrored.
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

/// An integer in decimal, however it was written.
fn decimal(text: &str) -> String {
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        return text.to_owned();
    }
    let whole = text.parse().ok().filter(|double: &f64| double.fract() == 0.0);
    whole.map_or_else(|| text.to_owned(), |double| format!("{double:.0}"))
}

/// A walk through a schema, whose depth is bounded by that of a message.
#[derive(Default)]
struct Search {
    path: Vec<String>,
    names: HashSet<String>,
    found: MirroredParams,
}

impl Search {
    /// Looks through a schema; `reachable` when only `properties` lead to it.
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
            return Err("an annotation stands where no argument is".to_owned());
        }
        if !is_primitive(schema) {
            return Err(
                "an annotation stands at an argument that is no string, integer or boolean".to_owned(),
            );
        }
        let name = value.string().filter(|name| is_token(name));
        let name = name.ok_or_else(|| format!("{value} cannot be part of a header's name"))?;
        let lower = name.to_ascii_lowercase();
        if !self.names.insert(lower.clone()) {
            return Err(format!("`{name}` stands at two arguments"));
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

/// RFC 9110, section 5.6.2.
fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}
