//! Files as a whole: what one of their servers, or another file, means for the others.

use std::{fs, path::Path};

use serde_json::json;
use tempfile::TempDir;
use toolplane::manifest::{LoadOptions, ServerTransport, load};

use super::{load_in, summary};

/// One server that is wrong is refused alone, and an unknown restriction refuses its server.
#[test]
fn one_wrong_server_is_refused_alone() {
    insta::assert_snapshot!(summary(
        "mcp.json",
        r#"{
  "mcpServers": {
    "good": {"command": "x"},
    "empty": {},
    "typed": {"command": "x", "args": "y"},
    "odd": {"type": "carrier-pigeon", "url": "https://a.example.com"},
    "limited": {"command": "x", "toolFilter": ["a"]},
    "remark": {"command": "x", "colour": "red"},
    "nul": {"command": "x\u0000y"}
  }
}"#
    ));
}

/// A server that two files share is taken once, and another one of its name is not used.
#[test]
fn files_that_share_names() {
    let project = TempDir::new().unwrap();
    let write = |path: &str, text: &str| fs::write(project.path().join(path), text).unwrap();
    write(
        "a.json",
        r#"{"mcpServers": {"same": {"command": "x"}, "other": {"command": "y"}, "own": {"command": "z"}}}"#,
    );
    write(
        "b.json",
        r#"{"mcpServers": {"same": {"command": "x"}, "other": {"command": "y", "disabledTools": ["a"]}}}"#,
    );
    write(
        "all.yaml",
        "include: [a.json, b.json]\nservers: {own: {command: w}}\n",
    );
    let loaded = load(&LoadOptions::new().path(project.path().join("all.yaml"))).unwrap();
    let names: Vec<&str> = loaded
        .configuration
        .servers
        .iter()
        .map(|server| &*server.name)
        .collect();
    assert_eq!(names, ["own", "same", "other"]);
    let said: Vec<String> = loaded
        .diagnostics
        .iter()
        .map(|problem| {
            let place = problem.location.as_ref().unwrap();
            format!(
                "{}: {}",
                Path::new(&place.file).file_name().unwrap().display(),
                problem.message
            )
        })
        .collect();
    assert_eq!(
        said,
        [
            "a.json: this server `own` is not used: there is another one",
            "b.json: this server `other` is not used: there is another one",
        ]
    );
}

/// The settings of a server of a client are kept in our own form.
#[test]
fn settings_are_in_our_own_form() {
    let project = TempDir::new().unwrap();
    let text = "[mcp_servers.a]\ncommand = \"x\"\ntool_timeout_sec = 2\nenabled_tools = [\"t\"]\n[mcp_servers.a.env]\nK = \"$v\"\n";
    let loaded = load_in(&project, "config.toml", text);
    let settings = loaded.server_settings("a").unwrap();
    assert_eq!(
        settings.as_str(),
        r#"{"command":"x","env":{"K":"$$v"},"include":["t"],"timeout_ms":2000}"#
    );
    let place = loaded.locate_server("a", "/env/K").unwrap();
    assert_eq!((place.line, place.column), (6, 5));
}

/// Errors in TOML and in other files of clients have a place.
#[test]
fn broken_files_have_a_place() {
    let project = TempDir::new().unwrap();
    for (path, text, line) in [
        ("config.toml", "[mcp_servers.a]\ncommand = \n", 2),
        ("mcp.json", "{\"mcpServers\": {\n  \"a\": }}", 2),
    ] {
        let file = project.path().join(path);
        fs::write(&file, text).unwrap();
        let problems = load(&LoadOptions::new().path(file)).unwrap_err();
        let first = problems.iter().next().unwrap();
        assert_eq!(first.location.as_ref().unwrap().line, line, "{path}: {first}");
    }
}

/// A file with keys of ours is ours, whatever else is in it: none of its tools is lost.
#[test]
fn files_with_our_keys_are_ours() {
    let tool = r#""tools": {"t": {"description": "T", "executor": {"kind": "mock", "result": 1}}}"#;
    for (path, text) in [
        (
            "a.json",
            format!(r#"{{"mcpServers": {{"a": {{"command": "x", "includeTools": ["y"]}}}}, {tool}}}"#),
        ),
        ("b.yaml", format!("{{servers: {{a: {{command: x}}}}, {tool}}}")),
    ] {
        let project = TempDir::new().unwrap();
        let loaded = load_in(&project, path, &text);
        assert_eq!(loaded.configuration.tools.len(), 1, "{path}");
        assert_eq!(loaded.configuration.servers.len(), 1, "{path}");
    }
    // Unknown keys in them are errors, and no other format.
    let project = TempDir::new().unwrap();
    for text in [
        format!(r#"{{"mcp": {{"a": {{"type": "local", "command": ["x"]}}}}, {tool}}}"#),
        format!(r#"{{"mcpServers": [{{"name": "a", "command": "x"}}], {tool}}}"#),
        format!(r#"{{"context_servers": {{"a": {{"command": "x"}}}}, {tool}}}"#),
        format!(r#"{{"extensions": {{"a": {{"type": "stdio", "cmd": "x"}}}}, {tool}}}"#),
    ] {
        let file = project.path().join("a.json");
        fs::write(&file, &text).unwrap();
        assert!(load(&LoadOptions::new().path(file)).is_err(), "{text}");
    }
}

/// Files of clients without a server are configurations without a server, and TOML that is not of Codex is told.
#[test]
fn files_without_servers() {
    for (path, text, said) in [
        (".claude.json", r#"{"numStartups": 3}"#, ""),
        (".gemini/settings.json", r#"{"theme": "dark"}"#, ""),
        ("opencode.json", r#"{"model": "a/b"}"#, ""),
        (
            "config.toml",
            "model = \"x\"\n",
            "Warning line 1: there is no table `mcp_servers`: TOML is read as a file of Codex\n",
        ),
    ] {
        assert_eq!(summary(path, text), said, "{path}");
    }
}

/// A client that is connected to the gateway has it in its file. The gateway reads the file and does not start itself.
#[test]
fn the_gateway_is_no_server_of_itself() {
    let project = TempDir::new().unwrap();
    let own = project.path().join("toolplane.yaml");
    fs::write(&own, "include: [mcp.json]\n").unwrap();
    fs::write(project.path().join("other.yaml"), "servers: {}\n").unwrap();
    let entry = |config: &Path| json!({"command": "/bin/toolplane", "args": ["--config", config, "serve", "--stdio"]});
    let file = json!({"mcpServers": {
        "toolplane": entry(&own),
        "inner": entry(&project.path().join("other.yaml")),
        "relative": {"command": "toolplane", "args": ["serve", "--config=toolplane.yaml"], "cwd": project.path()},
    }});
    fs::write(project.path().join("mcp.json"), file.to_string()).unwrap();
    let loaded = load(&LoadOptions::new().path(own)).unwrap();
    let mut refused: Vec<&str> = loaded
        .configuration
        .servers
        .iter()
        .filter(|server| matches!(server.transport, ServerTransport::Refused { .. }))
        .map(|server| &*server.name)
        .collect();
    refused.sort_unstable();
    assert_eq!(refused, ["relative", "toolplane"]);
    assert_eq!(loaded.diagnostics.len(), 2, "{:?}", loaded.diagnostics);
}
