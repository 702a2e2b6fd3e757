//! Refusals and warnings of `toolplane connect`, by which nothing of the user is lost, and its recognition of its own entries.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
    thread,
};

use serde_json::json;

use super::connect::{ok, place};
use crate::binary::{BINARY, Place};

fn list_row(place: &Place, client: &str) -> serde_json::Value {
    let list = place.run(&["connect", "--list", "-o", "json"]).json();
    let mut rows = list.as_array().unwrap().iter();
    rows.find(|row| row["client"] == client).unwrap().clone()
}

#[test]
fn a_gateway_by_url_is_known_and_can_be_replaced() {
    let place = place();
    let connect = |url: &str| ok(&place, &["connect", "cursor", "--yes", "--http", url]);
    connect("http://127.0.0.1:8080/mcp");
    assert_eq!(list_row(&place, "cursor")["names"], json!(["toolplane"]));
    let import = place.run(&["import", "mcp-json", "--from", "cursor"]);
    assert!(import.stdout.contains("it is this gateway"), "{import:?}");
    connect("http://127.0.0.1:9090/mcp");
    ok(&place, &["connect", "cursor", "--yes"]);
    let text = fs::read_to_string(place.path().join(".cursor/mcp.json")).unwrap();
    assert!(text.contains("--stdio") && !text.contains("9090"), "{text}");
}

#[test]
fn a_program_of_another_name_is_known_by_what_it_wrote() {
    let place = place();
    let program = place.path().join("tp-0.1");
    fs::copy(BINARY, &program).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        let environment: Vec<_> = command
            .get_envs()
            .filter_map(|(key, value)| Some((key.to_owned(), value?.to_owned())))
            .collect();
        command = Command::new(&program);
        command
            .args(arguments)
            .current_dir(place.path())
            .env_clear()
            .envs(environment);
        command.stdin(Stdio::null()).output().unwrap()
    };
    assert!(run(&["connect", "cursor", "--yes"]).status.success());
    assert_eq!(list_row(&place, "cursor")["connected"], json!(true));
    let undone = run(&["disconnect", "cursor", "--yes"]);
    assert!(undone.status.success(), "{undone:?}");
    assert!(!place.path().join(".cursor").exists());
    assert_eq!(list_row(&place, "cursor")["found"], json!(false));
}

#[test]
fn a_mock_server_of_this_program_is_no_gateway() {
    let place = place();
    let text = format!(
        r#"{{"mcpServers": {{"toolplane": {{"command": "{BINARY}", "args": ["mock-server", "m.yaml"]}}}}}}"#
    );
    let file = place.write(".cursor/mcp.json", &text);
    for verb in ["connect", "disconnect"] {
        let run = place.run(&[verb, "cursor", "--yes"]);
        assert_eq!(run.code, 1, "{run:?}");
    }
    assert_eq!(fs::read_to_string(file).unwrap(), text);
}

#[test]
fn the_url_of_another_server_is_not_shown() {
    let place = place();
    let text = r#"{"other": 1, "mcpServers": {"toolplane": {"url": "https://example.com/mcp?key=hunter2"}}}"#;
    place.write(".cursor/mcp.json", text);
    let run = place.run(&["connect", "cursor", "--yes"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("disconnect cursor --http URL"), "{run:?}");
    assert!(!run.stderr.contains("hunter2"), "{run:?}");
}

#[test]
fn settings_that_the_client_would_lose_are_kept() {
    let place = place();
    place.write(".continue/config.json", r#"{"models": []}"#);
    let run = place.run(&["connect", "continue", "--yes"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stderr.contains("would not read") && run.stderr.contains("config.json"),
        "{run:?}"
    );
    assert!(!place.path().join(".continue/config.yaml").exists());
}

#[test]
fn files_that_cannot_be_written_stay() {
    let place = place();
    let file = place.write(".cursor/mcp.json", "{}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    let run = place.run(&["connect", "cursor", "--yes"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stderr.contains("is read-only") && run.stderr.contains("chmod u+w"),
        "{run:?}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "{}");
    assert_eq!(fs::read_dir(place.path().join(".cursor")).unwrap().count(), 1);
    fs::remove_file(&file).unwrap();
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    let run = place.run(&["connect", "cursor", "--yes"]);
    assert!(run.stderr.contains("is no regular file"), "{run:?}");
}

/// Each success is in the file, however many processes write it at the same time.
#[test]
fn no_success_is_lost_among_many_writers() {
    let place = place();
    for _ in 0..5 {
        let file = place.write(".cursor/mcp.json", "{\"mcpServers\": {}}");
        let done: usize = thread::scope(|scope| {
            let writers: Vec<_> = (0..8)
                .map(|number| {
                    let place = &place;
                    scope.spawn(move || {
                        let name = format!("s{number}");
                        let run = place.run(&["connect", "cursor", "--yes", "--name", &name]);
                        usize::from(run.code == 0)
                    })
                })
                .collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).sum()
        });
        let written: serde_json::Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        assert_eq!(
            written["mcpServers"].as_object().unwrap().len(),
            done,
            "{written}"
        );
        assert!(done > 0);
    }
}

#[test]
fn what_would_not_work_is_told() {
    let place = place();
    place.write("broken.yaml", "servers: [");
    let run = place.run(&["-c", "broken.yaml", "connect", "cursor", "--yes"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.stderr.contains("does not start with this configuration"),
        "{run:?}"
    );
    ok(&place, &["connect", "codex", "--yes"]);
    let file = place.path().join(".codex/config.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}enabled = false\n")).unwrap();
    let run = place.run(&["connect", "codex", "--yes"]);
    assert!(run.stdout.contains("connected already"), "{run:?}");
    assert!(
        run.stderr.contains("is switched off there by `enabled`"),
        "{run:?}"
    );
}

#[test]
fn variables_of_clients_move_their_files() {
    for (client, variable, file) in [
        ("goose", "GOOSE_PATH_ROOT", "moved/config/config.yaml"),
        ("gemini", "GEMINI_CLI_HOME", "moved/.gemini/settings.json"),
        ("continue", "CONTINUE_GLOBAL_DIR", "moved/config.yaml"),
    ] {
        let place = place();
        let moved = place.path().join("moved").display().to_string();
        let place = place.variable(variable, &moved);
        ok(&place, &["connect", client, "--yes"]);
        assert!(place.path().join(file).is_file(), "{client}");
    }
}

#[test]
fn the_users_switches_and_limits_stay() {
    let place = place();
    for (client, file, text) in [
        (
            "copilot",
            ".copilot/mcp-config.json",
            r#"{"mcpServers": {"toolplane": {"type": "local", "command": "toolplane", "args": ["serve"], "tools": ["safe__read"]}}}"#,
        ),
        (
            "goose",
            ".config/goose/config.yaml",
            "extensions:\n  toolplane: {name: toolplane, type: stdio, cmd: toolplane, args: [serve], enabled: false, timeout: 60}\n",
        ),
    ] {
        let path = place.write(file, text);
        for _ in 0..2 {
            let run = place.run(&["connect", client, "--yes"]);
            assert_eq!(run.code, 0, "{run:?}");
            let is_switched_off = run.stderr.contains("is switched off there by `enabled`");
            assert_eq!(is_switched_off, client == "goose", "{run:?}");
        }
        let written = fs::read_to_string(&path).unwrap();
        assert!(written.contains("--stdio"), "{written}");
        let kept = ["safe__read", "enabled: false", "timeout: 60"];
        let kept = kept.iter().filter(|kept| written.contains(**kept)).count();
        assert_eq!(kept, if client == "goose" { 2 } else { 1 }, "{written}");
    }
}

/// Codex refuses an entry with a URL and keys of a program.
#[test]
fn keys_of_another_connection_are_left_out() {
    let place = place();
    let text = "[mcp_servers.toolplane]\ncommand = \"toolplane\"\nargs = [\"serve\"]\nstartup_timeout_sec = 30\n\n[mcp_servers.toolplane.env]\nA = \"b\"\n";
    let path = place.write(".codex/config.toml", text);
    let url = ["connect", "codex", "--yes", "--http", "http://127.0.0.1:9/mcp"];
    let run = place.run(&url);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stderr.contains("`env` of the entry is left out"), "{run:?}");
    let written = fs::read_to_string(path).unwrap();
    assert!(
        written.contains("startup_timeout_sec = 30") && !written.contains("env"),
        "{written}"
    );
    // One that says both is not connected already.
    let text = format!(
        r#"{{"mcpServers": {{"toolplane": {{"command": "{BINARY}", "args": ["serve"], "url": "https://evil.example/mcp"}}}}}}"#
    );
    place.write(".cursor/mcp.json", &text);
    let run = place.run(&["connect", "cursor", "--yes"]);
    assert!(!run.stdout.contains("connected already"), "{run:?}");
}

/// The old form of Zed has variables below the command.
#[test]
fn nested_variables_of_zed_stay() {
    let place = place();
    let text = r#"{"context_servers": {"toolplane": {"command": {"path": "toolplane", "args": ["serve"], "env": {"K": "v"}}}}}"#;
    let path = place.write(".config/zed/settings.json", text);
    ok(&place, &["connect", "zed", "--yes"]);
    let written: serde_json::Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let entry = &written["context_servers"]["toolplane"];
    assert_eq!(
        (&entry["command"], &entry["env"]),
        (&json!(BINARY), &json!({"K": "v"}))
    );
}
