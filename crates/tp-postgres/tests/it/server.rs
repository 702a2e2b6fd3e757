//! Servers of their own. The tests of a machine without PostgreSQL are skipped by those who use the server.

use std::net::TcpStream;

use tool_testkit::skip;
use tp_postgres::PostgresServer;

fn start() -> Option<PostgresServer> {
    PostgresServer::start().map_err(|error| skip(error.to_string())).ok()
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
    database.sql("CREATE TABLE t (n INT); INSERT INTO t VALUES (7)").expect("works");
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
