//! Clients of 2024-11-05, over HTTP+SSE.

use std::sync::atomic::Ordering;

use mcp_server::{HttpServerOptions, Notifier, Principal};

use crate::support::{Connection, EVERYTHING, Head, META, Served};

async fn start() -> (Served, Notifier) {
    let notices = Notifier::default();
    let served = Served::start(
        HttpServerOptions::default()
            .path("/mcp")
            .sse_path("/sse")
            .max_sessions(2)
            .notifier(notices.clone())
            .identify(|parts| {
                let user = parts.headers.get("x-user").map(|user| user.to_str().unwrap());
                Ok(Principal::new(user.unwrap_or("alice")))
            }),
    )
    .await;
    served.log.offer(EVERYTHING);
    (served, notices)
}

fn at(path: &str) -> Head<'_> {
    Head { path, ..Head::post() }
}

/// Opens a stream. Returns it with the path for messages.
async fn open(served: &Served) -> (Connection, String) {
    let mut stream = served.connect().await;
    stream.send(&at("/sse").method("GET"), "").await;
    let head = stream.head().await;
    assert_eq!(
        (head.status, head.header("content-type")),
        (200, Some("text/event-stream"))
    );
    let first = stream.event().await.unwrap();
    let place = first
        .strip_prefix("event: endpoint\ndata: ")
        .expect(&first)
        .trim_end();
    assert!(place.starts_with("/sse?session="), "{place}");
    (stream, place.to_owned())
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{"roots":{}},"clientInfo":{"name":"t","version":"0"}}}"#;
const WAIT: &str = r#"{"jsonrpc":"2.0","id":1,"method":"test/wait"}"#;

async fn post(served: &Served, place: &str, body: &str) -> u16 {
    served.once(&at(place), body).await.status
}

#[tokio::test]
async fn everything_goes_over_the_one_stream() {
    let (served, notices) = start().await;
    let (mut stream, place) = open(&served).await;
    assert_eq!(post(&served, &place, INITIALIZE).await, 202);
    let answer = stream.event().await.unwrap();
    assert!(
        answer.starts_with("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":\"2024-11-05\""),
        "{answer}"
    );
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(post(&served, &place, initialized).await, 202);
    // A message may be written over several lines.
    let ask =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\n\"method\":\"test/ask\",\"params\":{\"method\":\"roots/list\"}}";
    assert_eq!(post(&served, &place, ask).await, 202);
    let question = stream.event().await.unwrap();
    assert_eq!(
        question,
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}\n\n"
    );
    let given = r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#;
    assert_eq!(post(&served, &place, given).await, 202);
    assert!(
        stream
            .event()
            .await
            .unwrap()
            .contains(r#"{"given":{"roots":[]}}"#)
    );
    notices.send("notifications/tools/list_changed", None);
    assert!(stream.event().await.unwrap().contains("list_changed"));
    // Streamable HTTP is served as before.
    assert_eq!(
        post(&served, "/mcp", WAIT.replace("test/wait", "ping").as_str()).await,
        200
    );
    assert_eq!(post(&served, "/other", WAIT).await, 404);
}

/// Tests that batches work as over stdio: for one revision, bounded, and with one response.
#[tokio::test]
async fn batches_are_taken_from_clients_of_the_revision_that_knows_them() {
    let (served, _) = start().await;
    let ping = |id: usize| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    let pong = |id: usize| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    let of = |count: usize| format!("[{}]", (1..=count).map(ping).collect::<Vec<_>>().join(","));
    let (mut stream, place) = open(&served).await;
    // No revision is negotiated yet.
    assert_eq!(post(&served, &place, &of(1)).await, 400);
    let initialize = INITIALIZE.replace("2024-11-05", "2025-03-26");
    assert_eq!(post(&served, &place, &initialize).await, 202);
    let opened = stream.event().await.unwrap();
    assert!(opened.contains(r#""protocolVersion":"2025-03-26""#), "{opened}");
    let told = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;
    let batch = format!("[{},\n{told}, 7,[{}],{}]", ping(1), ping(2), ping(3));
    assert_eq!(post(&served, &place, &batch).await, 202);
    let answer = stream.event().await.unwrap();
    assert!(answer.starts_with("event: message\ndata: [{"), "{answer}");
    for part in [
        &*pong(1),
        &pong(3),
        "not a JSON object",
        "batches are not supported",
    ] {
        assert!(answer.contains(part), "{part}: {answer}");
    }
    assert!(!answer.contains(&pong(2)), "{answer}");
    assert_eq!(
        *served.log.notifications.lock().unwrap(),
        ["notifications/roots/list_changed"]
    );
    let modern = format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{{META}}}}}"#);
    for refused in [of(0), of(65), format!("[{},{modern}]", ping(1)), "[".to_owned()] {
        assert_eq!(post(&served, &place, &refused).await, 400, "{refused}");
    }
    assert_eq!(post(&served, &place, &of(64)).await, 202);
    assert!(stream.event().await.unwrap().contains(&pong(64)));
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let (served, _) = start().await;
        let (mut stream, place) = open(&served).await;
        let initialize = INITIALIZE.replace("2024-11-05", revision);
        assert_eq!(post(&served, &place, &initialize).await, 202);
        stream.event().await.unwrap();
        assert_eq!(post(&served, &place, &of(1)).await, 400, "{revision}");
    }
}

#[tokio::test]
async fn what_is_no_message_of_a_session_is_refused() {
    let (served, _) = start().await;
    let (_stream, place) = open(&served).await;
    let modern = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{META}}}}}"#);
    for (path, body, status) in [
        ("/sse", WAIT, 404),
        ("/sse?session=0123456789abcdef0123456789abcdef", WAIT, 404),
        (&*place, "[]", 400),
        (&*place, "{", 400),
        (&*place, &*modern, 400),
    ] {
        assert_eq!(post(&served, path, body).await, status, "{path} {body}");
    }
    let stolen = at(&place).with("X-User", "mallory");
    assert_eq!(served.once(&stolen, WAIT).await.status, 404);
    let text = at(&place).with("Content-Type", "text/plain");
    assert_eq!(served.once(&text, WAIT).await.status, 415);
    let page = at(&place).with("Origin", "https://example.com");
    assert_eq!(served.once(&page, WAIT).await.status, 403);
    assert_eq!(served.once(&at(&place).method("DELETE"), "").await.status, 405);
    let json = at("/sse").method("GET").with("Accept", "application/json");
    assert_eq!(served.once(&json, "").await.status, 406);
    // The number of streams is limited, and closed ones make room.
    let (second, _) = open(&served).await;
    let get = at("/sse").method("GET");
    assert_eq!(served.once(&get, "").await.status, 503);
    drop(second);
    crate::support::soon(async {
        loop {
            let mut stream = served.connect().await;
            stream.send(&get, "").await;
            match stream.head().await.status {
                200 => return,
                status => assert_eq!(status, 503),
            }
        }
    })
    .await;
    assert_eq!(served.log.running.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn calls_end_with_their_stream() {
    let (mut served, _) = start().await;
    let (stream, place) = open(&served).await;
    assert_eq!(post(&served, &place, WAIT).await, 202);
    served.log.running(1).await;
    drop(stream);
    served.log.running(0).await;
    assert_eq!(post(&served, &place, WAIT).await, 404);
    // When the server stops, requests in flight are answered first.
    let (mut stream, place) = open(&served).await;
    assert_eq!(post(&served, &place, WAIT).await, 202);
    served.log.running(1).await;
    served.stop();
    served.log.gate.add_permits(1);
    assert!(stream.event().await.unwrap().contains(r#""id":1,"result":{}"#));
    assert_eq!(stream.event().await, None);
    served.stopped().await;
}

#[tokio::test]
async fn they_are_not_served_unless_asked_for() {
    let served = Served::start(HttpServerOptions::default().path("/mcp")).await;
    assert_eq!(served.once(&at("/sse").method("GET"), "").await.status, 404);
}
