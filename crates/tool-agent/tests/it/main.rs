//! Formats of providers.

mod agents;
mod calls;
mod definitions;
mod names;
mod recordings;
mod results;
mod sdks;
mod streams;

use tool_agent::{DefinitionOptions, ProviderFormat, RawJson, ToolDefinitions, ToolSpec, serde_json::Value};

/// Definitions of tools with these names, which take anything.
fn definitions(format: ProviderFormat, names: &[&str]) -> ToolDefinitions {
    let schema = RawJson::parse(r#"{"type":"object"}"#).expect("JSON");
    let tools: Vec<_> = names
        .iter()
        .map(|name| ToolSpec::new(*name, "A tool.", schema.clone()))
        .collect();
    ToolDefinitions::new(format, &tools, DefinitionOptions::default())
}

fn json(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).expect("JSON")
}

fn value(raw: &RawJson) -> Value {
    raw.to().expect("JSON")
}
