use std::path::Path;

use tool_settings::NodeId;

use crate::{
    Syntax,
    clients::translate::entries,
    dialects::file::OWN_KEYS,
    document::node::{Document, Kind},
};

/// Format of a client's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// `mcpServers`.
    McpServers,
    Gemini,
    VsCode,
    /// Settings of VS Code, with the servers below `mcp`.
    VsCodeSettings,
    Codex,
    Zed,
    Goose,
    Continue,
    OpenCode,
}

impl Format {
    /// Recognizes a file by its keys, and by its name where they do not suffice.
    pub(crate) fn detect(document: &Document, root: NodeId) -> Option<Self> {
        if !matches!(document.kind(root), Kind::Map(_)) || document.get(root, "apiVersion").is_some() {
            return None;
        }
        let kind = |key: &str| document.get(root, key).map(|at| document.kind(at));
        let has_map = |key: &str| matches!(kind(key), Some(Kind::Map(_)));
        let source = &document.source;
        let is_json = source.syntax == Syntax::Json;
        let is_ours = OWN_KEYS.iter().any(|key| document.get(root, key).is_some());
        if source.syntax == Syntax::Toml {
            return Some(Self::Codex);
        }
        if matches!(kind("mcpServers"), Some(Kind::List(_))) {
            return Some(Self::Continue);
        }
        if has_map("context_servers") && document.get(root, "servers").is_none() {
            return Some(Self::Zed);
        }
        if has_map("extensions") && !is_ours && is_goose(document, root) {
            return Some(Self::Goose);
        }
        if is_json && has_map("mcpServers") {
            if is_gemini(document, root) {
                return Some(Self::Gemini);
            }
            return (!is_ours).then_some(Self::McpServers);
        }
        if is_json && has_map("amp.mcpServers") || is_json && has_map("projects") && !is_ours {
            return Some(Self::McpServers);
        }
        if is_json && document.get(root, "servers").is_none() && has_map("mcp") {
            let mcp = document.get(root, "mcp")?;
            let is_vscode = document.get(mcp, "servers").is_some() && !is_opencode(document, root);
            return Some(if is_vscode {
                Self::VsCodeSettings
            } else {
                Self::OpenCode
            });
        }
        (is_json && !is_ours && has_map("servers") && is_vscode(document, root)).then_some(Self::VsCode)
    }
}

fn is_goose(document: &Document, root: NodeId) -> bool {
    let words = ["type", "cmd", "uri", "enabled"];
    let is_extension = |at: &NodeId| words.iter().any(|word| document.get(*at, word).is_some());
    entries(document, root, "extensions")
        .iter()
        .all(|(_, at)| is_extension(at))
}

/// Returns `true` for settings of Gemini CLI, which have keys that no other client has, or lie in its folder.
fn is_gemini(document: &Document, root: NodeId) -> bool {
    let source = &document.source;
    let file = Path::new(&source.name).file_name().and_then(|name| name.to_str());
    if file == Some("settings.json") && source.directory.ends_with(".gemini") {
        return true;
    }
    let has_below = |key: &str, below: &[&str]| {
        let parent = document.get(root, key);
        parent.is_some_and(|parent| below.iter().any(|key| document.get(parent, key).is_some()))
    };
    let of_server = ["httpUrl", "trust", "includeTools", "excludeTools"];
    let servers = entries(document, root, "mcpServers");
    has_below("mcp", &["allowed", "excluded", "serverCommand"])
        || has_below("security", &["auth"])
        || ["allowMCPServers", "excludeMCPServers", "selectedAuthType"]
            .iter()
            .any(|key| document.get(root, key).is_some())
        || servers
            .iter()
            .any(|(_, at)| of_server.iter().any(|key| document.get(*at, key).is_some()))
}

/// Returns `true` for a file that names OpenCode.
fn is_opencode(document: &Document, root: NodeId) -> bool {
    let schema = document.get(root, "$schema").and_then(|at| document.text(at));
    let file = Path::new(&document.source.name).file_stem();
    file.is_some_and(|stem| stem == "opencode") || schema.is_some_and(|schema| schema.contains("opencode"))
}

/// Returns `true` for a file of VS Code, of which the key `servers` is ours as well.
fn is_vscode(document: &Document, root: NodeId) -> bool {
    let has = |key: &str| document.get(root, key).is_some();
    let of_server = ["envFile", "sandboxEnabled", "dev", "gallery"];
    let servers = entries(document, root, "servers");
    has("inputs")
        || has("sandbox")
        || document.source.name.ends_with("mcp.json")
        || servers
            .iter()
            .any(|(_, at)| of_server.iter().any(|key| document.get(*at, key).is_some()))
}
