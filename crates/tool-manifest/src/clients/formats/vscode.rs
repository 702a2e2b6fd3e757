//! `mcp.json` of VS Code: `servers` and `inputs`.
//!
//! Source: code.visualstudio.com/docs/copilot/reference/mcp-configuration.

use std::collections::BTreeMap;

use tool_settings::NodeId;

use crate::{
    clients::{
        formats::mcp_servers::{self, TimeoutUnit},
        server::{ClientServer, ServerTranslator},
        variables::Variables,
    },
    document::node::{Document, Kind},
};

/// Translates a server.
pub(crate) fn server(document: &mut Document, variables: &Variables, name: &str, at: NodeId) -> ClientServer {
    let mut server = ServerTranslator::new(document, variables, at);
    for key in ["command", "args", "url", "cwd", "headers"] {
        server.texts(key, key);
    }
    // For `http`, VS Code tries Streamable HTTP and then HTTP+SSE, as is done here without a `type`.
    if let Some(at) = server.get("type")
        && server.document.text(at) != Some("http")
    {
        server.set("type", at);
    }
    env(&mut server);
    server.texts("envFile", "env_file");
    server.tool_lists(&["include"], &["exclude"]);
    server.keep("sandboxEnabled", "sandboxEnabled");
    mcp_servers::timeout(&mut server, TimeoutUnit::Unknown);
    mcp_servers::credentials(&mut server);
    server.finish_with_ours(name)
}

/// Reads the variables. VS Code removes one that is null, and here none is there unless it is named.
fn env(server: &mut ServerTranslator<'_>) {
    let Some(at) = server.get("env") else { return };
    let translated = server.translated(at);
    let kept = match server.document.kind(translated) {
        Kind::Map(entries) => {
            let is_set = |value: &NodeId| !matches!(server.document.kind(*value), Kind::Null);
            let entries = entries.iter().filter(|(_, value)| is_set(value));
            Kind::Map(entries.cloned().collect())
        }
        _ => {
            server.set("env", translated);
            return;
        }
    };
    server.set_new("env", kept, at);
}

/// Returns the setting of VS Code by which no server of a file is used.
pub(crate) fn is_off(document: &Document, root: NodeId) -> Option<(&'static str, NodeId)> {
    let off = |key: &'static str, is_off: &dyn Fn(&Kind) -> bool| {
        let at = document.get(root, key)?;
        is_off(document.kind(at)).then_some((key, at))
    };
    let is_none = |kind: &Kind| matches!(kind, Kind::String(access) if access != "all");
    off("chat.mcp.access", &is_none)
        .or_else(|| off("chat.mcp.enabled", &|kind| matches!(kind, Kind::Bool(false))))
        .or_else(|| off("chat.disableAIFeatures", &|kind| matches!(kind, Kind::Bool(true))))
}

/// Returns the default values of the inputs of a file.
pub(crate) fn inputs(document: &Document, root: NodeId) -> BTreeMap<String, Option<String>> {
    let Some(Kind::List(inputs)) = document.get(root, "inputs").map(|at| document.kind(at)) else {
        return BTreeMap::new();
    };
    let text = |input: &NodeId, key| {
        let at = document.get(*input, key)?;
        document.text(at).map(str::to_owned)
    };
    let inputs = inputs.iter();
    inputs
        .filter_map(|input| Some((text(input, "id")?, text(input, "default"))))
        .collect()
}
