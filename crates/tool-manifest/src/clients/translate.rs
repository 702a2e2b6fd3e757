use tool_settings::NodeId;

use crate::{
    clients::{
        format::Format,
        formats::{
            claude_projects, codex, continue_dev,
            gemini::{self, GeminiRules},
            goose,
            mcp_servers::{self, SharedClient},
            opencode::{self, OpenCodeRules},
            vscode,
            zed::{self, ZedRules},
        },
        sandbox::PathContext,
        server::{ClientServer, Remark},
        variables::{self, Variables},
        workspace::Surroundings,
    },
    document::node::{Document, Kind},
};

/// The servers of a client's file, translated into our own form.
#[derive(Debug, Default)]
pub(crate) struct Translation {
    pub(crate) servers: Vec<ClientServer>,
    /// Rules of VS Code for servers with `sandboxEnabled`.
    pub(crate) sandbox: Option<NodeId>,
    pub(crate) remarks: Vec<Remark>,
}

impl Translation {
    /// Switches all servers off, because of this setting of the client.
    fn disable_all(&mut self, document: &mut Document, key: &str, at: NodeId) {
        for server in &mut self.servers {
            server.set(document, "disabled", Kind::Bool(true), at);
        }
        let message = format!("`{key}` switches all servers of this file off");
        self.remarks.push(Remark::new(at, message, ""));
    }
}

/// Returns `true` for the file of a client.
pub(crate) fn is_of_client(document: &Document) -> bool {
    Format::detect(document, document.root()).is_some()
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
            let servers = document.get(root, "mcp")?;
            let mut translation = vscode_file(document, servers, surroundings);
            if let Some((key, at)) = vscode::is_off(document, root) {
                translation.disable_all(document, key, at);
            }
            translation
        }
        Format::Codex => codex_file(document, root),
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
            let options = document.get(root, "requestOptions");
            each(document, &servers, |document, name, at| {
                continue_dev::server(document, &Variables::DoubleBraces, name, at, options)
            })
        }
        Format::OpenCode => {
            let rules = OpenCodeRules::read(document, root);
            let variables = variables::braces_of(&document.source.directory, surroundings);
            let servers = opencode::servers(document, root);
            each(document, &servers, |document, name, at| {
                opencode::server(document, &variables, name, at, &rules)
            })
        }
    };
    let workspace = surroundings.workspace(&document.source);
    let directory = surroundings.absolute(&document.source.directory);
    let paths = PathContext {
        variables: Variables::Editor(variables::editor(workspace.as_deref())),
        directory: workspace.as_deref().unwrap_or(&directory),
        surroundings,
    };
    for server in &mut translation.servers {
        if let Some(workspace) = &workspace {
            server.begin_in(document, workspace);
        }
        server.make_paths_absolute(document, paths.directory);
        server.give_sandbox(document, translation.sandbox, &paths);
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
        ..Translation::default()
    }
}

pub(crate) fn entries(document: &Document, root: NodeId, key: &str) -> Vec<(String, NodeId)> {
    let servers = document.get(root, key);
    servers
        .map(|servers| document.entries(servers).to_vec())
        .unwrap_or_default()
}

/// Translates a file of the format that most clients share.
fn mcp_servers_file(document: &mut Document, root: NodeId, surroundings: &Surroundings) -> Translation {
    let client = SharedClient::of_file(&document.source);
    let workspace = surroundings.workspace(&document.source);
    let mut editor = variables::editor(workspace.as_deref());
    editor.inputs = vscode::inputs(document, root);
    editor.is_prefixed = matches!(client, SharedClient::Cline | SharedClient::Roo);
    editor.has_files = client == SharedClient::Windsurf;
    let variables = Variables::Editor(editor);
    let (project, remark) = claude_projects::project(document, root, surroundings);
    let mut servers = entries(document, root, "mcpServers");
    servers.extend(entries(document, root, "amp.mcpServers"));
    servers.extend(entries(document, root, "servers"));
    let mut translation = Translation {
        remarks: remark.into_iter().collect(),
        ..Translation::default()
    };
    if let Some(project) = &project {
        // A server of the project replaces one of the user.
        servers.retain(|(name, _)| !project.servers.iter().any(|(other, _)| other == name));
        for (name, at) in &project.servers {
            let mut server = mcp_servers::server(document, &variables, name, *at, client);
            server.begin_in(document, &project.directory);
            translation.servers.push(server);
        }
    }
    for (name, at) in &servers {
        let server = mcp_servers::server(document, &variables, name, *at, client);
        translation.servers.push(server);
    }
    for server in &mut translation.servers {
        if project
            .iter()
            .any(|project| project.disabled.contains(&server.name))
        {
            server.set(document, "disabled", Kind::Bool(true), server.settings);
        }
    }
    translation.sandbox = document.get(root, "sandbox");
    let known = [
        "mcpServers",
        "amp.mcpServers",
        "servers",
        "projects",
        "sandbox",
        "inputs",
        "$schema",
    ];
    // Files of whole applications have many other settings.
    let is_application = document.source.name.ends_with(".claude.json")
        || ["projects", "amp.mcpServers"]
            .iter()
            .any(|key| document.get(root, key).is_some());
    if !is_application {
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

fn codex_file(document: &mut Document, root: NodeId) -> Translation {
    let servers = entries(document, root, "mcp_servers");
    let mut translation = each(document, &servers, |document, name, at| {
        codex::server(document, &Variables::None, name, at)
    });
    if document.get(root, "mcp_servers").is_none() {
        let message = "there is no table `mcp_servers`: TOML is read as a file of Codex";
        let hint = "write a configuration of your own in YAML or JSON";
        translation.remarks.push(Remark::new(root, message, hint));
    }
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
