//! `settings.json` of Zed: `context_servers`.
//!
//! Source: zed.dev/docs/ai/mcp, /docs/ai/agent-settings and /docs/ai/tool-permissions.

use tool_settings::NodeId;

use crate::{
    clients::{
        formats::mcp_servers,
        server::{ClientServer, ServerTranslator},
        variables::Variables,
    },
    document::node::{Document, Kind},
};

/// Profile of an agent that Zed begins with.
const DEFAULT_PROFILE: &str = "write";
/// Profiles of Zed that enable no server by themselves.
const WITHOUT_SERVERS: [&str; 2] = ["ask", "minimal"];

/// Settings of the agent that restrict servers.
#[derive(Debug, Default)]
pub(crate) struct ZedRules {
    /// The profile that is in use, if the file describes it.
    profile: Option<NodeId>,
    /// `true` if the profile enables all servers.
    enables_all: bool,
    /// `agent.tool_permissions`.
    permissions: Option<NodeId>,
    /// Place of the agent's settings.
    at: Option<NodeId>,
    /// `disable_ai`, if it is `true`, or `agent.enabled`, if it is `false`: no server is used.
    disabled: Option<NodeId>,
}

impl ZedRules {
    pub(crate) fn read(document: &Document, root: NodeId) -> Self {
        let disabled = document.get(root, "disable_ai");
        let disabled = disabled.filter(|at| matches!(document.kind(*at), Kind::Bool(true)));
        let Some(agent) = document.get(root, "agent") else {
            return Self {
                enables_all: true,
                disabled,
                ..Self::default()
            };
        };
        let name = document
            .get(agent, "default_profile")
            .and_then(|at| document.text(at))
            .unwrap_or(DEFAULT_PROFILE);
        let profile = document
            .get(agent, "profiles")
            .and_then(|profiles| document.get(profiles, name));
        let written = profile.and_then(|profile| document.get(profile, "enable_all_context_servers"));
        let enables_all = match written.map(|at| document.kind(at)) {
            Some(Kind::Bool(written)) => *written,
            // A profile of the user enables none, and the one that Zed begins with enables all.
            _ => name == DEFAULT_PROFILE || profile.is_none() && !WITHOUT_SERVERS.contains(&name),
        };
        let enabled = document.get(agent, "enabled");
        let off = enabled.filter(|at| matches!(document.kind(*at), Kind::Bool(false)));
        Self {
            profile,
            enables_all,
            permissions: document.get(agent, "tool_permissions"),
            at: Some(agent),
            disabled: disabled.or(off),
        }
    }

    /// Applies the rules to a server.
    fn apply(&self, server: &mut ServerTranslator<'_>, name: &str) {
        if let Some(at) = self.disabled {
            server.replace("disabled", Kind::Bool(true), at);
        }
        let document = &*server.document;
        let preset = self.profile.and_then(|profile| {
            let servers = document.get(profile, "context_servers")?;
            document.get(document.get(servers, name)?, "tools")
        });
        let (mut allowed, mut denied) = (Vec::new(), Vec::new());
        for (tool, at) in preset.map(|tools| document.entries(tools)).unwrap_or_default() {
            match document.kind(*at) {
                Kind::Bool(true) => allowed.push(tool.clone()),
                _ => denied.push(tool.clone()),
            }
        }
        let mut include = (!self.enables_all).then_some(allowed);
        if let Some(permissions) = self.permissions {
            let default = document
                .get(permissions, "default")
                .and_then(|at| document.text(at));
            let mut exceptions = Vec::new();
            let tools = document.get(permissions, "tools");
            for (key, rule) in tools.map(|tools| document.entries(tools)).unwrap_or_default() {
                let tool = key
                    .strip_prefix("mcp:")
                    .and_then(|rest| rest.strip_prefix(name)?.strip_prefix(':'));
                let Some(tool) = tool else { continue };
                // Patterns of denials are over texts that the gateway does not see: the tool is denied as a whole.
                let word = document.get(*rule, "default").and_then(|at| document.text(at));
                let patterns = document.get(*rule, "always_deny").map(|at| document.kind(at));
                let has_patterns = matches!(patterns, Some(Kind::List(items)) if !items.is_empty());
                match word {
                    Some("allow" | "confirm") if !has_patterns => exceptions.push(tool.to_owned()),
                    None if !has_patterns => {}
                    _ => denied.push(tool.to_owned()),
                }
            }
            if default == Some("deny") {
                include = Some(match include {
                    Some(include) => include
                        .into_iter()
                        .filter(|tool| exceptions.contains(tool))
                        .collect(),
                    None => exceptions,
                });
            }
        }
        let Some(at) = self.at else { return };
        if let Some(include) = include {
            let items: Vec<NodeId> = include
                .into_iter()
                .map(|tool| server.document.add(Kind::String(tool), at))
                .collect();
            server.set_new("include", Kind::List(items), at);
            server.exact_names();
        }
        server.exclude(&denied, at);
    }
}

/// Translates a server.
pub(crate) fn server(
    document: &mut Document,
    variables: &Variables,
    name: &str,
    at: NodeId,
    rules: &ZedRules,
) -> ClientServer {
    let mut server = ServerTranslator::new(document, variables, at);
    command(&mut server);
    for key in ["args", "env", "url", "headers"] {
        server.texts(key, key);
    }
    server.enabled();
    server.period("timeout", "timeout_ms", 1000.0);
    mcp_servers::credentials(&mut server);
    let source = server.get("source");
    let is_extension = source.is_some_and(|at| server.document.text(at) == Some("extension"));
    if let Some(at) = server.get("settings").or(source.filter(|_| is_extension))
        && !server.has("command")
        && !server.has("url")
    {
        server.refuse(at, "an extension of Zed decides which program it is", "");
    }
    if let Some(at) = server.get("remote")
        && matches!(server.document.kind(at), Kind::Bool(true))
    {
        server.refuse(at, "`remote` starts it on another machine", "");
    }
    rules.apply(&mut server, name);
    server.finish(name)
}

/// Reads the command: a text, or in earlier versions a map with `path`, `args` and `env`.
fn command(server: &mut ServerTranslator<'_>) {
    let Some(at) = server.get("command") else { return };
    if !matches!(server.document.kind(at), Kind::Map(_)) {
        server.texts("command", "command");
        return;
    }
    for (key, ours) in [("path", "command"), ("args", "args"), ("env", "env")] {
        if let Some(value) = server.document.get(at, key) {
            let value = server.translated(value);
            server.set(ours, value);
        }
    }
}
