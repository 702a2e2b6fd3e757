//! Servers of their own. The tests of a machine without PostgreSQL are skipped by those who use the server.

use std::{
    io::{BufRead, BufReader},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
    time::Duration,
};

use tool_testkit::skip;
use tp_postgres::PostgresServer;

fn start() -> Option<PostgresServer> {
    PostgresServer::start()
        .map_err(|error| skip(error.to_string()))
        .ok()
}

/// Port of a server, from the value of its variable.
fn port(server: &PostgresServer) -> u16 {
    let variable = server.variable();
    let (port, _) = variable.split_once(' ').expect("a port and a password");
    port.parse().expect("a port")
}

#[test]
fn a_server_runs_until_it_is_dropped() {
    let Some(server) = start() else { return };
    let database = server.create_database().expect("created");
    assert_eq!(database.sql("SELECT 1 + 1").expect("works"), "2");
    let port = port(&server);
    drop(database);
    drop(server);
    TcpStream::connect(("127.0.0.1", port)).expect_err("stopped");
}

#[test]
fn a_committed_row_survives_an_immediate_stop() {
    let Some(mut server) = start() else { return };
    let database = server.create_database().expect("created");
    database
        .sql("CREATE TABLE t (n INT); INSERT INTO t VALUES (7)")
        .expect("works");
    server.stop_immediately();
    TcpStream::connect(("127.0.0.1", port(&server))).expect_err("stopped");
    database.sql("SELECT n FROM t").expect_err("stopped");
    server.restart().expect("started");
    assert_eq!(database.sql("SELECT n FROM t").expect("works"), "7");
}

#[test]
fn a_database_is_reached_only_with_the_password() {
    let Some(server) = start() else { return };
    let database = server.create_database().expect("created");
    let users = database.sql("SELECT count(*) FROM pg_hba_file_rules WHERE auth_method <> 'scram-sha-256'");
    assert_eq!(users.expect("works"), "0");
    assert!(!format!("{server:?} {database:?}").contains(database.password()));
}

/// The process of `examples/serve.rs` is killed, and so has no chance to stop its server.
#[test]
fn a_server_ends_with_the_process_that_started_it() {
    let test = std::env::current_exe().expect("known");
    let program = test
        .ancestors()
        .nth(2)
        .expect("a test is in `deps`")
        .join("examples/serve");
    let hint = "build it: cargo build -p tp-postgres --example serve";
    assert!(program.exists(), "`{}` is missing; {hint}", program.display());
    if !tp_postgres::is_installed() {
        return skip("the programs of PostgreSQL are not installed");
    }
    let folder = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o711)).expect("set");
    let mut process = Command::new(program)
        .env("TMPDIR", folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut line = String::new();
    let output = process.stdout.take().expect("piped");
    BufReader::new(output).read_line(&mut line).expect("readable");
    let words: Vec<&str> = line.trim().split(['\'', ' ']).collect();
    let port: u16 = words[2].parse().expect("a port");
    TcpStream::connect(("127.0.0.1", port)).expect("it runs");
    process.kill().expect("killed");
    process.wait().expect("ended");
    let is_gone = || {
        let is_empty = std::fs::read_dir(folder.path())
            .expect("readable")
            .next()
            .is_none();
        is_empty && TcpStream::connect(("127.0.0.1", port)).is_err()
    };
    let pause = || std::thread::sleep(Duration::from_millis(20));
    let ended = (0..3000).inspect(|_| pause()).any(|_| is_gone());
    assert!(ended, "the server is still there after a minute");
}
