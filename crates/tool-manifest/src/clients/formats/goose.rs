//! `config.yaml` of Goose: `extensions`.
//!
//! Source: block.github.io/goose/docs/guides/config-files, and `ExtensionConfig` of its public source.

use std::collections::BTreeMap;

use tool_settings::NodeId;

use crate::{
    clients::{
        server::{ClientServer, ServerTranslator},
        variables::{Variables, escape, is_variable},
    },
    document::node::{Document, Kind},
};

/// Types of extensions that are parts of Goose itself.
const BUILT_IN: [&str; 4] = ["builtin", "platform", "frontend", "inline_python"];

/// Returns `true` for an extension that is no MCP server.
pub(crate) fn is_built_in(document: &Document, at: NodeId) -> bool {
    let kind = document.get(at, "type").and_then(|at| document.text(at));
    kind.is_some_and(|kind| BUILT_IN.contains(&kind))
}

/// Translates an extension.
pub(crate) fn server(document: &mut Document, name: &str, at: NodeId) -> ClientServer {
    let values = values(document, at);
    let named = Variables::Named(values);
    let mut server = ServerTranslator::new(document, &Variables::None, at);
    server.texts("cmd", "command");
    server.texts("args", "args");
    server.texts("cwd", "cwd");
    let kind = server.get("type");
    let kind = kind.and_then(|at| server.document.text(at)).map(str::to_owned);
    if kind.as_deref() == Some("streamable_http") {
        server.variables = &named;
        server.texts("uri", "url");
        server.texts("headers", "headers");
        server.variables = &Variables::None;
        if let Some(at) = server.get("uri") {
            server.set_new("type", Kind::String("http".to_owned()), at);
        }
        for key in ["envs", "env_keys"] {
            server.get(key);
        }
    } else {
        env(&mut server);
        server.get("uri");
    }
    if let (Some("sse"), Some(at)) = (kind.as_deref(), server.get("type")) {
        server.refuse(
            at,
            "Goose uses no servers over `sse` any more",
            "write `streamable_http`",
        );
    }
    server.refuse_key("socket", "is a transport that is not known here", "");
    // Without names, all tools are available.
    if let Some(at) = server.get("available_tools") {
        let is_empty = matches!(server.document.kind(at), Kind::List(items) if items.is_empty());
        if !is_empty {
            server.set("include", at);
            server.exact_names();
        }
    }
    enabled(&mut server);
    server.period("timeout", "timeout_ms", 1000.0);
    for key in ["name", "description", "display_name", "bundled"] {
        server.get(key);
    }
    server.finish(name)
}

/// Reads `enabled`, without which Goose does not use an extension.
fn enabled(server: &mut ServerTranslator<'_>) {
    if server.get("enabled").is_none() {
        let at = server.at;
        server.set_new("disabled", Kind::Bool(true), at);
        let message = "it is not used: Goose uses no extension without `enabled`";
        server.remark(at, message, "write `enabled: true`");
    }
    server.enabled();
}

/// Returns the variables of an extension, as templates: those of `envs`, and the secrets that `env_keys` names, which are looked
/// for in the environment.
fn values(document: &Document, at: NodeId) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    if let Some(Kind::List(keys)) = document.get(at, "env_keys").map(|keys| document.kind(keys)) {
        let keys = keys.iter().filter_map(|key| document.text(*key));
        values.extend(
            keys.filter(|key| is_variable(key))
                .map(|key| (key.to_owned(), format!("${{{key}}}"))),
        );
    }
    if let Some(envs) = document.get(at, "envs") {
        for (name, value) in document.entries(envs) {
            let value = document.verbatim(*value).unwrap_or_default();
            values.insert(name.clone(), escape(value));
        }
    }
    values
}

/// Reads the variables of a program.
fn env(server: &mut ServerTranslator<'_>) {
    let mut entries = Vec::new();
    let envs = server.get("envs");
    let keys = server.get("env_keys");
    if let Some(at) = envs {
        let translated = server.translated(at);
        match server.document.kind(translated) {
            Kind::Map(known) => entries.extend(known.clone()),
            _ => server.set("env", translated),
        }
    }
    if let Some(Kind::List(items)) = keys.map(|at| server.document.kind(at).clone()) {
        for item in items {
            let name = server.document.text(item).map(str::to_owned);
            match name.filter(|name| is_variable(name)) {
                Some(name) if !entries.iter().any(|(known, _)| *known == name) => {
                    let value = Kind::String(format!("${{{name}}}"));
                    entries.push((name, server.document.add(value, item)));
                }
                Some(_) => {}
                None => server.refuse(item, "this is no name of an environment variable", ""),
            }
        }
    }
    if let Some(at) = envs.or(keys) {
        server.set_new("env", Kind::Map(entries), at);
    }
}
