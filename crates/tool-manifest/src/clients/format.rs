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
    /// Recognizes a file by its name or its keys. A file with keys of ours is ours.
    pub(crate) fn detect(document: &Document, root: NodeId) -> Option<Self> {
        if !matches!(document.kind(root), Kind::Map(_)) || document.get(root, "apiVersion").is_some() {
            return None;
        }
        if document.source.syntax == Syntax::Toml {
            return Some(Self::Codex);
        }
        let named = Self::by_name(document);
        // These two have other settings under names that are ours.
        if matches!(named, Some(Self::Gemini | Self::OpenCode)) {
            return named;
        }
        if is_ours(document, root) {
            return None;
        }
        named.or_else(|| Self::by_keys(document, root))
    }

    /// Recognizes a file whose name only one client uses.
    fn by_name(document: &Document) -> Option<Self> {
        let path = Path::new(&document.source.name);
        match path.file_name()?.to_str()? {
            "settings.json" if path.parent()?.ends_with(".gemini") => Some(Self::Gemini),
            "opencode.json" | "opencode.jsonc" => Some(Self::OpenCode),
            ".claude.json"
            | ".mcp.json"
            | "claude_desktop_config.json"
            | "cline_mcp_settings.json"
            | "mcp-config.json"
            | "mcp_config.json"
            | "mcp_settings.json" => Some(Self::McpServers),
            _ => None,
        }
    }

    fn by_keys(document: &Document, root: NodeId) -> Option<Self> {
        let kind = |key: &str| document.get(root, key).map(|at| document.kind(at));
        let has_map = |key: &str| matches!(kind(key), Some(Kind::Map(_)));
        if matches!(kind("mcpServers"), Some(Kind::List(_))) {
            return Some(Self::Continue);
        }
        if has_map("context_servers") && document.get(root, "servers").is_none() {
            return Some(Self::Zed);
        }
        if has_map("extensions") && is_goose(document, root) {
            return Some(Self::Goose);
        }
        if document.source.syntax != Syntax::Json {
            return None;
        }
        if has_map("mcpServers") {
            return Some(match is_gemini(document, root) {
                true => Self::Gemini,
                false => Self::McpServers,
            });
        }
        if has_map("amp.mcpServers") || is_claude(document, root) {
            return Some(Self::McpServers);
        }
        if has_map("mcp") && is_opencode(document, root) {
            return Some(Self::OpenCode);
        }
        let mcp = document.get(root, "mcp");
        if mcp.is_some_and(|mcp| document.get(mcp, "servers").is_some()) {
            return Some(Self::VsCodeSettings);
        }
        (has_map("servers") && is_vscode(document, root)).then_some(Self::VsCode)
    }
}

/// Returns `true` for a file with keys that only our own files have. Other clients have other `tools`, and Zed has another `search`.
fn is_ours(document: &Document, root: NodeId) -> bool {
    let of_tool = ["executor", "description", "mode", "input_schema", "inputSchema"];
    let has_tools = || {
        let tools = entries(document, root, "tools");
        let is_tool = |at: &NodeId| of_tool.iter().any(|key| document.get(*at, key).is_some());
        tools.is_empty() || tools.iter().any(|(_, at)| is_tool(at))
    };
    let is_zed = document.get(root, "context_servers").is_some();
    OWN_KEYS.iter().any(|key| match document.get(root, key) {
        None => false,
        Some(_) if *key == "tools" => has_tools(),
        Some(_) => !(is_zed && *key == "search"),
    })
}

/// Returns `true` for a file of Claude Code without servers of the user.
fn is_claude(document: &Document, root: NodeId) -> bool {
    let projects = entries(document, root, "projects");
    projects
        .iter()
        .any(|(_, at)| document.get(*at, "mcpServers").is_some())
}

fn is_goose(document: &Document, root: NodeId) -> bool {
    let words = ["type", "cmd", "uri", "enabled"];
    let is_extension = |at: &NodeId| words.iter().any(|word| document.get(*at, word).is_some());
    entries(document, root, "extensions")
        .iter()
        .all(|(_, at)| is_extension(at))
}

/// Returns `true` for settings of Gemini CLI, which have keys that no other client has, or its name.
fn is_gemini(document: &Document, root: NodeId) -> bool {
    let has_below = |key: &str, below: &[&str]| {
        let parent = document.get(root, key);
        parent.is_some_and(|parent| below.iter().any(|key| document.get(parent, key).is_some()))
    };
    let of_server = ["httpUrl", "trust", "includeTools", "excludeTools"];
    let servers = entries(document, root, "mcpServers");
    let file = Path::new(&document.source.name).file_name();
    let is_named = file.is_some_and(|file| file.to_string_lossy().contains("gemini"));
    is_named
        || has_below("mcp", &["allowed", "excluded", "serverCommand"])
        || has_below("security", &["auth"])
        || ["allowMCPServers", "excludeMCPServers", "selectedAuthType"]
            .iter()
            .any(|key| document.get(root, key).is_some())
        || servers
            .iter()
            .any(|(_, at)| of_server.iter().any(|key| document.get(*at, key).is_some()))
}

/// Returns `true` for a file that names OpenCode, or whose servers are of its types.
fn is_opencode(document: &Document, root: NodeId) -> bool {
    let schema = document.get(root, "$schema").and_then(|at| document.text(at));
    let servers = entries(document, root, "mcp");
    let is_server = |at: NodeId| {
        let kind = document.get(at, "type").and_then(|kind| document.text(kind));
        matches!(kind, Some("local" | "remote"))
    };
    schema.is_some_and(|schema| schema.contains("opencode"))
        || !servers.is_empty() && servers.iter().all(|(_, at)| is_server(*at))
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
