//! `opencode.json` of OpenCode: `mcp`, and the rules in `tools` and `permission`.
//!
//! Source: opencode.ai/docs/mcp-servers, /docs/tools, /docs/permissions and /docs/config.

use tool_settings::NodeId;

use crate::{
    clients::{
        formats::mcp_servers,
        server::{ClientServer, ServerTranslator},
        tool_rules::ToolRules,
        variables::Variables,
    },
    document::node::{Document, Kind},
};

/// Rules over the tools of all servers, in their order: a pattern, `true` if it allows, and its place.
#[derive(Debug, Default)]
pub(crate) struct OpenCodeRules(Vec<(String, bool, NodeId)>);

impl OpenCodeRules {
    /// Reads the rules: the switches in `tools`, then `permission`, which replaces them in later versions.
    pub(crate) fn read(document: &Document, root: NodeId) -> Self {
        let mut rules = Vec::new();
        let tools = document.get(root, "tools");
        for (pattern, at) in tools.map(|at| document.entries(at)).unwrap_or_default() {
            rules.push((
                pattern.clone(),
                matches!(document.kind(*at), Kind::Bool(true)),
                *at,
            ));
        }
        let Some(at) = document.get(root, "permission") else {
            return Self(rules);
        };
        match document.kind(at) {
            Kind::String(word) => rules.push(("*".to_owned(), word != "deny", at)),
            Kind::Map(entries) => {
                for (pattern, at) in entries {
                    let allows = match document.kind(*at) {
                        Kind::String(word) => word != "deny",
                        // Rules over arguments, which are not read here: the tool is denied if one of them denies.
                        Kind::Map(rules) => {
                            !rules.iter().any(|(_, word)| document.text(*word) == Some("deny"))
                        }
                        _ => false,
                    };
                    rules.push((pattern.clone(), allows, *at));
                }
            }
            _ => {}
        }
        Self(rules)
    }

    /// Applies the rules to a server.
    fn apply(&self, server: &mut ServerTranslator<'_>, name: &str) {
        let prefix = format!("{}_", sanitized(name));
        let (mut lists, mut place) = (ToolRules::default(), None);
        for (pattern, allows, at) in &self.0 {
            // A server's own name switches all of its tools.
            let pattern = match pattern == name {
                true => &format!("{prefix}*"),
                false => pattern,
            };
            let before = (lists.include.clone(), lists.exclude.len());
            lists.add(pattern, &prefix, *allows);
            if before != (lists.include.clone(), lists.exclude.len()) {
                place = Some(*at);
            }
        }
        let Some(at) = place else { return };
        if let Some(include) = &lists.include {
            let items: Vec<NodeId> = include
                .iter()
                .map(|tool| server.document.add(Kind::String(tool.clone()), at))
                .collect();
            server.set_new("include", Kind::List(items), at);
        }
        server.exclude(&lists.exclude, at);
        if lists.is_stricter {
            let message =
                format!("exceptions to denied tools of `{name}` are not honoured: the tools stay denied");
            server.remark(at, message, "");
        }
    }
}

/// Returns a name as OpenCode writes it in the names of tools.
fn sanitized(name: &str) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.chars().map(|c| if is_kept(c) { c } else { '_' }).collect()
}

/// Returns the servers of a file: the entries of `mcp`, or of `mcp.servers` in later versions.
pub(crate) fn servers(document: &Document, root: NodeId) -> Vec<(String, NodeId)> {
    let Some(mcp) = document.get(root, "mcp") else {
        return Vec::new();
    };
    // A server of this name has a type.
    let nested = document
        .get(mcp, "servers")
        .filter(|at| document.get(*at, "type").is_none());
    document.entries(nested.unwrap_or(mcp)).to_vec()
}

/// Translates a server.
pub(crate) fn server(
    document: &mut Document,
    variables: &Variables,
    name: &str,
    at: NodeId,
    rules: &OpenCodeRules,
) -> ClientServer {
    let mut server = ServerTranslator::new(document, variables, at);
    command(&mut server);
    server.texts("environment", "env");
    for key in ["url", "headers", "cwd"] {
        server.texts(key, key);
    }
    // For `remote`, OpenCode tries Streamable HTTP and then HTTP+SSE, as is done here without a `type`.
    if let Some(at) = server.get("type")
        && server.document.text(at) != Some("remote")
    {
        server.set("type", at);
    }
    server.enabled();
    server.period("timeout", "start_timeout_ms", 1.0);
    mcp_servers::credentials(&mut server);
    rules.apply(&mut server, name);
    server.finish(name)
}

/// Reads the command: a list of the program and its arguments.
fn command(server: &mut ServerTranslator<'_>) {
    let Some(at) = server.get("command") else { return };
    let translated = server.translated(at);
    match server.document.kind(translated).clone() {
        Kind::List(items) => {
            let mut items = items.into_iter();
            match items.next() {
                Some(program) => server.set("command", program),
                None => server.refuse(at, "`command` is empty", "write the program and its arguments"),
            }
            server.set_new("args", Kind::List(items.collect()), at);
        }
        _ => server.set("command", translated),
    }
}
