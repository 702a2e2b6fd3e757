//! Tests of child processes: none may be left behind, none may block a call.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use mcp_client::{
    BASE_VARIABLES, ClientError, ClientErrorKind, Command, Connection, ConnectionOptions, Endpoint,
    RequestOptions, ServerState, Upstream, UpstreamOptions,
};
use raw_json::RawJson;
use tokio::time::{Instant, timeout};

use crate::support::{
    fixture,
    memory::resident_peak,
    peer::{raw, says_each_thing_once, within},
};

const PATIENCE: Duration = Duration::from_secs(60);

/// Fixture that writes into a file.
fn noting(mode: &str) -> (Command, tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("notes");
    (fixture::command(mode).args([&file]), directory, file)
}

fn options() -> ConnectionOptions {
    ConnectionOptions::default().shutdown_grace(Duration::from_millis(300))
}

async fn spawn(command: &Command) -> Connection {
    timeout(PATIENCE, Connection::spawn(command, options()))
        .await
        .unwrap()
        .unwrap()
}

async fn call(connection: &Connection) -> Result<RawJson, ClientError> {
    let params = raw(r#"{"name":"echo","n":1e2}"#);
    let options = RequestOptions::default().timeout(Duration::from_secs(20));
    timeout(PATIENCE, connection.request("tools/call", Some(params), options))
        .await
        .unwrap()
}

/// Process ids that a fixture recorded.
fn pids(file: &Path) -> Vec<u32> {
    fs::read_to_string(file)
        .unwrap()
        .lines()
        .map(|line| line.parse().unwrap())
        .collect()
}

/// `true` if a process is running and not waiting to be reaped.
fn runs(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = stat.rsplit_once(") ").unwrap().1.chars().next().unwrap();
    !matches!(state, 'Z' | 'X')
}

async fn is_gone(pid: u32) {
    let gone = async {
        while runs(pid) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, gone).await.expect("a process was left behind");
}

#[tokio::test]
async fn a_server_is_listed_and_called() {
    let connection = spawn(&fixture::command("echo")).await;
    let server = connection.server();
    assert_eq!(
        (server.name().as_deref(), server.version().as_deref()),
        (Some("fixture"), Some("1"))
    );
    assert_eq!(server.revision.as_str(), "2025-11-25");
    assert_eq!(server.instructions.as_ref().unwrap().as_str(), r#""be kind""#);
    let tools = connection.list_tools().await.unwrap();
    assert_eq!(
        tools[0].as_str(),
        r#"{"name":"echo","inputSchema":{"type":"object"}}"#
    );
    assert_eq!(
        call(&connection).await.unwrap().as_str(),
        r#"{"name":"echo","n":1e2}"#
    );
    timeout(PATIENCE, connection.shutdown()).await.unwrap();
    let error = call(&connection).await.unwrap_err();
    assert!(
        matches!(error.kind(), ClientErrorKind::Closed(_)) && !error.was_sent(),
        "{error}"
    );
}

#[tokio::test]
async fn a_child_sees_the_base_environment_and_what_it_is_given() {
    let command = fixture::command("environment").env("GRANTED", "1");
    let connection = spawn(&command).await;
    let names = call(&connection).await.unwrap().string().unwrap();
    assert!(names.contains("GRANTED"));
    for name in names.split_whitespace() {
        assert!(
            ["GRANTED", "MCP_CLIENT_TREE"].contains(&name) || BASE_VARIABLES.contains(&name),
            "`{name}` reached the child"
        );
    }
    assert!(!format!("{command:?}").contains("\"1\""));
}

#[tokio::test]
async fn a_program_that_is_not_there() {
    let error = Connection::spawn(&Command::new("/no/such/program"), options())
        .await
        .unwrap_err();
    let ClientErrorKind::StartFailed { reason, .. } = error.kind() else {
        panic!("{error}")
    };
    assert!(reason.contains("/no/such/program"), "{reason}");
    says_each_thing_once(&error);
    assert!(!error.was_sent());
}

#[tokio::test]
async fn a_program_that_ends_at_once_says_why() {
    let error = timeout(PATIENCE, Connection::spawn(&fixture::command("exit"), options()))
        .await
        .unwrap()
        .unwrap_err();
    let ClientErrorKind::StartFailed { reason, stderr, .. } = error.kind() else {
        panic!("{error}")
    };
    assert!(reason.contains("exit status: 3"), "{reason}");
    assert_eq!(stderr, "no license found");
}

#[tokio::test]
async fn a_server_that_never_opens_the_connection() {
    let options = options().start_timeout(Duration::from_millis(300));
    let error = timeout(PATIENCE, Connection::spawn(&fixture::command("silent"), options))
        .await
        .unwrap()
        .unwrap_err();
    assert!(
        matches!(error.kind(), ClientErrorKind::StartFailed { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_that_ends_in_the_middle_of_a_call() {
    let connection = spawn(&fixture::command("exit-mid-call")).await;
    let error = call(&connection).await.unwrap_err();
    assert!(error.was_sent());
    assert_eq!(
        error.to_string(),
        "the connection is closed: the server has ended with exit status: 7"
    );
    assert_eq!(connection.stderr_tail().as_deref(), Some("out of cheese"));
    assert!(connection.is_closed());
}

#[tokio::test]
async fn grandchildren_end_with_the_server() {
    for mode in ["grandchild", "grandchild-left"] {
        let (command, _directory, file) = noting(mode);
        let connection = spawn(&command).await;
        let grandchild = pids(&file)[0];
        assert!(runs(grandchild));
        if mode == "grandchild" {
            timeout(PATIENCE, connection.shutdown()).await.unwrap();
        } else {
            // The server ends during the call and leaves its child, which keeps the output open.
            assert!(matches!(
                call(&connection).await.unwrap_err().kind(),
                ClientErrorKind::Closed(_)
            ));
        }
        is_gone(grandchild).await;
    }
}

#[tokio::test]
async fn what_left_the_process_group_ends_with_the_server() {
    for mode in ["daemon", "daemon-left", "session"] {
        let (command, _directory, file) = noting(mode);
        let connection = spawn(&command).await;
        let started = async {
            while !file.exists() || pids(&file).is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, started).await.unwrap();
        let daemon = pids(&file)[0];
        assert!(runs(daemon));
        if mode == "daemon-left" {
            call(&connection).await.unwrap_err();
            connection.closed().await;
        }
        timeout(PATIENCE, connection.shutdown()).await.unwrap();
        is_gone(daemon).await;
    }
}

#[tokio::test]
async fn a_connection_that_is_dropped_leaves_no_daemon() {
    let (command, _directory, file) = noting("daemon");
    let connection = spawn(&command).await;
    let started = async {
        while !file.exists() || pids(&file).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, started).await.unwrap();
    drop(connection);
    is_gone(pids(&file)[0]).await;
}

#[tokio::test]
async fn a_server_that_ignores_the_end_of_its_input_and_sigterm() {
    let (command, _directory, file) = noting("stubborn");
    let connection = spawn(&command).await;
    let pid = pids(&file)[0];
    timeout(PATIENCE, connection.shutdown()).await.unwrap();
    assert!(!runs(pid));
}

#[tokio::test]
async fn dropping_the_last_clone_kills_at_once() {
    let (command, _directory, file) = noting("stubborn");
    let connection = spawn(&command).await;
    let clone = connection.clone();
    drop(connection);
    let pid = pids(&file)[0];
    assert!(runs(pid));
    drop(clone);
    is_gone(pid).await;
}

#[test]
fn a_runtime_that_ends_takes_its_children_along() {
    let (command, _directory, file) = noting("stubborn");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let connection = runtime.block_on(spawn(&command));
    let pid = pids(&file)[0];
    // The connection still exists when the runtime ends, as in a program that exits in a hurry.
    runtime.shutdown_background();
    let start = std::time::SystemTime::now();
    while runs(pid) && start.elapsed().unwrap() < PATIENCE {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!runs(pid));
    drop(connection);
}

#[tokio::test]
async fn a_program_that_drops_its_connection_and_ends_leaves_nothing() {
    let (_, _directory, file) = noting("stubborn");
    let mut parent = tokio::process::Command::new(fixture::path());
    let status = timeout(PATIENCE, parent.arg("parent").arg(&file).status())
        .await
        .unwrap()
        .unwrap();
    assert!(status.success());
    is_gone(pids(&file)[0]).await;
}

#[tokio::test]
async fn a_server_that_stops_reading_is_killed() {
    let options = options().write_stall(Duration::from_millis(300));
    let connection = timeout(PATIENCE, Connection::spawn(&fixture::command("deaf"), options))
        .await
        .unwrap()
        .unwrap();
    // The first call puts the server to sleep, the second fills the pipe.
    let large = raw(&format!(r#"{{"name":"{}"}}"#, "x".repeat(200_000)));
    let first = connection.request("tools/call", None, within(30));
    let second = connection.request("tools/call", Some(large), within(30));
    let (first, second) = timeout(PATIENCE, async { tokio::join!(first, second) })
        .await
        .unwrap();
    for error in [first.unwrap_err(), second.unwrap_err()] {
        assert_eq!(
            error.to_string(),
            "the connection is closed: the server stopped reading its input"
        );
        assert!(error.was_sent());
    }
    assert!(connection.is_closed());
}

#[tokio::test]
async fn a_flood_on_stderr_holds_nothing_up() {
    let connection = spawn(&fixture::command("stderr-flood")).await;
    call(&connection).await.unwrap();
    assert!(connection.stderr_tail().unwrap().len() <= 8 * 1024);
}

#[tokio::test]
async fn a_line_of_100_megabytes_fails_its_call_only() {
    let connection = spawn(&fixture::command("huge")).await;
    let before = resident_peak();
    let error = call(&connection).await.unwrap_err();
    assert!(
        matches!(
            error.kind(),
            ClientErrorKind::TooLarge {
                limit: 16_777_216,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.was_sent());
    let grown = resident_peak() - before;
    assert!(grown < 64 << 20, "memory grew by {grown} bytes");
    assert_eq!(
        call(&connection).await.unwrap().as_str(),
        r#"{"name":"echo","n":1e2}"#
    );
    assert_eq!(connection.stats().oversize, 1);
}

#[tokio::test]
async fn a_thousand_first_calls_start_one_server() {
    let (command, _directory, file) = noting("count");
    let upstream = Upstream::new(Endpoint::Stdio(command), UpstreamOptions::default());
    assert_eq!(upstream.status().state, ServerState::NotStarted);
    let calls: Vec<_> = (0..1000)
        .map(|_| {
            let upstream = upstream.clone();
            tokio::spawn(async move { upstream.request("tools/call", None, within(50)).await })
        })
        .collect();
    for call in calls {
        timeout(PATIENCE, call).await.unwrap().unwrap().unwrap();
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "start\n");
    let status = upstream.status();
    assert_eq!((status.state, status.restarts), (ServerState::Ready, 0));
    assert_eq!(status.server.unwrap().name().as_deref(), Some("fixture"));
    timeout(PATIENCE, upstream.shutdown()).await.unwrap();
    assert_eq!(upstream.status().state, ServerState::Stopped);
}

#[tokio::test]
async fn a_server_that_ends_at_once_in_a_loop_is_left_in_peace() {
    let (command, _directory, file) = noting("exit");
    let upstream = Upstream::new(Endpoint::Stdio(command), UpstreamOptions::default());
    let error = timeout(PATIENCE, upstream.connection())
        .await
        .unwrap()
        .unwrap_err();
    assert!(matches!(error.kind(), ClientErrorKind::StartFailed { .. }));
    let start = Instant::now();
    let mut calls = 0;
    while start.elapsed() < Duration::from_millis(200) {
        let error = upstream.connection().await.unwrap_err();
        let ClientErrorKind::Unavailable { reason, .. } = error.kind() else {
            panic!("{error}")
        };
        assert!(reason.contains("exit status: 3"), "{reason}");
        calls += 1;
    }
    assert!(calls > 10);
    assert_eq!(fs::read_to_string(&file).unwrap(), "start\n");
    let status = upstream.status();
    assert_eq!(status.state, ServerState::Backoff);
    assert_eq!(status.stderr.as_deref(), Some("no license found"));
}

#[tokio::test]
async fn a_server_that_ended_is_started_again_when_it_is_needed() {
    let upstream = Upstream::new(fixture::command("exit-mid-call"), UpstreamOptions::default());
    let mut changes = upstream.changes();
    let error = upstream
        .request("tools/call", None, within(20))
        .await
        .unwrap_err();
    assert!(
        matches!(error.kind(), ClientErrorKind::Closed(_)) && error.was_sent(),
        "{error}"
    );
    assert_eq!(upstream.status().state, ServerState::Backoff);
    assert_eq!(upstream.status().stderr.as_deref(), Some("out of cheese"));
    let error = upstream
        .request("tools/list", None, within(20))
        .await
        .unwrap_err();
    let ClientErrorKind::Unavailable { retry_in, .. } = error.kind() else {
        panic!("{error}")
    };
    assert!(!error.was_sent() && *retry_in <= Duration::from_millis(1250));
    let again = async {
        loop {
            match upstream.request("tools/list", None, within(20)).await {
                Err(error) if matches!(error.kind(), ClientErrorKind::Unavailable { .. }) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                done => return done,
            }
        }
    };
    timeout(PATIENCE, again).await.unwrap().unwrap();
    let status = upstream.status();
    assert_eq!((status.state, status.restarts), (ServerState::Ready, 1));
    assert!(status.reason.unwrap().contains("exit status: 7"));
    // Its lists may differ now.
    let changes = *changes.borrow_and_update();
    assert_eq!((changes.tools, changes.openings), (1, 1));
}

#[tokio::test]
async fn a_server_that_is_shut_down_while_it_starts() {
    let (command, _directory, file) = noting("silent");
    let upstream = Upstream::new(Endpoint::Stdio(command), UpstreamOptions::default());
    let waiting = {
        let upstream = upstream.clone();
        tokio::spawn(async move { upstream.connection().await })
    };
    let started = async {
        while !file.exists() || pids(&file).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, started).await.unwrap();
    assert_eq!(upstream.status().state, ServerState::Starting);
    timeout(PATIENCE, upstream.shutdown()).await.unwrap();
    let error = timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(error.kind(), ClientErrorKind::Closed(_)), "{error}");
    is_gone(pids(&file)[0]).await;
    assert_eq!(upstream.status().state, ServerState::Stopped);
    assert!(upstream.connection().await.is_err());
}

#[tokio::test]
async fn a_caller_that_leaves_does_not_stop_the_start() {
    let upstream = Upstream::new(fixture::command("echo"), UpstreamOptions::default());
    let impatient = timeout(Duration::ZERO, upstream.connection()).await;
    assert!(impatient.is_err());
    timeout(PATIENCE, upstream.connection()).await.unwrap().unwrap();
    assert_eq!(upstream.status().restarts, 0);
}

/// A program of a shell that runs once.
async fn run_once(script: &str, input: &[u8], max_output: usize) -> mcp_client::CommandOutput {
    let command = Command::new("sh").args(["-c", script]);
    command.run_once(input, max_output).await.unwrap()
}

#[tokio::test]
async fn a_program_that_runs_once_gets_its_input_and_returns_its_output() {
    let output = run_once("tr a-z A-Z; echo detail >&2; exit 3", b"hello", 100).await;
    assert_eq!(
        (&output.stdout[..], output.stderr.as_str()),
        (&b"HELLO"[..], "detail")
    );
    assert_eq!(output.status.and_then(|status| status.code()), Some(3));
    assert!(!output.is_truncated);
    let closed = run_once("exec 0<&-; echo done", &[b'x'; 1 << 20], 100).await;
    assert_eq!(closed.stdout, b"done\n", "it need not read its input");
    let exact = run_once("printf 12345", b"", 5).await;
    assert_eq!((&exact.stdout[..], exact.is_truncated), (&b"12345"[..], false));
    let endless = run_once("yes", b"", 5).await;
    assert_eq!((endless.stdout.len(), endless.is_truncated), (5, true));
    let missing = Command::new("/nowhere/program").run_once(b"", 5).await;
    assert!(missing.is_err());
}
