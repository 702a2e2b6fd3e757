use std::{path::Path, sync::Arc};

use crate::{
    Syntax, clients,
    diagnostics::report::Report,
    document::{json, source::SourceFile, yaml},
};

/// Returns `true` if this text makes the file at `path` one of an MCP client: [`load`](crate::load) then takes the servers of the
/// client's keys only, and keys of ours do not belong into it. The file is not read. A text that cannot be parsed is of no client,
/// except in TOML, which only Codex writes.
///
/// # Examples
/// ```
/// use std::path::Path;
/// use tool_manifest::is_client_file;
///
/// let text = r#"{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}"#;
/// assert!(is_client_file(Path::new("mcp.json"), text));
/// assert!(!is_client_file(Path::new("toolplane.yaml"), "servers: {time: {command: uvx}}"));
/// ```
#[must_use]
pub fn is_client_file(path: &Path, text: &str) -> bool {
    let syntax = Syntax::from_path(path);
    let directory = path.parent().map(Path::to_owned).unwrap_or_default();
    let name = path.display().to_string();
    let Ok(source) = SourceFile::decode(name, directory, syntax, text.as_bytes().to_vec()) else {
        return false;
    };
    let (source, report) = (Arc::new(source), Report::default());
    let documents = match syntax {
        Syntax::Yaml => yaml::read(&source, &report),
        Syntax::Json => json::read(&source, &report),
        Syntax::Toml => return true,
    };
    documents.iter().any(clients::is_of_client)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_clients_are_told_from_ours() {
        for (path, text, is_of_client) in [
            (
                "goose/config.yaml",
                "extensions: {a: {type: stdio, cmd: x, enabled: true}}",
                true,
            ),
            (".vscode/mcp.json", r#"{"servers": {}}"#, true),
            (".vscode/mcp.json", "{}", false),
            (".mcp.json", "{}", true),
            ("zed.json", r#"{"context_servers": {}}"#, true),
            ("config.toml", "[broken", true),
            ("continue.yaml", "mcpServers: [{name: a, command: x}]", true),
            ("toolplane.yaml", "servers: {a: {command: x}}", false),
            (
                "ours.json",
                r#"{"include": ["b"], "mcpServers": {"a": {"command": "x"}}}"#,
                false,
            ),
            ("broken.json", "{", false),
            ("empty.yaml", "", false),
        ] {
            assert_eq!(
                is_client_file(Path::new(path), text),
                is_of_client,
                "{path}: {text}"
            );
        }
    }
}
