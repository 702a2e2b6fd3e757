//! Two processes that share a database.

use std::{env, path::PathBuf, process::Stdio, sync::Arc};

use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};
use tool_core::Tokens;
use tool_registry::Store;
use tp_postgres::TestDatabase;

use crate::support::{create, database, open};

/// Path of the program of `tests/it/bin/writer.rs`, an example of this package, which cargo builds with the tests.
fn program() -> PathBuf {
    let test = env::current_exe().expect("known");
    let profile = test.ancestors().nth(2).expect("a test is in `deps`");
    let path = profile.join("examples/tool-store-postgres-writer");
    let hint = "build it: cargo build -p tool-store-postgres --example tool-store-postgres-writer";
    assert!(path.exists(), "`{}` is missing; {hint}", path.display());
    path
}

/// Starts a second process. It does its task when its input ends, or begins at once.
fn start(database: &TestDatabase, arguments: &[&str]) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(program())
        .args(arguments)
        .env("STORE_URL", database.url())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("started");
    let output = child.stdout.take().expect("piped");
    (child, BufReader::new(output).lines())
}

async fn line(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    lines.next_line().await.expect("readable").expect("a line")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_waits_learns_of_the_change_of_another_one() {
    let Some(database) = database() else { return };
    let store = open(&database);
    let seen = create(&*store, "greet").await.expect("applied");
    let waiting = {
        let store = store.clone();
        tokio::spawn(async move {
            while store.changes(0).await.expect("readable").revision == seen {
                store.changed(seen).await;
            }
        })
    };
    let (mut child, mut lines) = start(&database, &["create", "other"]);
    assert_eq!(line(&mut lines).await, "ready");
    drop(child.stdin.take());
    waiting.await.expect("no panic");
    let names: Vec<_> = store
        .tools()
        .await
        .expect("readable")
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert_eq!(names, ["greet".into(), "other".into()] as [Arc<str>; 2]);
    let revision = store.changes(0).await.expect("readable").revision;
    assert_eq!(line(&mut lines).await, format!("created {revision}"));
    assert!(child.wait().await.expect("ended").success());
}

/// Three processes add versions to one tool. Each change is made once, and a change that is based on an older state
/// never is.
#[tokio::test(flavor = "multi_thread")]
async fn processes_that_change_one_tool_lose_nothing() {
    let Some(database) = database() else { return };
    let store = open(&database);
    let first = create(&*store, "greet").await.expect("applied");
    let mut writers: Vec<_> = ["1", "2", "3"]
        .map(|major| start(&database, &["race", "greet", major, "10"]))
        .into_iter()
        .collect();
    for (_, lines) in &mut writers {
        assert_eq!(line(lines).await, "ready");
    }
    for (child, _) in &mut writers {
        drop(child.stdin.take());
    }
    for (child, lines) in &mut writers {
        assert_eq!(line(lines).await, "added 10");
        assert!(child.wait().await.expect("ended").success());
    }
    let record = store.tool("greet").await.expect("readable").expect("known");
    assert_eq!(record.versions.len(), 30);
    assert_eq!(record.history.len(), 30);
    assert_eq!(
        record.revision,
        first + 30,
        "each change has a revision of its own"
    );
    assert_eq!(
        record.latest,
        record.history.last().and_then(|change| change.version.clone())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_one_process_revokes_is_revoked_in_the_other() {
    let Some(database) = database() else { return };
    let store = open(&database);
    let token = tool_core::TokenRecord::new("a", [7; 32], "ada", std::time::UNIX_EPOCH);
    store.insert(token).await.expect("stored");
    let (mut child, mut lines) = start(&database, &["revoke", "a"]);
    assert_eq!(line(&mut lines).await, "ready");
    drop(child.stdin.take());
    assert_eq!(line(&mut lines).await, "revoked");
    let found = store.find("a").await.expect("works").expect("known");
    assert!(found.revoked_at.is_some());
    assert!(child.wait().await.expect("ended").success());
}

/// A process that is killed in the middle of a change leaves nothing of it, and holds nobody up.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_in_a_change_leaves_nothing_of_it() {
    let Some(database) = database() else { return };
    let store = open(&database);
    create(&*store, "greet").await.expect("applied");
    let (mut child, mut lines) = start(&database, &["hold", "other"]);
    assert_eq!(line(&mut lines).await, "ready");
    drop(child.stdin.take());
    assert_eq!(line(&mut lines).await, "holding");
    child.kill().await.expect("killed");
    let revision = create(&*store, "third").await.expect("applied");
    assert_eq!(revision, 2, "the counter is as the killed process found it");
    assert!(store.tool("other").await.expect("readable").is_none());
}
