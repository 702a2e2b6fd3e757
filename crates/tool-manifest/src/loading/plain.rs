//! Fast reading of plain manifests, as stores keep them in great number.

use std::cell::Cell;

use raw_json::{JsonLimits, RawJson};
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use tool_core::{Descriptor, ExecutorSpec, Metadata, Origin, check_name};
use tool_settings::{
    ConfigDocument, ConfigProblem, ConfigValue, Field, NodeId, SectionKey, Sections, ToolSettings,
};

use crate::{dialects::manifest::API_VERSION, document::node::MAX_DEPTH};

/// Maximum size of a plain manifest, in bytes. It has fewer values than a file may have.
const MAX_BYTES: usize = 64 * 1024;
/// Maximum length of a number in a plain manifest. Longer ones may be too large to be read.
const MAX_NUMBER: usize = 32;

/// Manifest of a tool that has no other keys than these. A list of another dialect, or a key of a section, is not plain.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainManifest<'a> {
    #[serde(rename = "apiVersion")]
    api_version: &'a str,
    kind: &'a str,
    metadata: PlainName<'a>,
    #[serde(borrow)]
    spec: PlainTool<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainName<'a> {
    name: &'a str,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainTool<'a> {
    title: Option<String>,
    description: String,
    version: Option<String>,
    #[serde(borrow, alias = "inputSchema")]
    input_schema: Option<&'a RawValue>,
    #[serde(borrow, alias = "outputSchema")]
    output_schema: Option<&'a RawValue>,
    executor: Map<String, Value>,
    #[serde(default)]
    capabilities: Vec<String>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    aliases: Vec<String>,
    #[serde(default)]
    examples: Vec<String>,
    retryable: Option<bool>,
    idempotent: Option<bool>,
    #[serde(alias = "readOnly")]
    read_only: Option<bool>,
    #[serde(default, alias = "requiredPermissions")]
    required_permissions: Vec<String>,
}

/// Reads a plain manifest of one tool: one of our own dialect, in the compact form of [`Loaded::manifest`](crate::Loaded::manifest),
/// without settings of layers. The descriptor is that of [`load`](crate::load), which takes longer because it records the place
/// of every value.
///
/// `name` is the name for messages. Returns `None` for every other manifest and for one with any problem:
/// [`load`](crate::load) reads it or reports why it cannot be used.
///
/// # Examples
/// ```
/// use raw_json::RawJson;
/// use tool_manifest::read_plain;
/// use tool_settings::Sections;
///
/// let manifest = RawJson::parse(
///     r#"{"apiVersion":"toolplane.dev/v1","kind":"Tool","metadata":{"name":"greet"},"spec":{"description":"Greets.","executor":{"kind":"mock","result":"hello"}}}"#,
/// )?;
/// let tool = read_plain("greet", &manifest, &Sections::default()).expect("it is plain");
/// assert_eq!(tool.description, "Greets.");
/// # Ok::<(), raw_json::JsonError>(())
/// ```
#[must_use]
pub fn read_plain(name: &str, manifest: &RawJson, sections: &Sections) -> Option<Descriptor> {
    let text = manifest.as_str();
    if text.len() > MAX_BYTES || !is_compact(text.as_bytes()) {
        return None;
    }
    raw_json::validate(text, JsonLimits::STRICT.with_depth(MAX_DEPTH)).ok()?;
    let read: PlainManifest<'_> = serde_json::from_str(text).ok()?;
    if read.api_version != API_VERSION || read.kind != "Tool" || check_name(read.metadata.name).is_err() {
        return None;
    }
    let tool = read.spec;
    let mut metadata = Metadata::default();
    metadata.capabilities = tool.capabilities;
    metadata.tags = tool.tags;
    metadata.aliases = tool.aliases;
    metadata.examples = tool.examples;
    metadata.retryable = tool.retryable;
    metadata.idempotent = tool.idempotent;
    metadata.read_only = tool.read_only;
    metadata.required_permissions = tool.required_permissions;
    let settings = settings(read.metadata.name, metadata, sections)?;
    let mut descriptor = Descriptor::new(settings.name, executor(tool.executor)?);
    descriptor.title = tool.title;
    descriptor.description = tool.description;
    descriptor.version = tool.version;
    if let Some(schema) = tool.input_schema {
        descriptor.input_schema = input_schema(object(schema)?)?;
    }
    descriptor.output_schema = match tool.output_schema {
        Some(schema) => Some(object(schema)?),
        None => None,
    };
    descriptor.metadata = settings.metadata.into();
    descriptor.overrides = settings.overrides;
    // A compact manifest has one line.
    descriptor.origin = Origin::operator(format!("{name}:1"));
    Some(descriptor)
}

/// Lets the sections add what they set without any key. Returns `None` if one of them has a problem, or a check that needs
/// the whole configuration.
fn settings(name: &str, metadata: Metadata, sections: &Sections) -> Option<ToolSettings> {
    let mut settings = ToolSettings::new(name);
    settings.fallbacks = Field::ABSENT;
    settings.metadata = metadata;
    let document = NoDocument::default();
    sections.read_tool(&document, &[], &mut settings);
    let is_plain =
        !document.has_problem.get() && settings.checks.is_empty() && settings.fallbacks.is_absent();
    is_plain.then_some(settings)
}

/// Splits `{kind, ..settings}`. A tool of a server may describe the server, which is no plain part of it.
fn executor(mut settings: Map<String, Value>) -> Option<ExecutorSpec> {
    // Not `swap_remove`: the order of the settings stays.
    let kind = match settings.get("kind") {
        Some(Value::String(kind)) if !kind.is_empty() && kind != "mcp" => kind.clone(),
        _ => return None,
    };
    settings.retain(|key, _| key != "kind");
    Some(ExecutorSpec::new(kind).with_config(compact(Value::Object(settings))))
}

/// Returns the value in as little memory as it needs: a map or list that is read has room for more, four entries at least.
fn compact(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().map(|(key, value)| (key, compact(value)));
            Value::Object(members.collect())
        }
        Value::Array(items) => {
            let mut items: Vec<_> = items.into_iter().map(compact).collect();
            items.shrink_to_fit();
            Value::Array(items)
        }
        scalar => scalar,
    }
}

/// Returns the text of a schema that is an object. Its bytes are its own, so that the manifest need not stay in memory.
fn object(schema: &RawValue) -> Option<RawJson> {
    let text = schema.get();
    text.starts_with('{')
        .then(|| RawJson::parse(text.to_owned()).ok())?
}

/// Returns a schema of arguments, which say that they are an object.
fn input_schema(schema: RawJson) -> Option<RawJson> {
    match schema.get("type") {
        None => schema.with_members(&[("type", RawJson::from("object"))]).ok(),
        Some(stated) => (stated.as_str() == "\"object\"").then_some(schema),
    }
}

/// Returns `true` if JSON text has the one form in which a manifest is written: no white space between values, only the escapes
/// that are necessary, and no number that may be too large.
fn is_compact(text: &[u8]) -> bool {
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        at = match byte {
            b' ' | b'\t' | b'\r' | b'\n' => return false,
            b'"' => match compact_string(text, at + 1) {
                Some(end) => end,
                None => return false,
            },
            b'-' | b'0'..=b'9' => {
                let rest = &text[at..];
                let is_plain = |byte: &u8| matches!(byte, b'-' | b'.' | b'0'..=b'9');
                let length = rest.iter().position(|byte| !is_plain(byte)).unwrap_or(rest.len());
                if length > MAX_NUMBER || matches!(rest.get(length), Some(b'e' | b'E')) {
                    return false;
                }
                at + length
            }
            _ => at + 1,
        };
    }
    true
}

/// Returns the end of a string whose content begins at `at`, if it has no other escapes than serde_json writes.
fn compact_string(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let rest = text.get(at..)?;
        at += rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
        if text[at] == b'"' {
            return Some(at + 1);
        }
        // Escapes by number are rare: they are read by the other reader.
        match text.get(at + 1)? {
            b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => at += 2,
            _ => return None,
        }
    }
}

/// Document without any value, for sections of which no key is given.
#[derive(Default)]
struct NoDocument {
    has_problem: Cell<bool>,
}

impl ConfigDocument for NoDocument {
    fn value(&self, _: NodeId) -> ConfigValue<'_> {
        ConfigValue::Null
    }

    fn verbatim(&self, _: NodeId) -> Option<&str> {
        None
    }

    fn describe(&self, _: NodeId) -> String {
        "nothing".to_owned()
    }

    fn to_json(&self, _: NodeId) -> String {
        "null".to_owned()
    }

    fn section_keys(&self, _: &str) -> Option<&[SectionKey]> {
        None
    }

    fn unknown_keys(&self, _: NodeId, _: &[&'static str]) -> Vec<(&'static str, NodeId)> {
        Vec::new()
    }

    fn report(&self, problem: ConfigProblem) {
        if !problem.is_warning {
            self.has_problem.set(true);
        }
    }
}
