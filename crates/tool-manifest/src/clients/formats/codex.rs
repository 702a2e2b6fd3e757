//! `config.toml` of Codex: `[mcp_servers.NAME]`.
//!
//! Source: developers.openai.com/codex/mcp and /codex/config-reference.

use tool_settings::NodeId;

use crate::{
    clients::{
        server::{ClientServer, ServerTranslator},
        variables::{Variables, escape, is_variable},
    },
    document::node::{Document, Kind},
};

/// Translates a server.
pub(crate) fn server(document: &mut Document, variables: &Variables, name: &str, at: NodeId) -> ClientServer {
    let mut server = ServerTranslator::new(document, variables, at);
    for key in ["command", "args", "url", "cwd"] {
        server.texts(key, key);
    }
    // Codex speaks Streamable HTTP alone.
    if let Some(at) = server.get("url") {
        server.set_new("type", Kind::String("http".to_owned()), at);
    }
    env(&mut server);
    headers(&mut server);
    server.tool_lists(&["enabled_tools"], &["disabled_tools"]);
    server.exact_names();
    let reason = "keeps tools from some uses, which are not told apart here";
    server.refuse_key("omit_tools_from", reason, "use `disabled_tools`");
    server.enabled();
    server.keep("required", "required");
    server.period("startup_timeout_sec", "start_timeout_ms", 1000.0);
    server.period("startup_timeout_ms", "start_timeout_ms", 1.0);
    server.period("tool_timeout_sec", "timeout_ms", 1000.0);
    credentials(&mut server);
    environment(&mut server);
    approvals(&mut server);
    for key in ["supports_parallel_tool_calls", "name", "description"] {
        server.get(key);
    }
    server.finish(name)
}

/// Refuses a server whose credentials come from something that is not done here. A token goes first in Codex.
fn credentials(server: &mut ServerTranslator<'_>) {
    let hint = "use `bearer_token_env_var`";
    server.refuse_key("bearer_token", "is refused by Codex", hint);
    let reason = "is a program that makes headers, which is not run here";
    server.refuse_key("http_headers_helper", reason, hint);
    let has_token = server.get("bearer_token_env_var").is_some();
    for key in ["oauth", "oauth_resource", "scopes", "auth"] {
        // OAuth on demand is what Codex does without the key.
        let is_usual = key == "auth" && {
            let auth = server.get(key);
            auth.is_some_and(|at| server.document.text(at) == Some("oauth"))
        };
        if has_token || is_usual {
            server.get(key);
        } else {
            let reason = "asks for OAuth, which the gateway does not do for servers";
            server.refuse_key(key, reason, hint);
        }
    }
}

/// Refuses a server that Codex starts elsewhere.
fn environment(server: &mut ServerTranslator<'_>) {
    for key in ["experimental_environment", "environment_id"] {
        if let Some(at) = server.get(key)
            && server.document.text(at) != Some("local")
        {
            server.refuse(at, format!("`{key}` starts it on another machine"), "");
        }
    }
}

/// Tells of settings of approvals, which are the gateway's own business.
fn approvals(server: &mut ServerTranslator<'_>) {
    for key in ["default_tools_approval_mode", "tools"] {
        if let Some(at) = server.get(key) {
            let hint = "`policy.approval.required` lists tools that ask for an approval";
            server.remark(
                at,
                format!("`{key}` is ignored: approvals are those of this gateway"),
                hint,
            );
        }
    }
}

/// Reads `env`, and the names in `env_vars`.
fn env(server: &mut ServerTranslator<'_>) {
    server.texts("env", "env");
    let Some(at) = server.get("env_vars") else { return };
    let Kind::List(items) = server.document.kind(at).clone() else {
        server.refuse(at, "`env_vars` is no list", "");
        return;
    };
    let mut entries = match server.get("env") {
        Some(env) => {
            let env = server.translated(env);
            server.document.entries(env).to_vec()
        }
        None => Vec::new(),
    };
    for item in items {
        let source = server.document.get(item, "source");
        if source.is_some_and(|at| server.document.text(at) == Some("remote")) {
            server.refuse(item, "a variable of another machine cannot be handed down", "");
            return;
        }
        let named = server.document.get(item, "name").unwrap_or(item);
        let name = server.document.text(named).map(str::to_owned);
        match name.filter(|name| is_variable(name)) {
            // A variable that is not set is not handed down; programs take an empty one for that.
            Some(name) if !entries.iter().any(|(known, _)| *known == name) => {
                let value = Kind::String(format!("${{{name}:-}}"));
                entries.push((name, server.document.add(value, item)));
            }
            Some(_) => {}
            None => server.refuse(item, "this is no name of an environment variable", ""),
        }
    }
    server.replace("env", Kind::Map(entries), at);
}

/// Reads the headers: literal ones, those of variables, and the token of a variable.
fn headers(server: &mut ServerTranslator<'_>) {
    let mut entries = Vec::new();
    let mut place = None;
    if let Some(at) = server.get("http_headers") {
        place = Some(at);
        let translated = server.translated(at);
        match server.document.kind(translated) {
            Kind::Map(known) => entries.extend(known.clone()),
            _ => server.set("headers", translated),
        }
    }
    if let Some(at) = server.get("env_http_headers") {
        place = Some(at);
        for (header, value) in server.document.entries(at).to_vec() {
            let value = variable(server, value, "");
            entries.push((header, value));
        }
    }
    if let Some(at) = server.get("bearer_token_env_var") {
        place = Some(at);
        let value = variable(server, at, "Bearer ");
        entries.push(("Authorization".to_owned(), value));
    }
    if let Some(at) = place {
        server.set_new("headers", Kind::Map(entries), at);
    }
}

/// Returns the value of the environment variable that a text names.
fn variable(server: &mut ServerTranslator<'_>, at: NodeId, prefix: &str) -> NodeId {
    let name = server.document.text(at).unwrap_or_default().to_owned();
    if !is_variable(&name) {
        server.refuse(at, "this is no name of an environment variable", "");
        return server.document.add(Kind::String(escape(&name)), at);
    }
    server
        .document
        .add(Kind::String(format!("{prefix}${{{name}}}")), at)
}
