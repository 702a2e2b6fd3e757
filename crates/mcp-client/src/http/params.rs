//! Headers that mirror a tool's arguments (`x-mcp-header`, 2026-07-28).

use std::{collections::HashMap, sync::Arc};

use http::{HeaderName, HeaderValue};
use mcp_wire::{MirroredParam, MirroredParams, Params, header};
use parking_lot::RwLock;
use raw_json::RawJson;

use super::pool::Headers;

/// Which arguments of which tools are mirrored, as the last list of tools said.
#[derive(Debug, Default)]
pub(super) struct MirroredTools(RwLock<Arc<HashMap<String, Vec<Mirrored>>>>);

/// One argument that is mirrored.
#[derive(Debug, PartialEq, Eq)]
struct Mirrored {
    header: HeaderName,
    param: MirroredParam,
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
                        "left out a tool whose `x-mcp-header` is not valid"
                    );
                }
            }
        }
        *self.0.write() = Arc::new(mirrored);
        kept
    }

    /// Adds the headers that the call of a tool needs.
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
        for Mirrored { header, param } in mirrored {
            if let Some(text) = param.value(arguments.as_ref()) {
                headers.push((header.clone(), header_value(&text)));
            }
        }
    }
}

/// A text as the value of a header.
pub(super) fn header_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(&header::encode(text)).expect("printable ASCII is the value of a header")
}

/// The arguments that a tool wants mirrored.
fn mirrored_in(tool: &RawJson) -> Result<Vec<Mirrored>, String> {
    let Some(schema) = tool.get("inputSchema") else {
        return Ok(Vec::new());
    };
    let mirrored = MirroredParams::from_schema(&schema);
    if let Some(problem) = mirrored.problem() {
        return Err(problem.to_owned());
    }
    let params = mirrored.params().iter().map(|param| Mirrored {
        header: HeaderName::try_from(param.header()).expect("a token is the name of a header"),
        param: param.clone(),
    });
    Ok(params.collect())
}
