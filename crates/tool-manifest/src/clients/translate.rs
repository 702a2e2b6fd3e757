use std::path::Path;

use tool_settings::NodeId;

use crate::{
    Syntax,
    clients::{
        formats::{
            claude_projects, codex, continue_dev,
            gemini::{self, GeminiRules},
            goose,
            mcp_servers::{self, TimeoutUnit},
            opencode::{self, OpenCodeRules},
            vscode,
            zed::{self, ZedRules},
        },
        server::{ClientServer, Remark},
        variables::{self, Variables},
        workspace::Surroundings,
    },
    dialects::file::OWN_KEYS,
    document::node::{Document, Kind},
};

/// The servers of a client's file, translated into our own form.
#[derive(Debug)]
pub(crate) struct Translation {
    pub(crate) servers: Vec<ClientServer>,
    /// Rules of VS Code for servers with `sandboxEnabled`.
    pub(crate) sandbox: Option<NodeId>,
    pub(crate) remarks: Vec<Remark>,
}

/// Format of a client's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
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

/// Translates the file of a client. Returns `None` for any other file.
pub(crate) fn translate(document: &mut Document, surroundings: &Surroundings) -> Option<Translation> {
    let root = document.root();
    let format = Format::detect(document, root)?;
    let mut translation = match format {
        Format::McpServers => mcp_servers_file(document, root, surroundings),
        Format::Gemini => {
            let rules = GeminiRules::read(document, root);
            each(
                document,
                &entries(document, root, "mcpServers"),
                |document, name, at| gemini::server(document, &Variables::Shell, name, at, &rules),
            )
        }
        Format::VsCode => vscode_file(document, root, surroundings),
        Format::VsCodeSettings => {
            let root = document.get(root, "mcp")?;
            vscode_file(document, root, surroundings)
        }
        Format::Codex => each(
            document,
            &entries(document, root, "mcp_servers"),
            |document, name, at| codex::server(document, &Variables::None, name, at),
        ),
        Format::Zed => {
            let rules = ZedRules::read(document, root);
            let servers = entries(document, root, "context_servers");
            each(document, &servers, |document, name, at| {
                zed::server(document, &Variables::None, name, at, &rules)
            })
        }
        Format::Goose => goose_file(document, root),
        Format::Continue => {
            let servers = named_items(document, root);
            each(document, &servers, |document, name, at| {
                continue_dev::server(document, &Variables::DoubleBraces, name, at)
            })
        }
        Format::OpenCode => {
            let rules = OpenCodeRules::read(document, root);
            let variables = variables::braces_of(&document.source.directory, surroundings);
            each(document, &entries(document, root, "mcp"), |document, name, at| {
                opencode::server(document, &variables, name, at, &rules)
            })
        }
    };
    if let Some(workspace) = surroundings.workspace(&document.source) {
        for server in &mut translation.servers {
            begin_in(document, server, &workspace);
        }
    }
    Some(translation)
}

/// Translates each of the servers.
fn each(
    document: &mut Document,
    servers: &[(String, NodeId)],
    mut server: impl FnMut(&mut Document, &str, NodeId) -> ClientServer,
) -> Translation {
    Translation {
        servers: servers
            .iter()
            .map(|(name, at)| server(document, name, *at))
            .collect(),
        sandbox: None,
        remarks: Vec::new(),
    }
}

fn entries(document: &Document, root: NodeId, key: &str) -> Vec<(String, NodeId)> {
    let servers = document.get(root, key);
    servers
        .map(|servers| document.entries(servers).to_vec())
        .unwrap_or_default()
}

/// Translates a file of the format that most clients share.
fn mcp_servers_file(document: &mut Document, root: NodeId, surroundings: &Surroundings) -> Translation {
    let unit = TimeoutUnit::of_file(&document.source);
    let workspace = surroundings.workspace(&document.source);
    let mut editor = variables::editor(workspace.as_deref());
    editor.inputs = vscode::inputs(document, root);
    let variables = Variables::Editor(editor);
    let (project, remark) = claude_projects::project(document, root, surroundings);
    let mut servers = entries(document, root, "mcpServers");
    servers.extend(entries(document, root, "amp.mcpServers"));
    let mut translation = Translation {
        remarks: remark.into_iter().collect(),
        ..each(document, &[], |_, _, _| unreachable!("there are no servers"))
    };
    if let Some(project) = &project {
        // A server of the project replaces one of the user.
        servers.retain(|(name, _)| !project.servers.iter().any(|(other, _)| other == name));
        for (name, at) in &project.servers {
            let mut server = mcp_servers::server(document, &variables, name, *at, unit);
            begin_in(document, &mut server, &project.directory);
            translation.servers.push(server);
        }
    }
    for (name, at) in &servers {
        let server = mcp_servers::server(document, &variables, name, *at, unit);
        translation.servers.push(server);
    }
    for server in &mut translation.servers {
        if project
            .iter()
            .any(|project| project.disabled.contains(&server.name))
        {
            disable(document, server);
        }
    }
    translation.sandbox = document.get(root, "sandbox");
    let known = [
        "mcpServers",
        "amp.mcpServers",
        "projects",
        "sandbox",
        "inputs",
        "$schema",
    ];
    // Files of whole applications have many other settings.
    if document.get(root, "projects").is_none() && document.get(root, "amp.mcpServers").is_none() {
        ignored(document, root, &known, &mut translation);
    }
    translation
}

fn vscode_file(document: &mut Document, root: NodeId, surroundings: &Surroundings) -> Translation {
    let workspace = surroundings.workspace(&document.source);
    let mut editor = variables::editor(workspace.as_deref());
    editor.inputs = vscode::inputs(document, root);
    let variables = Variables::Editor(editor);
    let mut translation = each(
        document,
        &entries(document, root, "servers"),
        |document, name, at| vscode::server(document, &variables, name, at),
    );
    translation.sandbox = document.get(root, "sandbox");
    ignored(
        document,
        root,
        &["servers", "inputs", "sandbox", "$schema"],
        &mut translation,
    );
    translation
}

fn goose_file(document: &mut Document, root: NodeId) -> Translation {
    let (built_in, servers): (Vec<_>, Vec<_>) = entries(document, root, "extensions")
        .into_iter()
        .partition(|(_, at)| goose::is_built_in(document, *at));
    let mut translation = each(document, &servers, goose::server);
    if let [(_, at), ..] = built_in.as_slice() {
        let names: Vec<&str> = built_in.iter().map(|(name, _)| name.as_str()).collect();
        let message = format!(
            "{} of Goose itself {} not used",
            tool_settings::suggest::list(&names),
            if names.len() == 1 { "is" } else { "are" }
        );
        translation.remarks.push(Remark::new(*at, message, ""));
    }
    translation
}

/// Returns the items of the list `mcpServers`, by their names.
fn named_items(document: &Document, root: NodeId) -> Vec<(String, NodeId)> {
    let list = document.get(root, "mcpServers").map(|at| document.kind(at));
    let Some(Kind::List(items)) = list else {
        return Vec::new();
    };
    let named = items.iter().enumerate().map(|(index, at)| {
        let name = document.get(*at, "name").or_else(|| document.get(*at, "uses"));
        let name = name.and_then(|name| document.text(name));
        (
            name.map_or_else(|| format!("server {}", index + 1), str::to_owned),
            *at,
        )
    });
    named.collect()
}

/// Warns of the other keys of a file.
fn ignored(document: &Document, root: NodeId, known: &[&str], translation: &mut Translation) {
    let entries = document.entries(root).iter();
    let others: Vec<(&str, NodeId)> = entries
        .map(|(key, at)| (key.as_str(), *at))
        .filter(|(key, _)| !known.contains(key))
        .collect();
    let keys: Vec<&str> = others.iter().map(|(key, _)| *key).collect();
    let message = match keys.as_slice() {
        [] => return,
        [key] => format!("the key `{}` is ignored", tool_settings::suggest::shown(key)),
        keys => format!("the keys {} are ignored", tool_settings::suggest::list(keys)),
    };
    translation.remarks.push(Remark::new(others[0].1, message, ""));
}

/// Starts a program in the directory of its project, as its client does.
fn begin_in(document: &mut Document, server: &mut ClientServer, directory: &Path) {
    let mut entries = document.entries(server.settings).to_vec();
    let Some((_, command)) = entries.iter().find(|(key, _)| key == "command").cloned() else {
        return;
    };
    let written = entries.iter().position(|(key, _)| key == "cwd");
    let directory = variables::escape(&directory.to_string_lossy());
    let path = match written.map(|index| document.text(entries[index].1)) {
        None => directory,
        Some(Some(path)) if !path.starts_with("${") && Path::new(path).is_relative() => {
            format!("{directory}/{}", path.trim_start_matches("./"))
        }
        Some(_) => return,
    };
    let at = written.map_or(command, |index| entries[index].1);
    let path = document.add(Kind::String(path), at);
    match written {
        Some(index) => entries[index].1 = path,
        None => entries.push(("cwd".to_owned(), path)),
    }
    server.settings = document.add(Kind::Map(entries), server.settings);
}

fn disable(document: &mut Document, server: &mut ClientServer) {
    let mut entries = document.entries(server.settings).to_vec();
    entries.retain(|(key, _)| key != "disabled");
    let disabled = document.add(Kind::Bool(true), server.settings);
    entries.push(("disabled".to_owned(), disabled));
    server.settings = document.add(Kind::Map(entries), server.settings);
}

impl Format {
    /// Recognizes a file by its keys, and by its name where they do not suffice.
    fn detect(document: &Document, root: NodeId) -> Option<Self> {
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
            let is_vscode = document.get(mcp, "servers").is_some() && document.get(mcp, "command").is_none();
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
