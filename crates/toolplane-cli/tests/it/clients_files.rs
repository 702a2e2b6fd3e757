//! Files of MCP clients with the program: `check`, `servers ls` and `serve` agree on what can be used.

use crate::binary::{BINARY, Place};

const SCENARIO: &str = "tools: {a: {replies: [{text: a}]}, b: {replies: [{text: b}]}}\n";

const VSCODE: &str = r#"{
  "inputs": [{"type": "promptString", "id": "key", "description": "Key"}],
  "servers": {
    "asked": {"command": "true", "env": {"KEY": "${input:key}"}},
    "odd": {"command": "true", "args": ["${file}"]},
    "unset": {"type": "http", "url": "http://127.0.0.1:9/mcp", "headers": {"K": "${env:NOT_SET_ANYWHERE}"}},
    "mock": {"command": "[program]", "args": ["mock-server", "--stdio", "--scenario", "scenario.yaml"], "envFile": "${workspaceFolder}/.env"}
  }
}"#;

fn place() -> Place {
    // The file belongs to a workspace, since its directory is not the home directory.
    let place = Place::with("include: [.vscode/mcp.json]\n").variable("HOME", "/nowhere");
    place.write(".vscode/mcp.json", VSCODE.replace("[program]", BINARY));
    place.write("scenario.yaml", SCENARIO);
    place.write(".env", "A=1\n");
    place
}

#[test]
fn check_warns_of_what_serve_does_not_use() {
    let place = place();
    let check = place.run(&["check"]);
    assert_eq!(check.code, 0, "{check:?}");
    for said in [
        "the server `asked` cannot be used now: `${secret:key}` is asked for by the editor; give it below `secrets`",
        "the server `odd` cannot be used: `${file}` has a value in a running editor only",
        "the server `unset` cannot be used now: `${NOT_SET_ANYWHERE}` is not set",
    ] {
        assert!(check.stderr.contains(said), "{said}\n{check:?}");
    }
    assert_eq!(place.run(&["check", "--strict"]).code, 2);

    let servers = place.run(&["servers", "ls", "-o", "json"]);
    let rows = servers.json();
    let state = |name: &str| {
        let row = rows.as_array().unwrap().iter().find(|row| row["name"] == name);
        let row = row.unwrap_or_else(|| panic!("{rows}"));
        (row["state"].as_str().unwrap().to_owned(), row.to_string())
    };
    assert_eq!(state("mock").0, "ready", "{rows}");
    for (name, reason) in [
        ("asked", "asked for by the editor"),
        ("odd", "running editor"),
        ("unset", "not set"),
    ] {
        let (word, row) = state(name);
        assert_eq!(word, "failed", "{row}");
        assert!(row.contains(reason), "{row}");
    }
}

/// The secret of an input's name makes its server usable, and without the file of variables a server is not.
#[test]
fn inputs_are_secrets() {
    let place = place();
    place.write(
        "toolplane.yaml",
        "include: [.vscode/mcp.json]\nsecrets: {key: \"${env:PATH}\"}\n",
    );
    let check = place.run(&["check"]);
    assert!(!check.stderr.contains("`asked`"), "{check:?}");
    assert!(!check.stderr.contains("`mock`"), "{check:?}");
    std::fs::remove_file(place.path().join(".env")).unwrap();
    let check = place.run(&["check"]);
    assert_eq!(check.code, 0, "{check:?}");
    let said = "the server `mock` cannot be used now: `${file:";
    assert!(check.stderr.contains(said), "{check:?}");
}

/// The only tool that a Copilot file names is offered.
#[test]
fn an_allow_list_is_honoured() {
    let place = Place::empty();
    place.write("scenario.yaml", SCENARIO);
    let server = |tools: &str| {
        let file = format!(
            r#"{{"mcpServers": {{"m": {{"type": "local", "command": "{BINARY}", "tools": {tools},
                "args": ["mock-server", "--stdio", "--scenario", "scenario.yaml"]}}}}}}"#
        );
        place.write("mcp-config.json", file);
        let run = place.run(&["--config", "mcp-config.json", "tools", "ls", "-o", "json"]);
        let tools = run.json();
        let names = tools.as_array().unwrap().iter();
        names
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(server(r#"["*"]"#), ["m__a", "m__b"]);
    assert_eq!(server(r#"["b"]"#), ["m__b"]);
    assert_eq!(server("[]"), Vec::<String>::new());
}
