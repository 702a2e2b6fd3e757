//! Descriptors of the protocol as definitions that clients are shown, and as descriptors of tools.

use raw_json::{JsonKind, RawJson};
use serde_json::json;
use tool_core::{DefinitionPolicy, Descriptor, ExecutorSpec, ListWarning, Origin};
use tool_scan::{
    Finding,
    clean::{clean_definition, clean_text},
    escape_line, scan,
};

use crate::{EndpointSettings, settings::EXECUTOR_KIND};

/// Key in `_meta` of a definition of the members of a descriptor that MCP has no place for: `command`, `origin`, `safety` and
/// unknown ones. In `_meta` of a result: what the endpoint says about it.
pub(crate) const META_KEY: &str = "dev.toolplane/endpoint";
/// Members that have a place in a definition.
const MAPPED: [&str; 4] = ["name", "description", "input_schema", "result_schema"];

/// Entry of a list that is offered.
pub(crate) struct Described {
    pub(crate) descriptor: Descriptor,
    pub(crate) warnings: Vec<ListWarning>,
}

/// Makes the descriptor of a tool from an entry of a list. Returns `None` if the settings exclude it.
///
/// # Errors
/// The outward name and the reason if the entry cannot be offered.
pub(crate) fn describe(
    settings: &EndpointSettings,
    entry: &RawJson,
) -> Result<Option<Described>, (String, String)> {
    let upstream_name = text(entry, "name").filter(|name| !name.is_empty());
    let Some(upstream_name) = upstream_name else {
        return Err((
            format!("{}?", settings.prefix),
            "it has no text `name`".to_owned(),
        ));
    };
    if !settings.offers(&upstream_name) {
        return Ok(None);
    }
    let name = settings.outward_name(&upstream_name);
    let reject = |reason: String| Err((escape_line(&name).into_owned(), reason));
    let limit = settings.list_limits.definition_bytes;
    if entry.len() > limit {
        return reject(format!(
            "its definition has {} bytes; at most {limit} are allowed",
            entry.len()
        ));
    }
    let mut warnings = Vec::new();
    let mut warn = |kind: &'static str, message: String| {
        let name = Some(escape_line(&name).into_owned());
        warnings.push(ListWarning::new(
            Some(tool_core::Feature::Tool),
            name,
            kind,
            message,
        ));
    };
    let definition = match definition(entry, &name) {
        Ok(definition) => definition,
        Err(reason) => return reject(reason),
    };
    let definition = match apply_policy(settings.definitions, definition, &mut warn) {
        Ok(definition) => definition,
        Err(reason) => return reject(reason),
    };
    let description = text(&definition, "description").unwrap_or_default();
    if description.trim().is_empty() {
        let message = "it has no description, by which models choose tools";
        warn("description_empty", message.to_owned());
    }
    let config = json!({"endpoint": settings.name, "tool": upstream_name});
    let mut descriptor = Descriptor::new(
        name.as_str(),
        ExecutorSpec::new(EXECUTOR_KIND).with_config(config),
    );
    descriptor.description = description;
    descriptor.input_schema = definition.get("inputSchema").unwrap_or_else(RawJson::object);
    descriptor.output_schema = definition.get("outputSchema");
    descriptor.timeout = settings.timeout;
    descriptor.definition = Some(definition);
    descriptor.origin = Origin::upstream(format!("the endpoint `{}`", settings.name));
    Ok(Some(Described { descriptor, warnings }))
}

/// Returns the definition that clients are shown. Every member of the entry is in it: those without a place in MCP in `_meta`.
fn definition(entry: &RawJson, name: &str) -> Result<RawJson, String> {
    let input_schema = object_schema(entry, "input_schema")?.unwrap_or_else(any_object);
    let mut members = vec![("name", RawJson::from(name))];
    if let Some(description) = entry.get("description") {
        if description.kind() != JsonKind::String {
            return Err("its `description` is no text".to_owned());
        }
        members.push(("description", description));
    }
    members.push(("inputSchema", input_schema));
    if let Some(result_schema) = object_schema(entry, "result_schema")? {
        members.push(("outputSchema", result_schema));
    }
    let rest = entry.without_members(&MAPPED);
    let rest = rest.map_err(|error| format!("it cannot be used: {error}"))?;
    if rest.parts().next().is_some() {
        members.push(("_meta", RawJson::from_members(&[(META_KEY, rest)])));
    }
    Ok(RawJson::from_members(&members))
}

/// Returns the schema of an object. Arguments and results always are objects, and MCP wants a schema to say so.
fn object_schema(entry: &RawJson, key: &str) -> Result<Option<RawJson>, String> {
    let Some(schema) = entry.get(key).filter(|schema| schema.kind() != JsonKind::Null) else {
        return Ok(None);
    };
    if schema.kind() != JsonKind::Object {
        return Err(format!("its `{key}` is no object"));
    }
    match schema.get("type") {
        None => {
            let schema = schema.with_members(&[("type", RawJson::from("object"))]);
            schema
                .map(Some)
                .map_err(|error| format!("its `{key}` cannot be used: {error}"))
        }
        Some(stated) if stated.string().as_deref() == Some("object") => Ok(Some(schema)),
        Some(_) => Err(format!("its `{key}` does not describe an object")),
    }
}

fn any_object() -> RawJson {
    RawJson::from_members(&[("type", RawJson::from("object"))])
}

/// Applies the policy for suspicious text. Returns the definition to offer, or the reason why none is.
fn apply_policy(
    policy: DefinitionPolicy,
    definition: RawJson,
    warn: &mut impl FnMut(&'static str, String),
) -> Result<RawJson, String> {
    let findings = scan(&definition);
    match policy {
        DefinitionPolicy::Pass => {
            for finding in &findings {
                warn(finding.kind.as_str(), finding.to_string());
            }
            Ok(definition)
        }
        DefinitionPolicy::Withhold => match findings.first() {
            None => Ok(definition),
            Some(first) => Err(format!("`definitions: withhold` applies: {first}")),
        },
        DefinitionPolicy::Clean => {
            let cleaned = cleaned(&definition);
            let is_hidden = |finding: &Finding| finding.kind.is_hidden();
            if let Some(left) = scan(&cleaned).into_iter().find(is_hidden) {
                return Err(format!(
                    "`definitions: clean` cannot remove hidden text that calls depend on: {left}"
                ));
            }
            if let Some(first) = findings.iter().find(|finding| is_hidden(finding)) {
                warn("cleaned", format!("hidden text was removed: {first}"));
            }
            Ok(cleaned)
        }
    }
}

/// Removes hidden text, also from the guardrails summary, which people read.
fn cleaned(definition: &RawJson) -> RawJson {
    let cleaned = clean_definition(definition).unwrap_or_else(|| definition.clone());
    let Some(meta) = cleaned.get("_meta").and_then(|meta| meta.get(META_KEY)) else {
        return cleaned;
    };
    let texts = ["safety", "command"].into_iter().filter_map(|key| {
        let text = text(&meta, key)?;
        Some((key, RawJson::from(&*clean_text(&text))))
    });
    let texts: Vec<_> = texts.collect();
    let meta = meta.with_members(&texts).unwrap_or(meta);
    let meta = RawJson::from_members(&[(META_KEY, meta)]);
    cleaned.with_members(&[("_meta", meta)]).unwrap_or(cleaned)
}

fn text(entry: &RawJson, key: &str) -> Option<String> {
    entry.get(key)?.string()
}
