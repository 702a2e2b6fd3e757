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
type Rules = Vec<(String, bool, NodeId)>;

/// Lists of rules, of which each can deny a tool.
#[derive(Debug, Default)]
pub(crate) struct OpenCodeRules(Vec<Rules>);

/// Agent that OpenCode begins with.
const DEFAULT_AGENT: &str = "build";

impl OpenCodeRules {
    /// Reads the rules: the switches in `tools` and then `permission`, which replaces them in later versions; `permissions` of the
    /// latest ones; and those of the agent that the client begins with.
    pub(crate) fn read(document: &Document, root: NodeId) -> Self {
        let latest = document.get(root, "permissions");
        let latest = latest.map(|at| latest_rules(document, at));
        let name = document
            .get(root, "default_agent")
            .and_then(|at| document.text(at));
        let agent = document
            .get(root, "agent")
            .and_then(|agents| document.get(agents, name.unwrap_or(DEFAULT_AGENT)));
        let of_agent = agent.map(|agent| written_rules(document, agent));
        let lists = [Some(written_rules(document, root)), latest, of_agent];
        Self(lists.into_iter().flatten().collect())
    }

    /// Applies the rules to a server.
    fn apply(&self, server: &mut ServerTranslator<'_>, name: &str) {
        for rules in &self.0 {
            apply_one(rules, server, name);
        }
    }
}

/// Reads the rules in `tools` and `permission`.
fn written_rules(document: &Document, parent: NodeId) -> Rules {
    let mut rules = Vec::new();
    let tools = document.get(parent, "tools");
    for (pattern, at) in tools.map(|at| document.entries(at)).unwrap_or_default() {
        rules.push((
            pattern.clone(),
            matches!(document.kind(*at), Kind::Bool(true)),
            *at,
        ));
    }
    let Some(at) = document.get(parent, "permission") else {
        return rules;
    };
    match document.kind(at) {
        Kind::String(word) => rules.push(("*".to_owned(), word != "deny", at)),
        Kind::Map(entries) => {
            for (pattern, at) in entries {
                let allows = match document.kind(*at) {
                    Kind::String(word) => word != "deny",
                    // Rules over arguments, which are not read here: the tool is denied if one of them denies.
                    Kind::Map(rules) => !rules.iter().any(|(_, word)| document.text(*word) == Some("deny")),
                    _ => false,
                };
                rules.push((pattern.clone(), allows, *at));
            }
        }
        _ => {}
    }
    rules
}

fn apply_one(rules: &Rules, server: &mut ServerTranslator<'_>, name: &str) {
    let prefix = format!("{}_", sanitized(name));
    let (mut lists, mut place) = (ToolRules::default(), None);
    for (pattern, allows, at) in rules {
        // A server's own name switches all of its tools off.
        let pattern = match pattern == name && !allows {
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
        server.include_only(include, at);
    }
    // OpenCode writes `_` for other characters of the names of tools.
    let mut exclude: Vec<String> = Vec::new();
    for pattern in &lists.exclude {
        let pattern = unsanitized(pattern);
        if !exclude.contains(&pattern) {
            exclude.push(pattern);
        }
    }
    server.exclude(&exclude, at);
    if lists.is_stricter {
        let message =
            format!("exceptions to denied tools of `{name}` are not honoured: the tools stay denied");
        server.remark(at, message, "");
    }
}

/// Returns the rules of a list, each with an action, a resource and an effect. A rule that is not understood denies everything.
fn latest_rules(document: &Document, at: NodeId) -> Rules {
    let deny_all = |at| ("*".to_owned(), false, at);
    let Kind::List(items) = document.kind(at) else {
        return vec![deny_all(at)];
    };
    let text = |item: NodeId, key| document.get(item, key).and_then(|at| document.text(at));
    let rules = items.iter().filter_map(|item| {
        let (Some(action), Some(effect)) = (text(*item, "action"), text(*item, "effect")) else {
            return Some(deny_all(*item));
        };
        // Resources are arguments, which are not read here: a tool is allowed if all of them are, and denied if one is.
        let is_of_all = text(*item, "resource").is_none_or(|resource| resource == "*");
        let allows = effect != "deny";
        (is_of_all || !allows).then(|| (action.to_owned(), allows, *item))
    });
    rules.collect()
}

/// Returns a name as OpenCode writes it in the names of tools.
fn sanitized(name: &str) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.chars().map(|c| if is_kept(c) { c } else { '_' }).collect()
}

/// Returns the pattern of all names that OpenCode writes as this one. It may match more of them.
fn unsanitized(pattern: &str) -> String {
    let parts = pattern.split(['_', '*']).filter(|part| !part.is_empty());
    let is_open = |end: Option<char>| end.is_some_and(|end| "_*".contains(end));
    let (start, end) = (pattern.chars().next(), pattern.chars().next_back());
    let star = |end| if is_open(end) { "*" } else { "" };
    format!(
        "{}{}{}",
        star(start),
        parts.collect::<Vec<_>>().join("*"),
        star(end)
    )
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
    timeout(&mut server);
    mcp_servers::credentials(&mut server);
    rules.apply(&mut server, name);
    server.finish(name)
}

/// Reads `timeout`: a number of milliseconds, or in later versions a map.
fn timeout(server: &mut ServerTranslator<'_>) {
    let Some(at) = server.get("timeout") else { return };
    if !matches!(server.document.kind(at), Kind::Map(_)) {
        server.period("timeout", "start_timeout_ms", 1.0);
        return;
    }
    for (key, ours) in [("startup", "start_timeout_ms"), ("execution", "timeout_ms")] {
        if let Some(at) = server.document.get(at, key) {
            server.period_at(at, key, ours, 1.0);
        }
    }
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
