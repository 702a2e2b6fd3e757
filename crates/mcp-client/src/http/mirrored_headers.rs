//! Headers that mirror a tool's arguments (`x-mcp-header`, 2026-07-28).

use std::{collections::HashMap, sync::Arc};

use http::{HeaderName, HeaderValue};
use mcp_wire::{MirroredParam, MirroredParams, Params, header};
use parking_lot::RwLock;
use raw_json::RawJson;

use super::client::Headers;

/// Mirrored arguments by tool, as declared in the last list of tools.
#[derive(Debug, Default)]
pub(super) struct MirroredTools(RwLock<Arc<HashMap<String, Vec<MirroredArgument>>>>);

/// Mirrored argument.
#[derive(Debug, PartialEq, Eq)]
struct MirroredArgument {
    header: HeaderName,
    param: MirroredParam,
}

impl MirroredTools {
    /// Reads the mirrored arguments from a list of tools. Removes tools with invalid annotations from it, as the
    /// protocol requires.
    pub(super) fn update(&self, tools: Vec<RawJson>) -> Vec<RawJson> {
        let mut mirrored = HashMap::new();
        let mut callable = Vec::with_capacity(tools.len());
        for tool in tools {
            match mirrored_arguments(&tool) {
                Ok(arguments) => {
                    let name = tool.get("name").and_then(|name| name.string());
                    if let Some(name) = name.filter(|_| !arguments.is_empty()) {
                        mirrored.insert(name, arguments);
                    }
                    callable.push(tool);
                }
                Err(reason) => {
                    let name = tool.get("name").and_then(|name| name.string());
                    tracing::warn!(
                        tool = name,
                        reason,
                        "ignored a tool with an invalid `x-mcp-header`"
                    );
                }
            }
        }
        *self.0.write() = Arc::new(mirrored);
        callable
    }

    /// Adds the headers that mirror the arguments of a call.
    pub(super) fn add(&self, headers: &mut Headers, params: &Params) {
        let tools = Arc::clone(&self.0.read());
        if tools.is_empty() {
            return;
        }
        let name = params.get("name").and_then(|name| name.string());
        let Some(mirrored) = name.and_then(|name| tools.get(&name)) else {
            return;
        };
        let arguments = params.get("arguments");
        for MirroredArgument { header, param } in mirrored {
            if let Some(text) = param.value(arguments.as_ref()) {
                headers.push((header.clone(), header_value(&text)));
            }
        }
    }
}

/// Encodes a text as a header value.
pub(super) fn header_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(&header::encode(text)).expect("printable ASCII is the value of a header")
}

/// Returns the arguments that a tool wants mirrored.
fn mirrored_arguments(tool: &RawJson) -> Result<Vec<MirroredArgument>, String> {
    let Some(schema) = tool.get("inputSchema") else {
        return Ok(Vec::new());
    };
    let mirrored = MirroredParams::from_schema(&schema);
    if let Some(problem) = mirrored.problem() {
        return Err(problem.to_owned());
    }
    let params = mirrored.params().iter().map(|param| MirroredArgument {
        header: HeaderName::try_from(param.header()).expect("a token is the name of a header"),
        param: param.clone(),
    });
    Ok(params.collect())
}
