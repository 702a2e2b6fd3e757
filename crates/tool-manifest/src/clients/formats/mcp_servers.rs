//! The format that most clients share: `mcpServers`, with `command` or `url`.
//!
//! Sources: Claude Code (docs.claude.com/en/docs/claude-code/mcp), Cursor (docs.cursor.com/context/mcp), Windsurf
//! (docs.windsurf.com/windsurf/cascade/mcp), Cline (docs.cline.bot/mcp), Roo Code (docs.roocode.com/features/mcp), Kiro
//! (kiro.dev/docs/mcp), Copilot CLI (docs.github.com, "Adding MCP servers for GitHub Copilot CLI").

use std::path::Path;

use tool_settings::NodeId;

use crate::{
    clients::{
        server::{ClientServer, ServerTranslator},
        variables::{Variables, bare_variable},
    },
    document::{
        node::{Document, Kind},
        source::SourceFile,
    },
};

/// Client of a file, by the file's name and place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SharedClient {
    /// Claude Code and Claude Desktop.
    Claude,
    Cline,
    /// Copilot CLI.
    Copilot,
    Kiro,
    Roo,
    Windsurf,
    /// Any other, or not known.
    Other,
}

/// Unit of `timeout`, which differs among the clients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum TimeoutUnit {
    Milliseconds,
    Seconds,
    Unknown,
}

impl SharedClient {
    /// Returns the client that a file belongs to.
    pub(crate) fn of_file(source: &SourceFile) -> Self {
        let path = Path::new(&source.name);
        let file = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let folders = source.directory.to_string_lossy();
        match file {
            "cline_mcp_settings.json" => Self::Cline,
            "mcp_config.json" => Self::Windsurf,
            "mcp_settings.json" => Self::Roo,
            "mcp.json" if folders.ends_with(".roo") => Self::Roo,
            "mcp.json" if folders.ends_with(".github") => Self::Copilot,
            "mcp-config.json" => Self::Copilot,
            "mcp.json" if folders.contains(".kiro") => Self::Kiro,
            ".mcp.json" | ".claude.json" | "claude_desktop_config.json" => Self::Claude,
            _ => Self::Other,
        }
    }

    fn timeout_unit(self) -> TimeoutUnit {
        match self {
            Self::Cline | Self::Roo => TimeoutUnit::Seconds,
            Self::Claude | Self::Copilot | Self::Kiro => TimeoutUnit::Milliseconds,
            Self::Windsurf | Self::Other => TimeoutUnit::Unknown,
        }
    }
}

/// Translates a server.
pub(crate) fn server(
    document: &mut Document,
    variables: &Variables,
    name: &str,
    at: NodeId,
    client: SharedClient,
) -> ClientServer {
    let at = without_transport(document, at);
    let mut server = ServerTranslator::new(document, variables, at);
    // Copilot has variables in `env` and `headers` alone.
    if client == SharedClient::Copilot {
        server.variables = &Variables::None;
    }
    for key in ["command", "args"] {
        server.texts(key, key);
    }
    for key in ["url", "serverUrl", "httpUrl"] {
        server.texts(key, "url");
    }
    for (key, ours) in [("cwd", "cwd"), ("envFile", "env_file")] {
        server.texts(key, ours);
    }
    if client == SharedClient::Copilot {
        server.variables = &Variables::Shell;
    }
    for key in ["env", "headers"] {
        bare_variables(&mut server, key);
        server.texts(key, key);
    }
    copilot_tools(&mut server);
    server.tool_lists(
        &["include", "includeTools", "enabledTools", "allowedTools"],
        &["exclude", "excludeTools", "disabledTools"],
    );
    server.enabled();
    timeout(&mut server, client.timeout_unit());
    credentials(&mut server);
    server.finish_with_ours(name)
}

/// Returns a server with the keys of its `transport`, a map in later versions of Cline, beside the others.
fn without_transport(document: &mut Document, at: NodeId) -> NodeId {
    let transport = document.get(at, "transport");
    let Some(transport) = transport.filter(|at| matches!(document.kind(*at), Kind::Map(_))) else {
        return at;
    };
    let mut entries = document.entries(transport).to_vec();
    let others = document.entries(at).iter();
    entries.extend(others.filter(|(key, _)| key != "transport").cloned());
    document.add(Kind::Map(entries), at)
}

/// Refuses a server whose credentials come from something that is not done here.
pub(crate) fn credentials(server: &mut ServerTranslator<'_>) {
    let hint = "give it a token by `headers`";
    server.refuse_key(
        "headersHelper",
        "is a program that makes headers, which is not run here",
        hint,
    );
    let provider = server.get("authProviderType");
    // What Gemini CLI does without the key.
    let is_usual = provider.is_some_and(|at| server.document.text(at) == Some("dynamic_discovery"));
    let of_gemini = (!is_usual).then_some("authProviderType");
    let keys = [
        "oauth",
        "auth",
        "oauthClient",
        "oauthClientId",
        "oauthScopes",
        "oauthGrantType",
        "oidc",
    ];
    for key in keys.into_iter().chain(of_gemini) {
        server.refuse_key(
            key,
            "asks for OAuth, which the gateway does not do for servers",
            hint,
        );
    }
}

/// Reads the `tools` of Copilot, which are the only tools to offer.
fn copilot_tools(server: &mut ServerTranslator<'_>) {
    let Some(at) = server.get("tools") else { return };
    match server.document.kind(at) {
        Kind::List(_) => server.set("include", at),
        Kind::String(text) if text == "*" => {}
        _ => server.refuse(
            at,
            "`tools` is no list of tools",
            "write a list of names, or `[\"*\"]`",
        ),
    }
}

/// Reads `timeout`, the time limit of one request.
pub(crate) fn timeout(server: &mut ServerTranslator<'_>, unit: TimeoutUnit) {
    match unit {
        TimeoutUnit::Milliseconds => server.period("timeout", "timeout_ms", 1.0),
        TimeoutUnit::Seconds => server.period("timeout", "timeout_ms", 1000.0),
        TimeoutUnit::Unknown => {
            if let Some(at) = server.get("timeout") {
                let message =
                    "`timeout` is ignored: clients differ on its unit, and this file's client is not known";
                server.remark(at, message, "write `timeout_ms`");
            }
        }
    }
}

/// Warns of `$NAME` in variables and headers, which only some clients replace.
fn bare_variables(server: &mut ServerTranslator<'_>, key: &'static str) {
    if !matches!(server.variables, Variables::Editor(_)) {
        return;
    }
    let Some(map) = server.get(key) else { return };
    let values: Vec<NodeId> = server
        .document
        .entries(map)
        .iter()
        .map(|(_, value)| *value)
        .collect();
    for at in values {
        let name = server
            .document
            .text(at)
            .and_then(bare_variable)
            .map(str::to_owned);
        if let Some(name) = name {
            let message = format!("`${name}` is sent as it stands");
            server.remark(
                at,
                message,
                &format!("write `${{{name}}}` for the value of the variable"),
            );
        }
    }
}
