//! `toolplane import mcp-json`.

use std::fs;

use serde_json::{Value, json};

use crate::binary::{Place, Run};

fn place() -> Place {
    let place = Place::empty();
    place.write(
        ".config/Claude/claude_desktop_config.json",
        r#"{
  // comments of people
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {
    "time": {"command": "uvx", "args": ["mcp-server-time"]},
    "github": {"command": "npx", "args": ["-y", "server-github", "--token", "hunter1"], "env": {"GITHUB_TOKEN": "hunter2", "LANG": "C"}},
    "toolplane": {"command": "/usr/bin/toolplane", "args": ["serve", "--stdio"]},
  }
}"#,
    );
    place.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {
  "clock": {"args": ["mcp-server-time"], "command": "uvx"},
  "github": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer hunter3"}}
}}"#,
    );
    place.write(
        ".vscode/mcp.json",
        r#"{"servers": {"github": {"type": "stdio", "command": "gh-mcp"}}}"#,
    );
    place.write(".gemini/settings.json", r#"{"theme": "dark"}"#);
    place.write(".kiro/settings/mcp.json", r#"{"mcpServers": {"#);
    place
}

fn without_paths(place: &Place, run: &Run, arguments: &[&str]) -> String {
    let directory = place.path().canonicalize().unwrap();
    let text = run.transcript(arguments);
    text.replace(directory.to_str().unwrap(), "/h/ada")
        .replace(place.path().to_str().unwrap(), "/h/ada")
}

#[test]
fn the_files_of_clients_are_found_and_shown_without_secrets() {
    let place = place();
    let mut transcripts = String::new();
    for arguments in [
        &["import", "mcp-json"][..],
        &["import", "mcp-json", "--from", "cursor", "--dry-run"],
        &["import", "mcp-json", "--from", "cursor", "-o", "json"],
    ] {
        let run = place.run(arguments);
        assert_eq!(run.code, 0, "{run:?}");
        transcripts.push_str(&without_paths(&place, &run, arguments));
    }
    assert!(!transcripts.contains("hunter"), "{transcripts}");
    insta::assert_snapshot!(transcripts);
    assert!(!place.path().join("toolplane.yaml").exists());
}

#[test]
fn servers_are_added_to_the_configuration_and_nothing_is_overwritten() {
    let place = place();
    let text = "# mine\nservers:\n  github: {command: own} # keep\n\n# end\ndefaults: {call_timeout: 5s}\n";
    let file = place.write("toolplane.yaml", text);
    let run = place.run(&["import", "mcp-json", "--write"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        !run.stdout.contains("hunter") && !run.stderr.contains("hunter"),
        "{run:?}"
    );
    let written = fs::read_to_string(&file).unwrap();
    insta::assert_snapshot!(written);
    let check = place.run(&["check", "-o", "json"]);
    assert_eq!(check.code, 0, "{check:?}");
    let again = place.run(&["import", "mcp-json", "--write"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.stderr.contains("nothing to import"), "{again:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), written);
}

#[test]
fn a_new_file_is_a_configuration_with_the_same_values() {
    let place = place();
    let arguments = ["import", "mcp-json", "--from", "cursor", "--out", "new.json"];
    let run = place.run(&arguments);
    assert_eq!(run.code, 0, "{run:?}");
    let written: Value =
        serde_json::from_str(&fs::read_to_string(place.path().join("new.json")).unwrap()).unwrap();
    assert_eq!(
        written["servers"]["github"]["headers"]["Authorization"],
        "Bearer hunter3"
    );
    assert_eq!(
        written["servers"]["clock"],
        json!({"args": ["mcp-server-time"], "command": "uvx"})
    );
    assert_eq!(place.run(&["-c", "new.json", "check"]).code, 0);
    let again = place.run(&arguments);
    assert_eq!(again.code, 1, "{again:?}");
    assert!(again.stderr.contains("`new.json` exists already"), "{again:?}");
}

#[test]
fn named_files_are_read_and_a_broken_one_is_a_failure() {
    let place = place();
    place.write(
        "mine.json",
        r#"{"mcpServers": {"a": {"command": "x", "autoApprove": ["t"]}}}"#,
    );
    let run = place.run(&[
        "import",
        "mcp-json",
        "mine.json",
        ".kiro/settings/mcp.json",
        "absent.json",
        "-o",
        "json",
    ]);
    assert_eq!(run.code, 1, "{run:?}");
    let files = run.json()["files"].clone();
    assert_eq!(files[0]["servers"][0]["as"], "a");
    assert_eq!(files[1]["client"], "kiro");
    assert!(
        files[1]["problem"].as_str().unwrap().contains("not valid JSON"),
        "{files}"
    );
    assert!(files[2]["problem"].is_string(), "{files}");
    let nothing = Place::empty().run(&["import", "mcp-json"]);
    assert_eq!(nothing.code, 3, "{nothing:?}");
}

#[test]
fn a_file_in_which_the_servers_are_not_used_is_not_made() {
    let place = place();
    let run = place.run(&["import", "mcp-json", "--from", "cursor", "--out", "opencode.json"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stderr
            .contains("the server `clock` is not used in `opencode.json`")
            && run.stderr.contains("no file was made"),
        "{run:?}"
    );
    assert!(!place.path().join("opencode.json").exists());
}

#[test]
fn a_refused_server_is_shown_as_failed_everywhere() {
    let place = Place::empty();
    place.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"a": {"command": "true", "allowedHosts": ["q"]}, "b": {"command": "x"}}}"#,
    );
    place.write("toolplane.yaml", "include: [.cursor/mcp.json]\n");
    let run = place.run(&["import", "mcp-json", "--from", "cursor"]);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(lines[1].starts_with("  a: not taken: "), "{run:?}");
    assert_eq!(lines[2..], ["  b: take", "    x"], "{run:?}");
    for options in [&["--no-start"][..], &[]] {
        let list = [&["servers", "ls"], options].concat();
        let table = place.run(&list);
        let row = table.stdout.lines().find(|line| line.starts_with("a ")).unwrap();
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words[..3], ["a", "failed", "0"], "{table:?}");
        assert!(row.contains("`allowedHosts`"), "{table:?}");
        let listed = place.run(&[&list[..], &["-o", "json"]].concat()).json();
        let server = &listed[0];
        assert_eq!(server["attempts"], 0, "{listed}");
        assert_eq!(server.get("retry_in_ms"), None, "{listed}");
    }
}

#[test]
fn references_are_shown_as_they_are_written() {
    let place = Place::empty();
    place.write(
        ".vscode/mcp.json",
        r#"{"inputs": [{"id": "tok", "type": "promptString"}, {"id": "pin", "type": "promptString", "default": "hunter1"}],
            "servers": {"a": {"command": "x", "args": ["${input:tok}", "--key=${env:KEY}", "${env:TOKEN:-hunter2}",
            "${input:pin}", "token=hunter3"]}}}"#,
    );
    let run = place.run(&["import", "mcp-json", "--from", "vscode"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.stdout
            .contains("x ${secret:tok:?is asked for by the editor; give it below `secrets`} --key=${"),
        "{run:?}"
    );
    assert!(run.stdout.contains("token=[redacted]"), "{run:?}");
    assert!(!run.stdout.contains("hunter"), "{run:?}");
}

/// Restrictions of every format are written in our own words, and a server that cannot be restricted is not taken.
#[test]
fn restrictions_of_clients_are_kept() {
    let place = Place::empty().variable("HOME", "/nowhere");
    place.write(
        "codex/config.toml",
        "[mcp_servers.codex]\ncommand = \"x\"\nenabled_tools = [\"a\"]\ntool_timeout_sec = 5\n[mcp_servers.far]\n\
         command = \"x\"\nexperimental_environment = \"box\"\n",
    );
    place.write(
        "goose.yaml",
        "extensions:\n  goose: {type: stdio, name: g, cmd: x, args: [], enabled: true, available_tools: [b], env_keys: [KEY]}\n",
    );
    place.write(
        "zed.json",
        r#"{"theme": "One", "context_servers": {"zed": {"command": "x", "args": []}},
            "agent": {"tool_permissions": {"tools": {"mcp:zed:drop": {"default": "deny"}}}}}"#,
    );
    place.write(
        "continue.yaml",
        "name: c\nversion: 1.0.0\nmcpServers:\n  - {name: continue, command: x, env: {K: '${{ secrets.K }}'}}\n",
    );
    place.write(
        "opencode.json",
        r#"{"mcp": {"open": {"type": "local", "command": ["x", "y"], "enabled": true}}, "permission": {"open_drop": "deny"}}"#,
    );
    place.write(
        "mcp-config.json",
        r#"{"mcpServers": {"copilot": {"type": "local", "command": "x", "tools": ["c"]},
            "limited": {"type": "local", "command": "x", "toolFilter": "c"}}}"#,
    );
    place.write(
        ".vscode/mcp.json",
        r#"{"servers": {"boxed": {"command": "x", "sandboxEnabled": true, "dev": {}}}, "sandbox": {"filesystem": {"allowWrite": ["./out"]}}}"#,
    );
    let files = [
        "codex/config.toml",
        "goose.yaml",
        "zed.json",
        "continue.yaml",
        "opencode.json",
        "mcp-config.json",
        ".vscode/mcp.json",
    ];
    let import = [&["import", "mcp-json", "--out", "all.yaml"], &files[..]].concat();
    let run = place.run(&import);
    for not_taken in [
        "far: not taken: `experimental_environment` starts it on another machine",
        "limited: not taken: `toolFilter` may restrict it and is not understood",
    ] {
        assert!(run.stdout.contains(not_taken), "{not_taken}\n{run:?}");
    }
    let written = fs::read_to_string(place.path().join("all.yaml")).unwrap();
    let directory = place.path().canonicalize().unwrap();
    let written = written
        .replace(directory.to_str().unwrap(), "/p")
        .replace(place.path().to_str().unwrap(), "/p");
    insta::assert_snapshot!(written);
    let check = place.run(&["check", "all.yaml"]);
    assert_eq!(check.code, 0, "{check:?}");
}
