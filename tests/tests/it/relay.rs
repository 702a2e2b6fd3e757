//! What a tool answers directly is what it answers through the gateway, to the letter: every tool of five servers
//! that nobody here wrote, over both transports.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use tool_testkit::{PeerCommand, Peers};

use crate::support::{
    Answer, Client, Configuration, Era, Gateway, HttpClient, StdioClient, assert_same_result,
    assert_same_tool, base_environment, installed, listening_peer,
};

/// A call of a server's tool, and how its two results are compared.
struct Call {
    tool: &'static str,
    arguments: String,
    compare: Compare,
}

#[derive(Clone, Copy, PartialEq)]
enum Compare {
    /// Every member has the same text.
    Text,
    /// The same but for digits and sessions: the result tells the time, which goes on between two calls.
    Shape,
}

/// The text of a JSON object.
struct Arguments(String);

impl From<Value> for Arguments {
    fn from(value: Value) -> Self {
        Self(value.to_string())
    }
}

impl From<&str> for Arguments {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

fn call(tool: &'static str, arguments: impl Into<Arguments>) -> Call {
    Call {
        tool,
        arguments: arguments.into().0,
        compare: Compare::Text,
    }
}

fn call_at_some_time(tool: &'static str, arguments: impl Into<Arguments>) -> Call {
    Call {
        compare: Compare::Shape,
        ..call(tool, arguments)
    }
}

/// Lists and calls the tools of a server directly and through the gateway, and compares. `prepare` brings what the
/// server works on into the same state before each round.
fn relayed(peer: &PeerCommand, calls: &[Call], prepare: impl Fn()) {
    prepare();
    let mut direct = direct(peer, Era::Legacy);
    compare(
        &Configuration::default().peer("peer", peer),
        &mut direct,
        calls,
        prepare,
    );
}

/// The server without a gateway, in the environment that the gateway gives it.
fn direct(peer: &PeerCommand, era: Era) -> StdioClient {
    let mut command = peer.to_command();
    command
        .env_clear()
        .envs(base_environment())
        .envs(peer.env.iter().map(|(name, value)| (name, value)));
    StdioClient::start(&mut command, era)
}

/// Compares a server, spoken to directly, with what a gateway makes of it that has it under the name `peer`: over
/// stdio, and over HTTP in both eras.
fn compare(configuration: &Configuration, direct: &mut impl Client, calls: &[Call], prepare: impl Fn()) {
    // Both gateways start at the same time; what the servers work on stays as it is until they have started.
    let mut stdio = Gateway::stdio(configuration);
    let http = Gateway::http(configuration);
    let tools = direct.tools();
    for (tool, _) in &tools {
        let called = calls.iter().any(|call| call.tool == tool);
        assert!(called, "no call of `{tool}` in the table of this test");
    }
    let (mut legacy, mut modern) = (http.client(Era::Legacy), http.client(Era::Modern));
    let mut clients: [(&str, &mut dyn Client); 3] = [
        ("over stdio", &mut stdio.client),
        ("over HTTP in the legacy era", &mut legacy),
        ("over HTTP in the modern era", &mut modern),
    ];
    for (way, client) in &mut clients {
        assert_same_tools(way, &tools, &client.tools());
    }
    prepare();
    let expected: Vec<Answer> = calls
        .iter()
        .map(|call| direct.call(call.tool, &call.arguments))
        .collect();
    for (way, client) in &mut clients {
        prepare();
        assert_same_answers(way, *client, calls, &expected);
    }
    assert_eq!(stdio.end().code(), Some(0));
    assert_eq!(http.terminate().code(), Some(0));
}

fn assert_same_tools(way: &str, tools: &[(String, String)], relayed: &[(String, String)]) {
    assert_eq!(relayed.len(), tools.len(), "{way}");
    for (name, definition) in tools {
        let outward = format!("peer__{name}");
        let (_, found) = relayed
            .iter()
            .find(|(name, _)| *name == outward)
            .unwrap_or_else(|| panic!("`{outward}` is not listed {way}"));
        assert_same_tool(&format!("`{outward}` {way}"), definition, found);
    }
}

fn assert_same_answers(way: &str, client: &mut dyn Client, calls: &[Call], expected: &[Answer]) {
    for (call, direct) in calls.iter().zip(expected) {
        let what = format!("`{}` with {} {way}", call.tool, call.arguments);
        let relayed = client
            .call(&format!("peer__{}", call.tool), &call.arguments)
            .result();
        let direct = direct.clone().result();
        match call.compare {
            Compare::Text => assert_same_result(&what, &direct, &relayed),
            Compare::Shape => assert_same_result(&what, &shape(&direct), &shape(&relayed)),
        }
    }
}

/// The text with every run of digits made one digit, every UUID one letter, and the afternoon morning.
fn shape(text: &str) -> String {
    let (mut shape, mut rest) = (String::new(), text);
    while let Some(c) = rest.chars().next() {
        if rest.get(..36).is_some_and(is_uuid) {
            shape.push('U');
            rest = &rest[36..];
            continue;
        }
        match c {
            '0'..='9' if shape.ends_with('0') => {}
            '0'..='9' => shape.push('0'),
            c => shape.push(c),
        }
        rest = &rest[c.len_utf8()..];
    }
    shape.replace("PM", "AM")
}

fn is_uuid(text: &str) -> bool {
    let is_right = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.bytes().enumerate().all(is_right)
}

#[test]
fn server_everything() {
    let Some(peer) = installed(|peers| peers.everything("stdio")) else {
        return;
    };
    let mut calls = calls_of_everything();
    calls.extend([
        // That the two are equal shows as well that no other variable reaches a server.
        call("get-env", "{}"),
        call("toggle-simulated-logging", "{}"),
        call("toggle-simulated-logging", "{}"),
        call("toggle-subscriber-updates", "{}"),
        call("toggle-subscriber-updates", "{}"),
    ]);
    relayed(&peer, &calls, || {});
}

#[test]
fn server_everything_over_http() {
    let Some(command) = installed(|peers| peers.everything("streamableHttp")) else {
        return;
    };
    let (_server, address) = listening_peer(&command);
    let url = json!({"url": format!("http://{address}/mcp")});
    let mut calls = calls_of_everything();
    calls.extend([
        call("get-env", "{}"),
        // Tells the session, of which each client has its own.
        call_at_some_time("toggle-simulated-logging", "{}"),
        call_at_some_time("toggle-simulated-logging", "{}"),
        call_at_some_time("toggle-subscriber-updates", "{}"),
        call_at_some_time("toggle-subscriber-updates", "{}"),
    ]);
    let mut direct = HttpClient::open_at(address, Era::Legacy);
    compare(
        &Configuration::default().server("peer", url),
        &mut direct,
        &calls,
        || {},
    );
}

/// What can be called of it with the same result wherever it is.
fn calls_of_everything() -> Vec<Call> {
    let data = "data:text/plain,hello";
    vec![
        call(
            "echo",
            json!({"message": "Grüße \u{1f44b} \"quoted\" \\ and \u{7f}"}),
        ),
        // As nobody would write it, with a number that no double holds.
        call(
            "echo",
            r#"{ "message" : "\u0041\u00e9",  "unknown": 12345678901234567890123 }"#,
        ),
        call(
            "get-annotated-message",
            json!({"messageType": "error", "includeImage": true}),
        ),
        call("get-annotated-message", json!({"messageType": "debug"})),
        call("get-resource-links", json!({"count": 10})),
        call_at_some_time(
            "get-resource-reference",
            json!({"resourceType": "Text", "resourceId": 3}),
        ),
        call("get-structured-content", json!({"location": "Chicago"})),
        call("get-sum", r#"{"a": 1e2, "b": -0.5}"#),
        call("get-tiny-image", "{}"),
        call(
            "gzip-file-as-resource",
            json!({"name": "a.gz", "data": data, "outputType": "resource"}),
        ),
        call("gzip-file-as-resource", json!({"name": "b.gz", "data": data})),
        call(
            "trigger-long-running-operation",
            json!({"duration": 0.2, "steps": 2}),
        ),
        // It can be called as a task only and says so.
        call("simulate-research-query", json!({"topic": "x"})),
    ]
}

#[test]
fn server_filesystem() {
    let folder = tempfile::tempdir().unwrap();
    // Servers tell real paths.
    let root = folder.path().canonicalize().unwrap();
    let Some(peer) = installed(|peers| peers.filesystem(&root)) else {
        return;
    };
    let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
    // Made once, so that all that is told of it stays as it is.
    fs::write(root.join("fixed.bin"), [0, 1, 2, 255]).unwrap();
    let prepare = || {
        for name in ["work", "new"] {
            let _ = fs::remove_dir_all(root.join(name));
        }
        fs::create_dir_all(root.join("work/deep/er")).unwrap();
        fs::write(root.join("work/a.txt"), "one\ntwo\r\nthree \u{1f980}\n").unwrap();
        fs::write(root.join("work/deep/b.md"), "# Title\n").unwrap();
        fs::write(root.join("work/pixel.png"), b"\x89PNG\r\n\x1a\n").unwrap();
    };
    let edit = json!({"path": path("work/a.txt"), "edits": [{"oldText": "two", "newText": "2"}]});
    let calls = [
        call("list_allowed_directories", "{}"),
        call("get_file_info", json!({"path": path("fixed.bin")})),
        call("read_file", json!({"path": path("work/a.txt")})),
        call("read_text_file", json!({"path": path("work/a.txt"), "head": 2})),
        call("read_text_file", json!({"path": path("missing.txt")})),
        call("read_media_file", json!({"path": path("work/pixel.png")})),
        call(
            "read_multiple_files",
            json!({"paths": [path("work/a.txt"), path("nothing")]}),
        ),
        call("directory_tree", json!({"path": path("work")})),
        call("list_directory", json!({"path": path("work")})),
        call(
            "list_directory_with_sizes",
            json!({"path": path("work"), "sortBy": "size"}),
        ),
        call(
            "search_files",
            json!({"path": path("work"), "pattern": "**/*.md"}),
        ),
        call("create_directory", json!({"path": path("new/dir")})),
        call(
            "write_file",
            json!({"path": path("new/dir/c.txt"), "content": "x".repeat(100_000)}),
        ),
        call("edit_file", edit),
        call(
            "move_file",
            json!({"source": path("new/dir/c.txt"), "destination": path("new/d.txt")}),
        ),
        call("read_file", json!({"path": path("new/d.txt")})),
        call("read_file", json!({"path": path("work/a.txt")})),
        call("read_file", json!({"path": "/etc/hostname"})),
    ];
    relayed(&peer, &calls, prepare);
}

#[test]
fn server_memory() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("memory.jsonl");
    let Some(peer) = installed(|peers| peers.memory(&file)) else {
        return;
    };
    let ada = json!({"name": "Ada", "entityType": "person", "observations": ["counts", "löscht \"nichts\""]});
    let engine = json!({"name": "Engine", "entityType": "machine", "observations": []});
    let relation = json!({"from": "Ada", "to": "Engine", "relationType": "programs"});
    let calls = [
        call("create_entities", json!({"entities": [ada, engine]})),
        call("create_relations", json!({"relations": [relation]})),
        call(
            "add_observations",
            json!({"observations": [{"entityName": "Ada", "contents": ["writes"]}]}),
        ),
        call(
            "add_observations",
            json!({"observations": [{"entityName": "Nobody", "contents": ["x"]}]}),
        ),
        call("read_graph", "{}"),
        call("search_nodes", json!({"query": "counts"})),
        call("open_nodes", json!({"names": ["Engine"]})),
        call(
            "delete_observations",
            json!({"deletions": [{"entityName": "Ada", "observations": ["counts"]}]}),
        ),
        call("delete_relations", json!({"relations": [relation]})),
        call("delete_entities", json!({"entityNames": ["Engine"]})),
        call("read_graph", "{}"),
    ];
    relayed(&peer, &calls, || {
        let _ = fs::remove_file(&file);
    });
}

#[test]
fn server_time() {
    let Some(peer) = installed(Peers::time) else {
        return;
    };
    relayed(&peer, &calls_of_time(), || {});
}

fn calls_of_time() -> Vec<Call> {
    let zones =
        |time: &str, target: &str| json!({"source_timezone": "UTC", "time": time, "target_timezone": target});
    vec![
        call_at_some_time("get_current_time", json!({"timezone": "UTC"})),
        call("get_current_time", json!({"timezone": "Mars/Olympus"})),
        // Tells today's date.
        call_at_some_time("convert_time", zones("16:30", "Asia/Kolkata")),
        call("convert_time", zones("25:99", "UTC")),
    ]
}

#[test]
fn server_time_in_the_modern_era() {
    let Some(peer) = installed(Peers::time) else {
        return;
    };
    let configuration = Configuration::default().peer_of_era("peer", &peer, "modern");
    let mut direct = direct(&peer, Era::Modern);
    compare(&configuration, &mut direct, &calls_of_time(), || {});
}

#[test]
fn server_git() {
    if !Command::new("git")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
    {
        return tool_testkit::skip("`git` is not installed; the server needs it and a repository");
    }
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap().join("repository");
    let Some(peer) = installed(|peers| peers.git(&root)) else {
        return;
    };
    // Commits are named by a hash over their dates and authors.
    let peer = git_variables()
        .into_iter()
        .fold(peer, |peer, (name, value)| peer.env(name, value));
    let at = |mut arguments: Value| {
        arguments["repo_path"] = json!(root.to_str().unwrap());
        arguments
    };
    let calls = [
        call("git_status", at(json!({}))),
        call("git_diff_unstaged", at(json!({"context_lines": 1}))),
        call("git_diff_staged", at(json!({}))),
        call("git_add", at(json!({"files": ["a.txt"]}))),
        call("git_diff_staged", at(json!({}))),
        call("git_commit", at(json!({"message": "second ✨"}))),
        call("git_log", at(json!({"max_count": 5}))),
        call("git_show", at(json!({"revision": "HEAD"}))),
        call("git_create_branch", at(json!({"branch_name": "topic"}))),
        call("git_checkout", at(json!({"branch_name": "topic"}))),
        call("git_branch", at(json!({"branch_type": "local"}))),
        call("git_diff", at(json!({"target": "HEAD~1"}))),
        call("git_diff", at(json!({"target": "--output=x"}))),
        call("git_add", at(json!({"files": ["b.txt"]}))),
        call("git_reset", at(json!({}))),
        call("git_status", json!({"repo_path": "/"})),
    ];
    relayed(&peer, &calls, || repository(&root));
}

fn git_variables() -> Vec<(&'static str, &'static str)> {
    let date = "1767323045 +0000";
    vec![
        ("GIT_AUTHOR_DATE", date),
        ("GIT_COMMITTER_DATE", date),
        ("GIT_AUTHOR_NAME", "Ada"),
        ("GIT_COMMITTER_NAME", "Ada"),
        ("GIT_AUTHOR_EMAIL", "ada@example.org"),
        ("GIT_COMMITTER_EMAIL", "ada@example.org"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
    ]
}

/// Makes a repository with a commit, a change and a new file.
fn repository(root: &Path) {
    let _ = fs::remove_dir_all(root);
    fs::create_dir_all(root).unwrap();
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command
            .current_dir(root)
            .args(args)
            .envs(git_variables())
            .stdout(Stdio::null());
        assert!(command.status().unwrap().success(), "git {args:?}");
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    fs::write(root.join("a.txt"), "one\ntwo\n").unwrap();
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message=first"]);
    fs::write(root.join("a.txt"), "one\n2\nthree\n").unwrap();
    fs::write(root.join("b.txt"), "new\n").unwrap();
}
