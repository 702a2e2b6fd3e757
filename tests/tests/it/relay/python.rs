//! Servers from PyPI: all but one speak both eras.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use tool_testkit::Peers;

use super::{Call, call, compare, direct, prompt, relayed};
use crate::support::{Configuration, Era, Site, installed};

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
        call("get_current_time", json!({"timezone": "UTC"})).at_some_time(),
        call("get_current_time", json!({"timezone": "Mars/Olympus"})),
        // The result contains today's date.
        call("convert_time", zones("16:30", "Asia/Kolkata")).at_some_time(),
        call("convert_time", zones("25:99", "UTC")),
    ]
}

#[test]
fn server_time_in_the_modern_era() {
    let Some(peer) = installed(Peers::time) else {
        return;
    };
    let configuration = Configuration::default().peer_with("peer", &peer, &json!({"era": "modern"}));
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
    // The hash of a commit depends on its dates and authors.
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

/// Creates a repository with a commit, a change and a new file.
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

#[test]
fn server_fetch() {
    let Some(peer) = installed(Peers::fetch) else {
        return;
    };
    let site = Site::open();
    relayed(&peer, &calls_of_fetch(&site), || {});
}

fn calls_of_fetch(site: &Site) -> Vec<Call> {
    let url = |path: &str| json!({"url": site.url(path)});
    let with = |path: &str, key: &str, value: Value| {
        let mut arguments = url(path);
        arguments[key] = value;
        arguments
    };
    vec![
        call("fetch", url("/page")),
        call("fetch", with("/page", "raw", json!(true))),
        call("fetch", with("/page", "max_length", json!(10))),
        call("fetch", with("/page", "start_index", json!(10_000))),
        call("fetch", url("/data.json")),
        call("fetch", url("/missing")),
        // `robots.txt` forbids it to programs.
        call("fetch", url("/private/page")),
        call("fetch", json!({"url": "not an address"})),
        prompt("fetch", url("/page")),
        // Requests of the user are not subject to `robots.txt`.
        prompt("fetch", url("/private/page")),
        prompt("fetch", url("/missing")),
        prompt("fetch", "{}"),
    ]
}

#[test]
fn server_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tables.db");
    let Some(peer) = installed(|peers| peers.sqlite(&file)) else {
        return;
    };
    let query = |query: &str| json!({"query": query});
    let calls = [
        prompt("mcp-demo", json!({"topic": "birds \u{1f426}"})),
        prompt("mcp-demo", "{}"),
        call("list_tables", "{}"),
        call(
            "create_table",
            query("CREATE TABLE birds (name TEXT, weight REAL, rings INTEGER)"),
        ),
        call(
            "write_query",
            query(
                "INSERT INTO birds VALUES ('Zaunk\u{f6}nig \u{1f426}', 8.5, 9007199254740993), ('it''s \"x\"', NULL, 0)",
            ),
        ),
        call("read_query", query("SELECT * FROM birds ORDER BY name")),
        call("describe_table", json!({"table_name": "birds"})),
        call("list_tables", "{}"),
        call("append_insight", json!({"insight": "Wrens weigh little."})),
        call("read_query", query("DROP TABLE birds")),
        call("read_query", query("SELECT * FROM fish")),
        call("write_query", query("SELECT 1")),
    ];
    relayed(&peer, &calls, || {
        let _ = fs::remove_file(&file);
    });
}
