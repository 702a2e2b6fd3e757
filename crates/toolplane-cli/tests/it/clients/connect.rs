//! `toolplane connect`.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    process::Command,
};

use serde_json::json;

use crate::binary::{BINARY, Place, Run};

/// Clients with the path of their user's file on Linux.
pub(super) const FILES: [(&str, &str); 15] = [
    ("claude-desktop", ".config/Claude/claude_desktop_config.json"),
    ("claude-code", ".claude.json"),
    ("cursor", ".cursor/mcp.json"),
    ("vscode", ".config/Code/User/mcp.json"),
    ("windsurf", ".codeium/windsurf/mcp_config.json"),
    (
        "cline",
        ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
    ),
    (
        "roo",
        ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
    ),
    ("kiro", ".kiro/settings/mcp.json"),
    ("gemini", ".gemini/settings.json"),
    ("copilot", ".copilot/mcp-config.json"),
    ("codex", ".codex/config.toml"),
    ("zed", ".config/zed/settings.json"),
    ("goose", ".config/goose/config.yaml"),
    ("continue", ".continue/config.yaml"),
    ("opencode", ".config/opencode/opencode.json"),
];

pub(super) fn place() -> Place {
    Place::with("tools:\n  greet: {description: Greets, executor: {kind: mock, result: hello}}\n")
}

/// Returns a text without the paths of this run.
fn without_paths(place: &Place, text: &str) -> String {
    let directory = place.path().canonicalize().unwrap();
    text.replace(BINARY, "/usr/bin/toolplane")
        .replace(directory.to_str().unwrap(), "/h/ada")
        .replace(place.path().to_str().unwrap(), "/h/ada")
}

#[track_caller]
pub(super) fn ok(place: &Place, arguments: &[&str]) -> Run {
    let run = place.run(arguments);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    run
}

/// The forms are those of the public documentation of each client, to which the table of clients links.
#[test]
fn each_client_gets_the_entry_of_its_documentation() {
    let place = place();
    let mut files = String::new();
    for (client, file) in FILES {
        ok(&place, &["connect", client, "--yes"]);
        let written = fs::read_to_string(place.path().join(file)).unwrap();
        files.push_str(&format!(
            "=== {client}: ~/{file}\n{}\n",
            without_paths(&place, &written)
        ));
        if client != "claude-desktop" {
            let url = [
                "connect",
                client,
                "--http",
                "http://127.0.0.1:8080/mcp",
                "--name",
                "remote",
                "-y",
            ];
            place.run(&url);
            let written = fs::read_to_string(place.path().join(file)).unwrap();
            let (_, added) = written.split_once("remote").unwrap();
            files.push_str(&format!("--- with a URL: remote{added}\n"));
        }
    }
    insta::assert_snapshot!(files);
}

#[test]
fn the_client_can_start_what_was_written() {
    let place = place();
    ok(&place, &["connect", "cursor", "--yes"]);
    let text = fs::read_to_string(place.path().join(".cursor/mcp.json")).unwrap();
    let file: serde_json::Value = serde_json::from_str(&text).unwrap();
    let entry = &file["mcpServers"]["toolplane"];
    let args = entry["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|arg| arg.as_str().unwrap());
    let elsewhere = tempfile::tempdir().unwrap();
    let mut child = Command::new(entry["command"].as_str().unwrap())
        .args(args)
        .current_dir(elsewhere.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    use std::io::Write as _;
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    }});
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let messages = format!("{initialize}\n{initialized}\n{list}\n");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(messages.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let answers = String::from_utf8(output.stdout).unwrap();
    assert!(answers.contains("\"greet\""), "{answers}");
}

#[test]
fn a_second_connect_changes_nothing() {
    let place = place();
    for (client, file) in FILES {
        ok(&place, &["connect", client, "--yes"]);
        let before = fs::read(place.path().join(file)).unwrap();
        let again = ok(&place, &["connect", client]);
        assert!(
            again.stdout.contains("connected already (`toolplane` in `"),
            "{again:?}"
        );
        assert_eq!(fs::read(place.path().join(file)).unwrap(), before);
    }
    assert_eq!(fs::read_dir(place.path().join(".cursor")).unwrap().count(), 1);
}

#[test]
fn the_change_is_shown_without_secrets_and_backed_up() {
    let place = place();
    let text = "{\n  \"mcpServers\": {\n    \"github\": {\n      \"command\": \"npx\",\n      \"env\": {\n        \"GITHUB_TOKEN\": \"hunter2\"\n      }\n    }\n  }\n}\n";
    let file = place.write(".cursor/mcp.json", text);
    let arguments = ["connect", "cursor", "--dry-run"];
    let dry = ok(&place, &arguments);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    insta::assert_snapshot!("dry_run", without_paths(&place, &dry.transcript(&arguments)));
    let arguments = ["connect", "cursor", "--yes"];
    let run = ok(&place, &arguments);
    insta::assert_snapshot!("connected", without_paths(&place, &run.transcript(&arguments)));
    assert!(!run.stdout.contains("hunter2"), "{run:?}");
    let backup = place.path().join(".cursor/mcp.json.toolplane-backup");
    assert_eq!(fs::read_to_string(&backup).unwrap(), text);
    // The file has another text: the next backup has a number.
    let other = place.write("other.yaml", "tools: {}\n");
    let moved = ok(
        &place,
        &["-c", "other.yaml", "connect", "cursor", "--yes", "-o", "json"],
    )
    .json();
    assert_eq!(moved["state"], "connected");
    assert_eq!(moved["undo"], "toolplane disconnect cursor");
    let second = place.path().join(".cursor/mcp.json.toolplane-backup.1");
    assert_eq!(moved["backup"], json!(second.canonicalize().unwrap()));
    assert_eq!(fs::read_to_string(&backup).unwrap(), text);
    assert!(
        fs::read_to_string(&file)
            .unwrap()
            .contains(other.canonicalize().unwrap().to_str().unwrap())
    );
}

#[test]
fn nobody_is_there_to_confirm() {
    let place = place();
    let file = place.write(".cursor/mcp.json", "{}");
    let run = place.run(&["connect", "cursor"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("no terminal to ask on"), "{run:?}");
    assert_eq!(fs::read_to_string(file).unwrap(), "{}");
    assert_eq!(fs::read_dir(place.path().join(".cursor")).unwrap().count(), 1);
}

#[test]
fn links_and_permissions_stay() {
    let place = place();
    let target = place.write("dotfiles/mcp.json", "{}\n");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir(place.path().join(".cursor")).unwrap();
    let link = place.path().join(".cursor/mcp.json");
    symlink(&target, &link).unwrap();
    ok(&place, &["connect", "cursor", "--yes"]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&target).unwrap().contains("toolplane"));
    for file in ["mcp.json", "mcp.json.toolplane-backup"] {
        let metadata = fs::metadata(place.path().join("dotfiles").join(file)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o640, "{file}");
    }
    fs::remove_file(&target).unwrap();
    let dangling = place.run(&["connect", "cursor", "--yes"]);
    assert_eq!(dangling.code, 1, "{dangling:?}");
    assert!(dangling.stderr.contains("cannot be read"), "{dangling:?}");
}

#[test]
fn another_server_of_the_name_is_kept() {
    let place = place();
    let text = r#"{"mcpServers": {"toolplane": {"command": "other"}}}"#;
    let file = place.write(".cursor/mcp.json", text);
    let run = place.run(&["connect", "cursor", "--yes"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stderr.contains("has another server of the name `toolplane`"),
        "{run:?}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    ok(&place, &["connect", "cursor", "--yes", "--name", "gateway"]);
    let twice = place.run(&["connect", "cursor", "--yes", "--name", "second"]);
    assert!(
        twice.stderr.contains("has the gateway as `gateway` too"),
        "{twice:?}"
    );
}

#[test]
fn what_the_user_added_to_the_entry_stays() {
    let place = place();
    let text =
        r#"{"mcpServers": {"toolplane": {"command": "/old/toolplane", "args": ["serve"], "timeout": 60}}}"#;
    let file = place.write(".cursor/mcp.json", text);
    ok(&place, &["connect", "cursor", "--yes"]);
    let written: serde_json::Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let entry = &written["mcpServers"]["toolplane"];
    assert_eq!(
        (&entry["command"], &entry["timeout"]),
        (&json!(BINARY), &json!(60))
    );
}

#[test]
fn bad_input_is_refused_with_a_hint() {
    let place = place();
    place.write(".gemini/settings.json", "{\"mcpServers\": ");
    place.write(".kiro/settings/mcp.json", "{\"mcpServers\": {}}");
    let mut transcripts = String::new();
    for arguments in [
        &["connect", "curser", "--yes"][..],
        &["connect"],
        &["connect", "windsurf", "--project", "--yes"],
        &["connect", "claude", "--http", "http://127.0.0.1:1/mcp", "--yes"],
        &["connect", "cursor", "--http", "127.0.0.1:1", "--yes"],
        &[
            "connect",
            "cursor",
            "--http",
            "https://ada:hunter2@example.com/mcp",
            "--yes",
        ],
        &["connect", "cursor", "--name", "a b", "--yes"],
        &["connect", "gemini", "--yes"],
        &["-c", "absent.yaml", "connect", "cursor", "--yes"],
        &["-c", ".kiro/settings/mcp.json", "connect", "kiro", "--yes"],
    ] {
        let run = place.run(arguments);
        assert_ne!(run.code, 0, "{run:?}");
        assert!(!run.stderr.contains("hunter2"), "{run:?}");
        transcripts.push_str(&without_paths(&place, &run.transcript(arguments)));
    }
    insta::assert_snapshot!(transcripts);
    assert!(!place.path().join(".cursor").exists());
}

#[test]
fn all_clients_that_are_found_are_connected() {
    let place = place();
    let nobody = place.run(&["connect", "--all", "--yes"]);
    assert_eq!(nobody.code, 3, "{nobody:?}");
    place.write(".codex/config.toml", "model = \"o\"\n");
    place.write(".gemini/settings.json", "{");
    fs::create_dir(place.path().join(".cursor")).unwrap();
    let run = place.run(&["connect", "--all", "--yes", "-o", "json"]);
    assert_eq!(run.code, 1, "{run:?}");
    let connected = run.json();
    let clients: Vec<_> = connected
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["client"].as_str().unwrap())
        .collect();
    assert_eq!(clients, ["cursor", "codex"]);
    assert!(run.stderr.contains("it is not valid JSON"), "{run:?}");
    let list = place.run(&["connect", "--list", "-o", "json"]).json();
    let row = |name: &str| {
        list.as_array()
            .unwrap()
            .iter()
            .find(|row| row["client"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(
        (&row("codex")["connected"], &row("codex")["names"]),
        (&json!(true), &json!(["toolplane"]))
    );
    assert_eq!(
        (&row("zed")["found"], &row("zed")["connected"]),
        (&json!(false), &json!(false))
    );
    assert!(
        row("gemini")["problem"]
            .as_str()
            .unwrap()
            .contains("not valid JSON")
    );
}

#[test]
fn a_project_has_its_own_file() {
    let place = place();
    ok(&place, &["connect", "claude-code", "--project", "--yes"]);
    assert!(place.path().join(".mcp.json").is_file());
    assert!(!place.path().join(".claude.json").exists());
    let list = place.run(&["connect", "--list"]);
    assert!(list.stdout.contains(".mcp.json"), "{list:?}");
    let undone = ok(&place, &["disconnect", "claude-code", "--project", "--yes"]);
    assert!(
        undone.stdout.contains("connect claude-code --project"),
        "{undone:?}"
    );
    assert!(!place.path().join(".mcp.json").exists());
}
