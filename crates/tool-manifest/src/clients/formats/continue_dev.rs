//! `config.yaml` of Continue and its blocks: a list `mcpServers`.
//!
//! Source: docs.continue.dev/reference (`mcpServers`) and /customize/deep-dives/mcp.

use tool_settings::NodeId;

use crate::{
    clients::{
        server::{ClientServer, ServerTranslator},
        variables::Variables,
    },
    document::node::{Document, Kind},
};

/// Translates a server.
///
/// `options` are the `requestOptions` of the whole file, which hold where the server has none of its own.
pub(crate) fn server(
    document: &mut Document,
    variables: &Variables,
    name: &str,
    at: NodeId,
    options: Option<NodeId>,
) -> ClientServer {
    let mut server = ServerTranslator::new(document, variables, at);
    for key in ["command", "args", "env", "cwd", "url"] {
        server.texts(key, key);
    }
    server.keep("type", "type");
    server.period("connectionTimeout", "start_timeout_ms", 1.0);
    server.enabled();
    headers(&mut server, options);
    server.refuse_key(
        "uses",
        "names a block of a hub, which is not fetched here",
        "write the block itself",
    );
    for key in [
        "name",
        "serverName",
        "faviconUrl",
        "sourceFile",
        "version",
        "schema",
    ] {
        server.get(key);
    }
    server.finish(name)
}

/// Reads the headers of requests: the key, those of the server, and those of the file. Other options are not honoured.
fn headers(server: &mut ServerTranslator<'_>, of_file: Option<NodeId>) {
    let mut headers: Vec<(String, NodeId)> = Vec::new();
    let mut place = None;
    if let Some(at) = server.get("apiKey") {
        let key = server.translated(at);
        let key = server.document.text(key).unwrap_or_default();
        let value = Kind::String(format!("Bearer {key}"));
        headers.push(("Authorization".to_owned(), server.document.add(value, at)));
        place = Some(at);
    }
    let own = server.get("requestOptions");
    let of_file = of_file.filter(|_| server.has("url"));
    for options in own.into_iter().chain(of_file) {
        for (key, value) in server.document.entries(options).to_vec() {
            match key.as_str() {
                "headers" => {
                    let translated = server.translated(value);
                    let Kind::Map(entries) = server.document.kind(translated).clone() else {
                        server.set("headers", translated);
                        continue;
                    };
                    for (name, value) in entries {
                        if !headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(&name)) {
                            headers.push((name, value));
                        }
                    }
                    place.get_or_insert(value);
                }
                "proxy" | "clientCertificate" | "noProxy" => {
                    server.refuse(value, format!("`{key}` has no counterpart here"), "");
                }
                _ if own == Some(options) => server.remark(value, format!("the key `{key}` is ignored"), ""),
                _ => {}
            }
        }
    }
    if let Some(at) = place {
        server.set_new("headers", Kind::Map(headers), at);
    }
}
