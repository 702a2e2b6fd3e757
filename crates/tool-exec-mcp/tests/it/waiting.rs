//! Calls that wait for a connection which serves one call at a time. The clock stands still unless a test moves it.

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use tokio::{task::JoinHandle, time::advance};
use tool_core::{Caller, ClientCapabilities, ClientIdentity, ClientKey, ErrorKind, ToolError};
use tool_exec_mcp::{Isolation, McpServer};

use crate::{
    client::{Client, asker},
    fixture::{Fixture, LIMIT, NoSecrets},
    own_lists::identity,
};

const ASKABLE: &str = r#"{"elicitation":{}}"#;
/// How long a call waits before another connection is opened.
const PATIENCE: Duration = Duration::from_millis(250);

fn server(fixture: &Fixture, mode: &str, isolation: Isolation, most: usize) -> Arc<McpServer> {
    let mut settings = asker(fixture, mode);
    settings.isolation = isolation;
    settings.max_connections = most;
    McpServer::new(settings, Arc::new(NoSecrets))
}

/// A client whose calls cannot be told from those of others of its principal.
fn client() -> Arc<Client> {
    Client::of_principal("local", ASKABLE)
}

/// Waits without letting the clock go on, as it does when nothing else is to be done.
#[expect(
    clippy::disallowed_methods,
    reason = "the clock of the runtime stands still here"
)]
async fn until(is_so: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LIMIT, "it never was so");
        tokio::task::yield_now().await;
    }
}

/// Lets everything happen that does not wait for time or for a process.
async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

async fn join<T>(task: JoinHandle<T>) -> T {
    until(|| task.is_finished()).await;
    task.await.unwrap()
}

/// A call in the middle of which the server waits for the client's answer.
async fn parked(client: &Arc<Client>, server: &Arc<McpServer>) -> JoinHandle<()> {
    let n = client.asked().len();
    let task = begin_asking(client, server);
    until(|| client.asked().len() > n).await;
    task
}

/// A call that ends when the client has answered a question of the server.
fn begin_asking(client: &Arc<Client>, server: &Arc<McpServer>) -> JoinHandle<()> {
    let (client, server) = (client.clone(), server.clone());
    tokio::spawn(async move {
        let mut call = client.call(&server, "ask", json!({"method": "elicitation/create"}));
        let executor = call.cx.tool().executor().clone();
        executor.invoke_boxed(&mut call.cx).await.unwrap();
    })
}

/// A call whose result is the process that it reached.
fn begin(client: &Arc<Client>, server: &Arc<McpServer>) -> JoinHandle<Result<String, ToolError>> {
    let (client, server) = (client.clone(), server.clone());
    tokio::spawn(async move {
        let mut call = client.call(&server, "pid", json!({}));
        let executor = call.cx.tool().executor().clone();
        match executor.invoke_boxed(&mut call.cx).await? {
            tool_core::Outcome::Reply(reply) => Ok(reply.raw().get("pid").unwrap().to_string()),
            other => panic!("{other:?}"),
        }
    })
}

/// The same, once it waits.
async fn waiting(client: &Arc<Client>, server: &Arc<McpServer>) -> JoinHandle<Result<String, ToolError>> {
    let call = begin(client, server);
    settle().await;
    assert!(!call.is_finished());
    call
}

#[tokio::test(start_paused = true)]
async fn another_connection_is_opened_when_a_call_has_waited_for_long() {
    let fixture = Fixture::new(&[]);
    let (server, client) = (server(&fixture, "", Isolation::Auto, 16), client());
    let held = parked(&client, &server).await;
    let call = waiting(&client, &server).await;
    advance(PATIENCE - Duration::from_millis(1)).await;
    settle().await;
    assert_eq!(server.n_dedicated_connections(), 1);
    advance(Duration::from_millis(1)).await;
    join(call).await.unwrap();
    assert_eq!(server.n_dedicated_connections(), 2);
    // Which is used again.
    join(begin(&client, &server)).await.unwrap();
    assert_eq!(server.n_dedicated_connections(), 2);
    client.clone().answers(1);
    join(held).await;
}

#[tokio::test(start_paused = true)]
async fn many_calls_take_turns_in_their_order() {
    let fixture = Fixture::new(&[]);
    let (server, client) = (server(&fixture, "", Isolation::Auto, 16), client());
    let order = Arc::<Mutex<Vec<usize>>>::default();
    let held = parked(&client, &server).await;
    let mut calls = Vec::new();
    for n in 0..50 {
        let call = begin(&client, &server);
        let order = order.clone();
        calls.push(tokio::spawn(async move {
            let process = call.await.unwrap().unwrap();
            order.lock().unwrap().push(n);
            process
        }));
        settle().await;
    }
    client.clone().answers(1);
    join(held).await;
    let mut processes = Vec::new();
    for call in calls {
        processes.push(join(call).await);
    }
    assert_eq!(*order.lock().unwrap(), (0..50).collect::<Vec<_>>());
    processes.dedup();
    assert_eq!(processes.len(), 1);
    assert_eq!(
        fixture.notes("starts").len(),
        2,
        "the shared one and the client's"
    );
}

#[tokio::test(start_paused = true)]
async fn calls_that_come_at_once_wait_for_one_start_however_long_it_takes() {
    let fixture = Fixture::new(&[]);
    let (server, client) = (server(&fixture, "waits 1", Isolation::Auto, 16), client());
    let calls: Vec<_> = (0..50).map(|_| begin(&client, &server)).collect();
    until(|| fixture.notes("starts").len() == 2).await;
    for _ in 0..4 {
        advance(Duration::from_secs(1)).await;
        settle().await;
    }
    assert_eq!(server.n_dedicated_connections(), 1);
    std::fs::write(fixture.path("go"), "").unwrap();
    for call in calls {
        join(call).await.unwrap();
    }
    assert_eq!(fixture.notes("starts").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_free_is_taken_while_another_one_is_opened() {
    let fixture = Fixture::new(&[]);
    let (server, client) = (server(&fixture, "waits 2", Isolation::Auto, 16), client());
    let held = parked(&client, &server).await;
    let calls = [waiting(&client, &server).await, waiting(&client, &server).await];
    advance(PATIENCE).await;
    until(|| fixture.notes("starts").len() == 3).await;
    // While it starts, no third one is opened.
    for _ in 0..4 {
        advance(Duration::from_secs(1)).await;
        settle().await;
    }
    assert_eq!(server.n_dedicated_connections(), 2);
    client.clone().answers(1);
    join(held).await;
    for call in calls {
        assert_eq!(join(call).await.unwrap(), fixture.notes("starts")[1]);
    }
    std::fs::write(fixture.path("go"), "").unwrap();
    server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_takes_no_connection() {
    let fixture = Fixture::new(&[]);
    let (server, client) = (server(&fixture, "waits 2", Isolation::Auto, 16), client());
    let held = parked(&client, &server).await;
    let given_up = waiting(&client, &server).await;
    let next = waiting(&client, &server).await;
    given_up.abort();
    settle().await;
    client.clone().answers(1);
    join(held).await;
    join(next).await.unwrap();
    assert_eq!(server.n_dedicated_connections(), 1);
    // Nor is an opening broken off that was begun for it: the next call uses what came of it.
    let held = parked(&client, &server).await;
    let given_up = waiting(&client, &server).await;
    advance(PATIENCE).await;
    until(|| fixture.notes("starts").len() == 3).await;
    given_up.abort();
    let next = waiting(&client, &server).await;
    std::fs::write(fixture.path("go"), "").unwrap();
    assert_eq!(join(next).await.unwrap(), fixture.notes("starts")[2]);
    assert_eq!(server.n_dedicated_connections(), 2);
    client.clone().answers(1);
    join(held).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_goes_to_another_connection_once_that_is_known_to_list_its_tool() {
    let fixture = Fixture::new(&[]);
    let (server, client) = (server(&fixture, "lists 2", Isolation::Auto, 16), client());
    let held = parked(&client, &server).await;
    let source = server.source();
    let identity = identity(&ClientKey::Principal("local".into()), ASKABLE, &Caller::local());
    until(|| source.snapshot_for(&identity).is_some()).await;
    let n_asked = client.asked().len();
    let call = begin_asking(&client, &server);
    settle().await;
    advance(PATIENCE).await;
    until(|| fixture.notes("starts").len() == 3).await;
    settle().await;
    assert_eq!(client.asked().len(), n_asked);
    std::fs::write(fixture.path("go"), "").unwrap();
    until(|| client.asked().len() > n_asked).await;
    client.clone().answers(2);
    join(held).await;
    join(call).await;
}

#[tokio::test(start_paused = true)]
async fn at_the_bound_calls_share_or_wait_on() {
    for isolation in [Isolation::Auto, Isolation::Session] {
        let fixture = Fixture::new(&[]);
        let (server, client) = (server(&fixture, "", isolation, 1), client());
        let held = parked(&client, &server).await;
        let call = waiting(&client, &server).await;
        advance(PATIENCE).await;
        if isolation == Isolation::Auto {
            assert_eq!(join(call).await.unwrap(), fixture.notes("starts")[0]);
            client.clone().answers(1);
            join(held).await;
        } else {
            settle().await;
            assert!(!call.is_finished());
            client.clone().answers(1);
            join(held).await;
            join(call).await.unwrap();
        }
        assert_eq!(server.n_dedicated_connections(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_further_connection_is_closed_sooner_than_the_last() {
    let fixture = Fixture::new(&[]);
    let (server, client) = (server(&fixture, "", Isolation::Auto, 16), client());
    let held = parked(&client, &server).await;
    let call = waiting(&client, &server).await;
    advance(PATIENCE).await;
    join(call).await.unwrap();
    client.clone().answers(1);
    join(held).await;
    advance(Duration::from_secs(29)).await;
    settle().await;
    assert_eq!(server.n_dedicated_connections(), 2);
    advance(Duration::from_secs(2)).await;
    until(|| server.n_dedicated_connections() == 1).await;
    advance(Duration::from_secs(240)).await;
    settle().await;
    assert_eq!(server.n_dedicated_connections(), 1);
    advance(Duration::from_secs(60)).await;
    until(|| server.n_dedicated_connections() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_gives_news_is_kept_until_nobody_watches() {
    let fixture = Fixture::new(&[]);
    let (server, client) = (server(&fixture, "", Isolation::Auto, 16), client());
    join(begin(&client, &server)).await.unwrap();
    let key = ClientKey::Principal("local".into());
    let capabilities = ClientCapabilities::from_json(&raw_json::RawJson::parse(ASKABLE).unwrap());
    let identity = ClientIdentity::new(None, Some(&key), capabilities, &Caller::local());
    let source = server.source();
    let subscribed = tokio::spawn({
        let (source, identity) = (source.clone(), identity.clone());
        async move { source.subscribe_for("note:a", &identity).await }
    });
    assert!(join(subscribed).await.unwrap());
    for _ in 0..3 {
        advance(Duration::from_secs(301)).await;
        settle().await;
    }
    assert_eq!(server.n_dedicated_connections(), 1);
    source.end_unwatched(Duration::ZERO, &|_, clients| clients.includes(&identity));
    advance(Duration::from_secs(301)).await;
    settle().await;
    assert_eq!(server.n_dedicated_connections(), 1, "the client still watches");
    source.end_unwatched(Duration::ZERO, &|_, _| false);
    advance(Duration::from_secs(301)).await;
    until(|| server.n_dedicated_connections() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn calls_that_wait_for_a_start_that_fails_are_told() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, "ends", Isolation::Session, 16);
    let calls: Vec<_> = (0..9).map(|_| begin(&client(), &server)).collect();
    for call in calls {
        let error = join(call).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
    assert_eq!(fixture.notes("starts").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn calls_that_wait_when_the_server_is_shut_down_are_told() {
    let fixture = Fixture::new(&[]);
    let (server, client) = (server(&fixture, "", Isolation::Session, 1), client());
    let held = parked(&client, &server).await;
    let call = waiting(&client, &server).await;
    let shutdown = tokio::spawn({
        let server = server.clone();
        async move { server.shutdown().await }
    });
    let error = join(call).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    held.abort();
    join(shutdown).await;
    assert_eq!(fixture.notes("starts").len(), 1, "none is started again");
}

/// A log that a test reads.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// The lines that tell of connections for single clients.
    fn openings(&self) -> Vec<String> {
        let log = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let lines = log
            .lines()
            .filter_map(|line| line.split_once("a connection for a single client is opened: "));
        lines.map(|(_, reason)| reason.to_owned()).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn each_opening_is_logged_with_its_reason() {
    let log = Log::default();
    let written = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || written.clone())
        .finish();
    // The runtime has one thread, which is this one.
    let _guard = tracing::subscriber::set_default(subscriber);
    let fixture = Fixture::new(&[]);
    let (server, client) = (server(&fixture, "", Isolation::Auto, 16), client());
    let held = parked(&client, &server).await;
    let call = waiting(&client, &server).await;
    advance(PATIENCE + Duration::from_millis(7)).await;
    join(call).await.unwrap();
    client.clone().answers(1);
    join(held).await;
    // One of the two ends, and is opened again by a call that finds no other.
    advance(Duration::from_secs(31)).await;
    until(|| server.n_dedicated_connections() == 1).await;
    let exit = tokio::spawn({
        let (client, server) = (client.clone(), server.clone());
        async move { client.call(&server, "exit", json!({})).make().await.is_err() }
    });
    assert!(join(exit).await);
    until(|| server.n_dedicated_connections_in_use() == 0).await;
    let again = begin(&client, &server);
    settle().await;
    // A server that has just ended is left alone for a moment.
    advance(Duration::from_secs(5)).await;
    until(|| again.is_finished()).await;
    let reasons = log.openings();
    let expected = [
        "the client has none server=\"box\" n_open=1",
        "a call waited 257 ms for one that is ready server=\"box\" n_open=2",
        "the one before has ended server=\"box\" n_open=1",
    ];
    assert_eq!(reasons, expected);
    server.shutdown().await;
}
