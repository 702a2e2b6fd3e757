//! Misbehavior over HTTP.

use std::time::Duration;

use mcp_client::{ClientError, ClientErrorKind, EraChoice, RequestOptions};
use mcp_mock::{Misbehavior, MockReply, MockServer, MockTool};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{Client, Transport, soon, speaking};

fn server(misbehavior: &Misbehavior) -> MockServer {
    MockServer::builder()
        .tool(
            MockTool::new("act")
                .reply(MockReply::text("fine").misbehave(misbehavior.clone()))
                .reply(MockReply::text("fine")),
        )
        .build()
}

/// Returns the result of a call that misbehaves. The next call works.
async fn call(misbehavior: &Misbehavior, era: EraChoice) -> Result<Value, ClientError> {
    let server = server(misbehavior);
    let client = Client::open(&server, Transport::Http, speaking(era))
        .await
        .unwrap();
    let result = client.call("act", json!({})).await;
    assert_eq!(client.says("act", json!({})).await, "fine", "{misbehavior:?}");
    result
}

#[tokio::test]
async fn statuses_and_types() {
    for era in [EraChoice::Legacy, EraChoice::Modern] {
        let unavailable = Misbehavior::Status {
            status: 503,
            headers: vec![("retry-after".into(), "7".into())],
            body: "down".into(),
        };
        let error = call(&unavailable, era).await.unwrap_err();
        assert!(
            matches!(
                error.kind(),
                ClientErrorKind::HttpStatus { status: 503, body, retry_after: Some(after), .. } if body == "down" && after == "7"
            ),
            "{error:?}"
        );
        let error = call(&Misbehavior::status(401), era).await.unwrap_err();
        assert!(
            matches!(error.kind(), ClientErrorKind::Auth { status: 401, .. }),
            "{error:?}"
        );
        for misbehavior in [
            Misbehavior::status(202),
            Misbehavior::ContentType("text/html".into()),
            Misbehavior::EmptyStream,
            Misbehavior::Close,
            Misbehavior::Cut(None),
            Misbehavior::Raw("<html>".into()),
        ] {
            let error = call(&misbehavior, era).await.unwrap_err();
            assert!(error.was_sent(), "{misbehavior:?} {error:?}");
        }
    }
}

#[tokio::test]
async fn what_does_no_harm_to_a_client_that_holds_out() {
    let tick = Duration::from_millis(1);
    for era in [EraChoice::Legacy, EraChoice::Modern] {
        for misbehavior in [
            Misbehavior::PauseHalfway(tick),
            Misbehavior::Drip {
                bytes: 16,
                every: tick,
            },
            Misbehavior::Flood(100),
            Misbehavior::Twice,
        ] {
            let result = call(&misbehavior, era).await;
            assert_eq!(crate::support::text(&result.unwrap()), "fine", "{misbehavior:?}");
        }
    }
}

#[tokio::test]
async fn a_session_that_is_forgotten_is_opened_anew() {
    let server = MockServer::builder()
        .tool(MockTool::new("act"))
        .on(
            "tools/call",
            MockReply::usual().misbehave(Misbehavior::DropSession),
        )
        .on("tools/call", MockReply::usual())
        .build();
    let client = Client::open(&server, Transport::Http, speaking(EraChoice::Legacy))
        .await
        .unwrap();
    let first = server.requests("notifications/initialized");
    assert_eq!(client.says("act", json!({})).await, "{}");
    assert_eq!(server.requests("initialize").len(), 2);
    let calls = server.calls("act");
    assert_eq!(calls.len(), 2);
    assert_eq!(
        calls[0].headers["mcp-session-id"],
        first[0].headers["mcp-session-id"]
    );
    assert_ne!(
        calls[0].headers["mcp-session-id"],
        calls[1].headers["mcp-session-id"]
    );
}

#[tokio::test]
async fn streams_of_old_clients_break_like_pipes() {
    for (misbehavior, works) in [
        (Misbehavior::GarbageBefore("oops".into()), true),
        (Misbehavior::Twice, true),
        (Misbehavior::Cut(None), false),
        (Misbehavior::Close, false),
    ] {
        let server = server(&misbehavior);
        let client = Client::open(&server, Transport::Sse, speaking(EraChoice::Legacy))
            .await
            .unwrap();
        let result = client.call("act", json!({})).await;
        assert_eq!(result.is_ok(), works, "{misbehavior:?} {result:?}");
    }
}

#[tokio::test]
async fn web_pages_are_kept_away() {
    let http = server(&Misbehavior::Close).http().await.unwrap();
    for (path, host, origin, status) in [
        ("/mcp", "localhost:80", "", "405"),
        ("/mcp", "[::1]", "Origin: http://[::1]\r\n", "405"),
        ("/mcp", "[::1]", "Origin: http://localhost:3000\r\n", "403"),
        ("/mcp", "evil.example.com", "", "403"),
        ("/sse", "evil.example.com", "", "403"),
        ("/sse", "localhost", "Origin: https://evil.example.com\r\n", "403"),
        ("/sse", "localhost", "Origin: null\r\n", "403"),
    ] {
        let mut stream = TcpStream::connect(http.address()).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{origin}Connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        soon(stream.read_to_string(&mut answer)).await.unwrap();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{path} {host} {origin} {answer}"
        );
    }
}

#[tokio::test]
async fn what_comes_before_an_answer_that_never_comes() {
    for transport in [Transport::Stdio, Transport::Http, Transport::Sse] {
        let server = MockServer::builder()
            .tool(MockTool::new("act").reply(MockReply::never().progress(1, 2)))
            .build();
        let client = Client::open(&server, transport, speaking(EraChoice::Legacy))
            .await
            .unwrap();
        let (seen, mut sees) = tokio::sync::mpsc::unbounded_channel();
        let options = RequestOptions::default().on_progress(move |report| seen.send(report).unwrap());
        let call = Some(crate::support::raw(r#"{"name":"act"}"#));
        tokio::select! {
            answer = client.connection.request("tools/call", call, options) => panic!("{answer:?}"),
            report = soon(sees.recv()) => assert!(report.is_some(), "{transport:?}"),
        }
    }
}

/// Returns the bytes of the answer to a call.
async fn wire(reply: MockReply) -> String {
    let server = MockServer::builder()
        .tool(MockTool::new("act").reply(reply))
        .build();
    let http = server.http().await.unwrap();
    let body = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"act","_meta":{"progressToken":1}}}"#;
    let mut stream = TcpStream::connect(http.address()).await.unwrap();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, \
         text/event-stream\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A connection that is reset has delivered all its bytes.
    let _ = soon(stream.read_to_end(&mut answer)).await;
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn one_event_of_a_stream_misbehaves() {
    let events = wire(
        MockReply::text("fine")
            .progress(1, 2)
            .misbehave(Misbehavior::WrongId),
    )
    .await;
    assert!(events.contains("text/event-stream"), "{events}");
    assert!(
        events.contains(r#""progress":1"#) && events.contains(r#""id":987654321"#),
        "{events}"
    );

    let cut = wire(
        MockReply::text("fine")
            .progress(1, 2)
            .misbehave(Misbehavior::Cut(Some(20))),
    )
    .await;
    assert!(
        cut.contains(r#""progress":1"#) && cut.contains("data: {\"jsonrpc\":") && !cut.contains("fine"),
        "{cut}"
    );

    for (misbehavior, is_whole) in [(Misbehavior::EmptyStream, true), (Misbehavior::Close, false)] {
        let ended = wire(MockReply::text("fine").progress(1, 2).misbehave(misbehavior)).await;
        assert!(
            ended.contains(r#""progress":1"#) && !ended.contains("fine"),
            "{ended}"
        );
        // The end of a body in chunks.
        assert_eq!(ended.ends_with("0\r\n\r\n"), is_whole, "{ended:?}");
    }

    // Several messages cannot be one body.
    let garbage = wire(MockReply::text("fine").misbehave(Misbehavior::GarbageBefore("oops".into()))).await;
    assert!(
        garbage.contains("data: oops\n\n") && garbage.contains("fine"),
        "{garbage}"
    );

    let closed = wire(MockReply::text("fine").misbehave(Misbehavior::Close)).await;
    assert_eq!(closed, "");
}
