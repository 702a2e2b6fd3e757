//! Tests of the installed peers: they are found, report missing parts, and answer.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;
use tool_testkit::{PeerCommand, Peers, Skip};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}"#;

/// Checks that a server answers `initialize`, or reports the skip.
async fn check_answers(server: Result<PeerCommand, Skip>) {
    let server = match server {
        Ok(server) => server,
        Err(skip) => return skip.report(),
    };
    let mut child = Command::from(server.to_command())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(format!("{INITIALIZE}\n").as_bytes())
        .await
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let answer = timeout(Duration::from_secs(120), lines.next_line())
        .await
        .unwrap()
        .unwrap();
    assert!(
        answer
            .as_ref()
            .is_some_and(|line| line.contains("\"serverInfo\"")),
        "{server:?} said {answer:?}"
    );
    child.kill().await.unwrap();
}

#[tokio::test]
async fn everything_answers() {
    check_answers(Peers::from_env().and_then(|peers| peers.everything("stdio"))).await;
}

#[tokio::test]
async fn filesystem_answers() {
    let folder = tempfile::tempdir().unwrap();
    check_answers(Peers::from_env().and_then(|peers| peers.filesystem(folder.path()))).await;
}

#[tokio::test]
async fn memory_answers() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("memory.json");
    check_answers(Peers::from_env().and_then(|peers| peers.memory(&file))).await;
}

#[tokio::test]
async fn sequential_thinking_answers() {
    check_answers(Peers::from_env().and_then(|peers| peers.sequential_thinking())).await;
}

#[tokio::test]
async fn fetch_answers() {
    check_answers(Peers::from_env().and_then(|peers| peers.fetch())).await;
}

#[tokio::test]
async fn sqlite_answers() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tables.db");
    check_answers(Peers::from_env().and_then(|peers| peers.sqlite(&file))).await;
}

#[tokio::test]
async fn time_answers() {
    check_answers(Peers::from_env().and_then(|peers| peers.time())).await;
}

#[tokio::test]
async fn git_answers() {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new("git")
        .arg("init")
        .arg("--quiet")
        .arg(folder.path())
        .status()
        .await;
    if !made.is_ok_and(|status| status.success()) {
        return tool_testkit::skip("`git` is not installed");
    }
    check_answers(Peers::from_env().and_then(|peers| peers.git(folder.path()))).await;
}

#[tokio::test]
async fn the_inspector_lists_tools() {
    let peers = Peers::from_env().and_then(|peers| Ok((peers.inspector()?, peers.everything("stdio")?)));
    let (inspector, server) = match peers {
        Ok(peers) => peers,
        Err(skip) => return skip.report(),
    };
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::from(inspector.env("HOME", home.path()).to_command());
    command
        .arg(&server.program)
        .args(&server.args)
        .args(["--method", "tools/list"])
        .kill_on_drop(true);
    let output = timeout(Duration::from_secs(120), command.output())
        .await
        .unwrap()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("\"get-sum\""),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn what_is_missing_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let absent = Peers::at(folder.path().join("absent")).unwrap_err();
    assert_eq!(
        absent.reason(),
        "no peers are installed; `cargo xtask peers` installs them"
    );

    // An interrupted installation has the programs but not the mark that ends it.
    let program = folder.path().join("python/bin/mcp-server-time");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::write(&program, "").unwrap();
    let peers = Peers::at(folder.path()).unwrap();
    assert_eq!(
        peers.time().unwrap_err().reason(),
        "`mcp-server-time` is not installed; `cargo xtask peers` says why",
    );
    fs::write(folder.path().join("python/installed"), "").unwrap();
    assert_eq!(peers.time().unwrap().program, program);
    assert_eq!(
        peers.everything("stdio").unwrap_err().reason(),
        "`@modelcontextprotocol/server-everything` is not installed; `cargo xtask peers` says why",
    );
    assert_eq!(peers.node(), Path::new("node"));
}
