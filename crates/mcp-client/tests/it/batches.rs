//! Tests of batches, which only servers of revision 2025-03-26 may send.

use std::time::Duration;

use mcp_client::{ClientErrorKind, Connection, ConnectionOptions, EraChoice, Handlers, HttpEndpoint};
use raw_json::RawJson;
use serde_json::{Value, json};
use tokio::{io::split, time::timeout};

use crate::{
    http::about,
    support::http_server::{Reply, Seen, Server, json, opening, status, stream},
    support::peer::{self, Peer, call, pair, raw, within, works},
};

const PATIENCE: Duration = Duration::from_secs(60);

fn opened(revision: &str) -> String {
    peer::OPENED.replace("2025-11-25", revision)
}

fn options() -> ConnectionOptions {
    ConnectionOptions::default()
        .era(EraChoice::Legacy)
        .handlers(Handlers::new().roots(RawJson::object(), |_| async { Ok(raw(r#"{"roots":[]}"#)) }))
}

/// Connects to a peer that opens the connection in this revision and sends `next` right after.
async fn connect(revision: &str, next: &str) -> (Connection, Peer, Vec<Value>) {
    let (ours, mut peer) = pair(64 * 1024);
    let (reader, writer) = split(ours);
    let n_answers = next.matches("\"method\"").count();
    let opening = async {
        let id = peer.request("initialize").await;
        let opened = opened(revision);
        peer.send(format!(r#"{{"id":{id},"result":{opened}}}{next}"#))
            .await;
        let mut said = Vec::new();
        // The notification of the handshake, and the responses.
        for _ in 0..=n_answers {
            said.push(peer.next().await);
        }
        (peer, said)
    };
    let (connection, (peer, said)) =
        tokio::join!(Connection::from_streams(reader, writer, options()), opening);
    (connection.unwrap(), peer, said)
}

const PING: &str = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
const ROOTS: &str = r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#;
const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

fn pong() -> Value {
    json!({"jsonrpc": "2.0", "id": "p", "result": {}})
}

fn roots() -> Value {
    json!({"jsonrpc": "2.0", "id": "r", "result": {"roots": []}})
}

#[tokio::test(start_paused = true)]
async fn each_message_of_a_batch_is_taken_as_if_it_came_alone() {
    let (connection, mut peer, said) = connect("2025-03-26", &format!("\n[{PING}]")).await;
    assert!(said.contains(&pong()), "{said:?}");
    let calls = [call(&connection, within(7)), call(&connection, within(7))];
    let ids = [peer.request("tools/call").await, peer.request("tools/call").await];
    let [first, second] =
        ids.map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"of":{id},"n":1e2}}}}"#));
    peer.send(format!(
        r#" [{second}, {ROOTS},7,{CHANGED},[{PING}],{PING},{first}]"#
    ))
    .await;
    for (call, id) in calls.into_iter().zip(ids) {
        let result = call.await.unwrap().unwrap();
        assert_eq!(result.as_str(), format!(r#"{{"of":{id},"n":1e2}}"#));
    }
    assert_eq!(connection.changes().borrow().tools, 1);
    // Each request gets a response of its own; the nested batch gets none.
    let answers = [peer.next().await, peer.next().await];
    assert!(
        answers.contains(&pong()) && answers.contains(&roots()),
        "{answers:?}"
    );
    assert_eq!(connection.stats().garbage, 2);
    works(&connection, &mut peer).await;
    // The end of the stream also ends a line.
    let last = call(&connection, within(7));
    let id = peer.request("tools/call").await;
    peer.send_text(&format!(r#"[{{"id":{id},"result":{{}}}}]"#)).await;
    drop(peer);
    assert_eq!(last.await.unwrap().unwrap().as_str(), "{}");
}

#[tokio::test(start_paused = true)]
async fn batches_are_bounded_and_of_one_revision() {
    let answer = r#"{"id":ID,"result":{}}"#;
    let most = format!("[{}{answer}]", "1,".repeat(63));
    let more = format!("[{}{answer}]", "1,".repeat(64));
    let nested = format!("[[{answer}]]");
    let alone = format!("[{answer}]");
    for (revision, line, is_taken) in [
        ("2025-03-26", &*alone, true),
        ("2025-03-26", &*most, true),
        ("2025-03-26", &*more, false),
        ("2025-03-26", &*nested, false),
        ("2025-03-26", "[]", false),
        ("2024-11-05", &*alone, false),
        ("2025-06-18", &*alone, false),
        ("2025-11-25", &*alone, false),
    ] {
        let (connection, mut peer, _) = connect(revision, "").await;
        let pending = call(&connection, within(7));
        let id = peer.request("tools/call").await;
        peer.send(line.replace("ID", &id.to_string())).await;
        match pending.await.unwrap() {
            Ok(_) => assert!(is_taken, "{revision} {line}"),
            Err(error) => {
                let is_timeout = matches!(error.kind(), ClientErrorKind::Timeout(_));
                assert!(is_timeout && !is_taken, "{revision} {line}: {error}");
                peer.notification("notifications/cancelled").await;
            }
        }
        works(&connection, &mut peer).await;
    }
}

/// Starts a server of 2025-03-26 that answers calls as given.
async fn serving(
    call: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
    listening: Option<String>,
) -> (Server, Connection) {
    let server = Server::start(move |seen| match (seen.method.as_str(), &seen.body["method"]) {
        ("GET", _) => match &listening {
            Some(events) => stream(events),
            None => status("405 Method Not Allowed", "", ""),
        },
        (_, method) if method == "initialize" => json(&about(
            seen,
            &format!(r#"{{"id":ID,"result":{}}}"#, opened("2025-03-26")),
        )),
        (_, method) if method == "tools/call" => call(seen),
        _ => opening(seen).unwrap_or_else(|| status("202 Accepted", "", "")),
    })
    .await;
    let endpoint = HttpEndpoint::new(&server.url).unwrap();
    let connection = timeout(PATIENCE, Connection::http(&endpoint, options())).await;
    (server, connection.unwrap().unwrap())
}

/// Waits until the client has sent this response.
async fn answered(server: &Server, answer: &Value) {
    let answered = async {
        while !server.seen().iter().any(|seen| seen.body == *answer) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, answered).await.expect("it is answered");
}

#[tokio::test]
async fn batches_come_over_http_in_every_form() {
    type Form = fn(&str) -> Reply;
    let forms: [Form; 3] = [
        json,
        |batch| stream(&format!("data: {batch}\n\n")),
        // A plain body declared as an event stream.
        stream,
    ];
    for form in forms {
        let (server, connection) = serving(
            move |seen| {
                let batch = format!(r#"[{ROOTS},{{"id":ID,"result":{{"n":1e2}}}},{CHANGED},8,{PING}]"#);
                form(&about(seen, &batch))
            },
            None,
        )
        .await;
        let result = connection.request("tools/call", None, within(30)).await;
        assert_eq!(result.unwrap().as_str(), r#"{"n":1e2}"#);
        answered(&server, &pong()).await;
        answered(&server, &roots()).await;
        assert_eq!(connection.changes().borrow().tools, 1);
        assert_eq!(connection.stats().garbage, 1);
    }
    for (body, expected) in [
        (format!("[{PING}]"), "the batch does not contain the response"),
        ("[]".to_owned(), "the batch does not contain the response"),
        (
            r#"[[{"id":ID,"result":{}}]]"#.to_owned(),
            "the batch does not contain the response",
        ),
        (r#"[{"id":ID,"result":{}}"#.to_owned(), "not a valid message"),
    ] {
        let (_server, connection) = serving(move |seen| json(&about(seen, &body)), None).await;
        let error = connection.request("tools/call", None, within(30)).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn batches_come_on_the_stream_that_nobody_asked_for() {
    let told = format!("id: e1\nretry: 600000\ndata: [{PING},{ROOTS},{CHANGED}]\n\n");
    let (server, connection) = serving(|_| Reply::Silence, Some(told)).await;
    answered(&server, &pong()).await;
    answered(&server, &roots()).await;
    let mut changes = connection.changes();
    let changed = changes.wait_for(|changes| changes.tools > 0);
    timeout(PATIENCE, changed).await.unwrap().unwrap();
}
