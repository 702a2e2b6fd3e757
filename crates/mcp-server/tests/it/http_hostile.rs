//! Clients that violate the protocol, or do not read.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use mcp_server::{HttpServerOptions, HttpService, ServeOptions};

use crate::support::{EVERYTHING, Head, META, Scripted, Served, soon};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"t","version":"0"}}}"#;

async fn open(served: &Served) -> Head<'static> {
    let answer = served.once(&Head::post(), INITIALIZE).await;
    Head::post().with("Mcp-Session-Id", answer.header("mcp-session-id").unwrap())
}

#[tokio::test]
async fn what_is_no_single_message_is_refused() {
    let served = Served::start(HttpServerOptions::default()).await;
    let session = open(&served).await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let modern = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{META}}}}}"#);
    for (body, code) in [
        ("[]".to_owned(), "-32600"),
        (format!("[{ping}]"), "-32600"),
        (format!("[{ping},{ping}]"), "-32600"),
        (format!("[{modern}]"), "-32600"),
        (format!("{ping}{ping}"), "-32700"),
        (format!("{ping}\n{ping}"), "-32700"),
        (ping.replace("\"id\":1", "\"id\":1,\"id\":2"), "-32600"),
        (ping.replace("\"id\"", "\"ID\""), "-32600"),
        (ping.replace('1', "null"), "-32600"),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{},"method":"ping"}"#.to_owned(),
            "-32600",
        ),
        (format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000)), "-32"),
        ("\u{feff}".to_owned() + ping, "-32700"),
        (String::new(), "-32700"),
    ] {
        for head in [Head::post(), session.clone(), Head::modern("tools/list")] {
            let answer = served.once(&head, &body).await;
            let shown: String = body.chars().take(80).collect();
            assert_eq!(answer.status, 400, "{shown}: {}", answer.body);
            assert!(answer.body.contains(code), "{shown}: {}", answer.body);
        }
    }
}

#[tokio::test]
async fn a_head_that_does_not_end_is_refused_at_32_kib() {
    let served = Served::start(HttpServerOptions::default()).await;
    let session = open(&served).await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let long = "x".repeat(30_000);
    let answer = served.once(&session.clone().with("x-long", &long), ping).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    // The whole body is read, so that a reset does not discard the refusal.
    let mut endless = served.connect().await;
    let mut head = b"POST /mcp HTTP/1.1\r\nx-long: ".to_vec();
    head.resize(32 * 1024, b'x');
    endless.write(&head).await;
    assert_eq!(endless.receive().await.status, 431);
}

#[tokio::test]
async fn a_session_has_a_limit_of_open_client_requests() {
    let served = Served::start(HttpServerOptions::default()).await;
    let session = open(&served).await;
    let ask = |id: usize| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"test/ask","params":{{"method":"roots/list"}}}}"#)
    };
    let mut open = Vec::new();
    for id in 1..=64 {
        let mut connection = served.connect().await;
        connection.send(&session, &ask(id)).await;
        connection.head().await;
        connection.event().await.unwrap();
        open.push(connection);
    }
    let answer = served.once(&session, &ask(65)).await;
    assert!(
        answer
            .body
            .contains(r#"{"failed":"the client has too many open requests"}"#),
        "{}",
        answer.body
    );
    // All end with the session.
    assert_eq!(served.once(&session.method("DELETE"), "").await.status, 204);
    served.log.running(0).await;
}

#[tokio::test]
async fn odd_answers_and_notifications_do_no_harm() {
    let served = Served::start(HttpServerOptions::default()).await;
    served.log.offer(EVERYTHING);
    let session = open(&served).await;
    for body in [
        r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":{},"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1e400,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":18446744073709551616,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":7}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
    ] {
        assert_eq!(served.once(&session, body).await.status, 202, "{body}");
    }
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(
        served.once(&session, ping).await.body,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_its_answer_is_left() {
    let options = HttpServerOptions::default().max_body(32 << 20);
    let serve = ServeOptions::default()
        .max_connections(1)
        .idle_timeout(Duration::from_secs(36_000));
    let served = Served::start_with(options, serve).await;
    // More than the system buffers for the socket.
    let text = "x".repeat(24 << 20);
    let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"text":"{text}"}}}}"#);
    let mut deaf = served.connect().await;
    deaf.send(&Head::post(), &call).await;
    let start = tokio::time::Instant::now();
    // It has the only permit.
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(served.once(&Head::post(), ping).await.status, 200);
    assert!(
        (60..=64).contains(&start.elapsed().as_secs()),
        "{:?}",
        start.elapsed()
    );
    // A client that reads slowly stays connected.
    let mut slow = served.connect().await;
    slow.send(&Head::post(), &call).await;
    for part in 1..=4 {
        tokio::time::sleep(Duration::from_secs(40)).await;
        slow.receive_up_to(part * (text.len() / 4)).await;
    }
    assert_eq!(slow.receive().await.status, 200);
}

#[tokio::test]
async fn the_body_of_a_request_takes_no_memory_while_it_is_worked_on() {
    let (service, log) = Scripted::new();
    let served = HttpService::new(service, HttpServerOptions::default());
    // Non-ASCII text is checked in a copy, of which the request is a slice then.
    let text = "\u{e9}".repeat(100_000);
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"test/wait","params":{{"text":"{text}",{META}}}}}"#);
    let body = Bytes::from(body);
    let mut request = http::Request::post("/mcp");
    for (name, value) in &Head::modern("test/wait").headers {
        request = request.header(*name, value);
    }
    let answering = tokio::spawn(served.respond(request.body(Full::new(body.clone())).unwrap()));
    log.running(1).await;
    assert!(body.is_unique());
    log.gate.add_permits(1);
    assert_eq!(soon(answering).await.unwrap().status(), 200);
}
