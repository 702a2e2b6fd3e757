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
pub(crate) fn server(document: &mut Document, variables: &Variables, name: &str, at: NodeId) -> ClientServer {
    let mut server = ServerTranslator::new(document, variables, at);
    for key in ["command", "args", "env", "cwd", "url"] {
        server.texts(key, key);
    }
    server.keep("type", "type");
    server.period("connectionTimeout", "start_timeout_ms", 1.0);
    request_options(&mut server);
    if let Some(at) = server.get("apiKey") {
        let key = server.translated(at);
        let key = server.document.text(key).unwrap_or_default();
        let value = Kind::String(format!("Bearer {key}"));
        let value = server.document.add(value, at);
        server.set_new(
            "headers",
            Kind::Map(vec![("Authorization".to_owned(), value)]),
            at,
        );
    }
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

/// Reads the headers of requests; the other options are not honoured.
fn request_options(server: &mut ServerTranslator<'_>) {
    let Some(at) = server.get("requestOptions") else {
        return;
    };
    for (key, value) in server.document.entries(at).to_vec() {
        match key.as_str() {
            "headers" => {
                let headers = server.translated(value);
                server.set("headers", headers);
            }
            "proxy" | "clientCertificate" | "noProxy" => {
                server.refuse(value, format!("`{key}` has no counterpart here"), "");
            }
            _ => server.remark(value, format!("the key `{key}` is ignored"), ""),
        }
    }
}
