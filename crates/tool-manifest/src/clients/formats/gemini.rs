//! `settings.json` of Gemini CLI.
//!
//! Source: geminicli.com/docs/tools/mcp-server and /docs/cli/configuration.

use tool_settings::NodeId;

use crate::{
    clients::{
        formats::mcp_servers::{self, TimeoutUnit},
        server::{ClientServer, ServerTranslator},
        variables::Variables,
    },
    document::node::{Document, Kind},
};

/// Settings of a file that restrict its servers.
#[derive(Debug, Default)]
pub(crate) struct GeminiRules {
    /// Names of the only servers that are used, and the place of the list.
    allowed: Option<(NodeId, Vec<String>)>,
    /// Names of servers that are not used, and the place of the list.
    excluded: Option<(NodeId, Vec<String>)>,
    /// Names of tools that are not offered, and the place of the list.
    tools: Option<(NodeId, Vec<String>)>,
}

impl GeminiRules {
    /// Reads the rules of a file: `mcp` and `tools`, and the keys of earlier versions.
    pub(crate) fn read(document: &Document, root: NodeId) -> Self {
        let list = |path: [&str; 2], earlier: &str| {
            let nested = document
                .get(root, path[0])
                .and_then(|parent| document.get(parent, path[1]));
            let at = nested.or_else(|| document.get(root, earlier))?;
            Some((at, texts(document, at)))
        };
        Self {
            allowed: list(["mcp", "allowed"], "allowMCPServers"),
            excluded: list(["mcp", "excluded"], "excludeMCPServers"),
            tools: list(["tools", "exclude"], "excludeTools"),
        }
    }

    /// Returns the place of the rule by which a server is not used.
    fn excludes(&self, name: &str) -> Option<NodeId> {
        // The client compares them so.
        let normal = |name: &str| name.trim().to_lowercase();
        let is_named =
            |names: &Vec<String>, name: &str| names.iter().any(|known| normal(known) == normal(name));
        match (&self.allowed, &self.excluded) {
            (Some((at, names)), _) if !is_named(names, name) => Some(*at),
            // All of them, in the second list alone.
            (_, Some((at, names))) if is_named(names, name) || is_named(names, "*") => Some(*at),
            _ => None,
        }
    }

    /// Returns the tools of a server that are not offered.
    fn tools_of(&self, server: &str) -> Option<(NodeId, Vec<String>)> {
        let (at, tools) = self.tools.as_ref()?;
        let sanitized = sanitized(server);
        let prefixes = [
            format!("{server}__"),
            format!("{sanitized}__"),
            format!("mcp_{server}_"),
            format!("mcp_{sanitized}_"),
        ];
        let names = tools.iter().map(|tool| {
            let tool = tool.split('(').next().unwrap_or_default();
            // The tools of all servers.
            if tool == "mcp_*" {
                return "*".to_owned();
            }
            let qualified = prefixes
                .iter()
                .find_map(|prefix| tool.strip_prefix(prefix.as_str()));
            qualified.unwrap_or(tool).to_owned()
        });
        Some((*at, names.collect()))
    }
}

/// Returns a name as Gemini CLI writes it in the names of tools.
fn sanitized(name: &str) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
    name.chars().map(|c| if is_kept(c) { c } else { '_' }).collect()
}

fn texts(document: &Document, at: NodeId) -> Vec<String> {
    match document.kind(at) {
        Kind::List(items) => items
            .iter()
            .filter_map(|item| document.text(*item).map(str::to_owned))
            .collect(),
        _ => Vec::new(),
    }
}

/// Translates a server.
pub(crate) fn server(
    document: &mut Document,
    variables: &Variables,
    name: &str,
    at: NodeId,
    rules: &GeminiRules,
) -> ClientServer {
    let mut server = ServerTranslator::new(document, variables, at);
    for key in ["command", "args", "cwd", "env", "headers"] {
        server.texts(key, key);
    }
    // `httpUrl` goes first in the client. What `url` is differs among its versions: both transports are tried.
    let (http, url) = (server.get("httpUrl"), server.get("url"));
    if let Some(at) = http.or(url) {
        let translated = server.translated(at);
        server.set("url", translated);
    }
    if let Some(at) = http {
        server.set_new("type", Kind::String("http".to_owned()), at);
    }
    server.keep("type", "type");
    // A URL goes first in the client.
    if let Some(at) = server.get("command")
        && server.has("url")
    {
        server.unset("command");
        server.remark(at, "`command` is ignored: the server has a URL", "");
    }
    server.refuse_key("tcp", "is a transport that is not known here", "");
    server.tool_lists(&["includeTools", "include"], &["excludeTools", "exclude"]);
    if server.get("includeTools").is_some() {
        server.exact_names();
    }
    if let Some((at, tools)) = rules.tools_of(name) {
        server.exclude(&tools, at);
    }
    if let Some(at) = rules.excludes(name) {
        server.replace("disabled", Kind::Bool(true), at);
        server.get("disabled");
    }
    mcp_servers::timeout(&mut server, TimeoutUnit::Milliseconds);
    mcp_servers::credentials(&mut server);
    server.finish_with_ours(name)
}
