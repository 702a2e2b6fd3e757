//! An agent on real servers: a conversation of several rounds with calls side by side, recorded, and answered without the servers.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};
use tool_testkit::{PeerCommand, Peers};
use toolplane_tests::own_directories;

use crate::support::{Site, base_environment, binary, installed};

/// Turns of the model. Each expects what the tools answered before it.
fn script() -> Value {
    let zones = json!({"source_timezone": "UTC", "time": "16:30", "target_timezone": "Asia/Kolkata"});
    json!([
        {"text": "I look.", "calls": [
            {"tool": "everything__echo", "arguments": {"message": "wrens"}},
            {"tool": "time__convert_time", "arguments": zones},
            {"tool": "data", "arguments": {}},
        ]},
        {"expect": ["Echo: wrens", "22:00", "12345678901234567890123"], "calls": [
            {"tool": "everything__echo", "arguments": {"message": "robins"}},
            {"tool": "time__convert_time", "arguments": {"source_timezone": "UTC", "time": "25:99", "target_timezone": "UTC"}},
        ]},
        {"expect": ["Echo: robins", "Invalid time"], "text": "Done."},
    ])
}

fn configuration(everything: &Value, time: &Value, url: &str) -> Value {
    json!({
        "servers": {"everything": everything, "time": time},
        "tools": {"data": {"description": "Data.", "executor": {"kind": "http", "method": "GET", "url": url, "allow_private": true}}},
    })
}

fn server(peer: &PeerCommand) -> Value {
    let text = |text: &std::ffi::OsStr| text.to_str().unwrap().to_owned();
    let args: Vec<String> = peer.args.iter().map(|arg| text(arg)).collect();
    json!({"command": peer.program.to_str().unwrap(), "args": args, "start_timeout_ms": 60_000})
}

/// Runs the agent. Returns its answer, and what it showed of the calls.
fn run(folder: &Path, configuration: &Value, options: &[&str]) -> (String, Vec<String>) {
    fs::write(folder.join("toolplane.yaml"), configuration.to_string()).unwrap();
    fs::write(folder.join("turns.json"), script().to_string()).unwrap();
    let mut command = Command::new(binary());
    command.env_clear().envs(base_environment()).current_dir(folder);
    own_directories(&mut command, folder);
    command
        .args(["agent", "run", "--script", "turns.json"])
        .args(options)
        .arg("What is there?");
    let output = command.output().unwrap();
    let shown = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{shown}");
    let calls = shown
        .lines()
        .filter(|line| line.starts_with("-> ") || line.starts_with("<- "));
    let calls = calls.map(str::to_owned).collect();
    (String::from_utf8(output.stdout).unwrap(), calls)
}

#[test]
fn a_conversation_on_real_servers_is_recorded_and_answered_without_them() {
    let Some(everything) = installed(|peers: &Peers| peers.everything("stdio")) else {
        return;
    };
    let Some(time) = installed(Peers::time) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let url = Site::open().url("/data.json");
    let real = configuration(&server(&everything), &server(&time), &url);
    let (answer, calls) = run(folder.path(), &real, &["--record", "session"]);
    assert_eq!(answer, "Done.\n");
    assert_eq!(calls.len(), 10, "{calls:?}");
    let files = fs::read_dir(folder.path().join("session/calls")).unwrap();
    assert_eq!(files.count(), 5);

    let nothing = json!({"command": "/nowhere/there-is-no-such-program"});
    let offline = configuration(&nothing, &nothing, "http://127.0.0.1:9/");
    let (again, replayed) = run(folder.path(), &offline, &["--replay", "session"]);
    assert_eq!(again, answer);
    assert_eq!(replayed, calls);
}
