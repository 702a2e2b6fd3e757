//! Tests of programs that a spawner starts.

use std::{
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mcp_client::{
    ClientErrorKind, Command, Connection, ConnectionOptions, ProgramControl, RequestOptions, SpawnFuture,
    SpawnedProgram, Spawner,
};
use tokio::process::Child;

use crate::support::{fixture, peer::raw};

/// Spawner that starts the program as a child without a group, and counts what is asked of it.
#[derive(Default)]
struct Counting {
    n_spawned: AtomicUsize,
    n_killed: Arc<AtomicUsize>,
    n_ended: Arc<AtomicUsize>,
}

struct Control {
    child: Child,
    n_killed: Arc<AtomicUsize>,
    n_ended: Arc<AtomicUsize>,
}

impl Spawner for Counting {
    fn spawn<'a>(&'a self, command: &'a Command) -> SpawnFuture<'a, Result<SpawnedProgram, String>> {
        Box::pin(async {
            if command.program() == "nowhere" {
                return Err("there is no place for it".to_owned());
            }
            self.n_spawned.fetch_add(1, Ordering::SeqCst);
            let mut child = tokio::process::Command::new(command.program())
                .args(command.arguments())
                .env_clear()
                .envs(command.variables())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .kill_on_drop(true)
                .spawn()
                .map_err(|error| error.to_string())?;
            let (stdin, stdout, stderr) = (
                child.stdin.take().unwrap(),
                child.stdout.take().unwrap(),
                child.stderr.take().unwrap(),
            );
            let control = Control {
                child,
                n_killed: self.n_killed.clone(),
                n_ended: self.n_ended.clone(),
            };
            Ok(SpawnedProgram::new(stdin, stdout, stderr, control))
        })
    }
}

impl ProgramControl for Control {
    fn kill(&mut self) {
        self.n_killed.fetch_add(1, Ordering::SeqCst);
        self.child.start_kill().unwrap();
    }

    fn wait(&mut self) -> SpawnFuture<'_, String> {
        Box::pin(async {
            let status = self.child.wait().await.unwrap();
            self.n_ended.fetch_add(1, Ordering::SeqCst);
            format!("has left with {status}")
        })
    }
}

fn options() -> ConnectionOptions {
    ConnectionOptions::default().shutdown_grace(Duration::from_millis(300))
}

async fn spawn(spawner: &Arc<Counting>, mode: &str) -> Result<Connection, mcp_client::ClientError> {
    let command = fixture::command(mode).spawner(spawner.clone());
    Connection::spawn(&command, options()).await
}

#[tokio::test]
async fn a_program_of_a_spawner_answers_and_ends_in_order() {
    let spawner = Arc::new(Counting::default());
    let connection = spawn(&spawner, "echo").await.unwrap();
    let params = raw(r#"{"name":"echo","n":1e2}"#);
    let answered = connection
        .request("tools/call", Some(params), RequestOptions::default())
        .await;
    assert!(answered.unwrap().as_str().contains("1e2"));
    connection.shutdown().await;
    let count = |counter: &AtomicUsize| counter.load(Ordering::SeqCst);
    // The program ended when its input was closed.
    assert_eq!((count(&spawner.n_spawned), count(&spawner.n_killed)), (1, 0));
    assert_eq!(count(&spawner.n_ended), 1);
}

#[tokio::test]
async fn a_program_that_does_not_end_is_killed() {
    let spawner = Arc::new(Counting::default());
    let directory = tempfile::tempdir().unwrap();
    let command = fixture::command("stubborn").args([directory.path().join("notes")]);
    let connection = Connection::spawn(&command.spawner(spawner.clone()), options())
        .await
        .unwrap();
    connection.shutdown().await;
    assert_eq!(spawner.n_killed.load(Ordering::SeqCst), 1);
    assert_eq!(spawner.n_ended.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn the_end_of_a_program_is_told_in_the_words_of_its_spawner() {
    let spawner = Arc::new(Counting::default());
    let directory = tempfile::tempdir().unwrap();
    let command = fixture::command("exit").args([directory.path().join("notes")]);
    let error = Connection::spawn(&command.spawner(spawner), options())
        .await
        .err()
        .unwrap();
    let ClientErrorKind::StartFailed { reason, stderr, .. } = error.kind() else {
        panic!("{error:?}");
    };
    assert!(
        reason.contains("the server has left with exit status: 3"),
        "{reason}"
    );
    assert_eq!(stderr, "no license found");
    let refused = Command::new("nowhere").spawner(Arc::new(Counting::default()));
    let error = Connection::spawn(&refused, options()).await.err().unwrap();
    assert!(error.to_string().contains("there is no place for it"), "{error}");
}

/// A program that answers once is started by its spawner as well: never beside its sandbox.
#[tokio::test]
async fn a_program_that_runs_once_is_started_by_its_spawner() {
    let spawner = Arc::new(Counting::default());
    let once = mcp_client::Command::new("cat").spawner(spawner.clone());
    let output = once.run_once(b"hello", 1024).await.unwrap();
    assert_eq!((&*output.stdout, output.is_truncated), (&b"hello"[..], false));
    assert_eq!(output.status, None);
    let cut = once.run_once(b"hello", 2).await.unwrap();
    assert_eq!((&*cut.stdout, cut.is_truncated), (&b"he"[..], true));
    let count = |counter: &AtomicUsize| counter.load(Ordering::SeqCst);
    assert_eq!((count(&spawner.n_spawned), count(&spawner.n_ended)), (2, 2));
    let nowhere = mcp_client::Command::new("nowhere").spawner(spawner);
    assert!(nowhere.run_once(b"", 1).await.is_err());
}
