//! Notifications and streams that misbehave, byte for byte.

use std::time::Duration;

use mcp_mock::{Misbehavior, MockHttp, MockReply, MockServer, MockTool, RpcError};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    broken_stdio::Lines,
    support::{raw, soon},
};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const PONG: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
const CHANGED: &str = "notifications/tools/list_changed";
const NOTICE: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
/// A modern subscription, and its headers over HTTP.
const LISTEN: &str = r#"{"jsonrpc":"2.0","id":8,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const LISTENING: &str = "mcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\n";
/// Another notification, which is not scripted.
const OTHER: &str = r#"{"jsonrpc":"2.0","method":"notifications/other"}"#;

fn scripted(replies: impl IntoIterator<Item = MockReply>) -> MockServer {
    let builder = MockServer::builder().tool(MockTool::new("act"));
    replies
        .into_iter()
        .fold(builder, |builder, reply| builder.on(CHANGED, reply))
        .build()
}

fn misbehaving(misbehaviour: Misbehavior) -> MockReply {
    MockReply::usual().misbehave(misbehaviour)
}

#[tokio::test]
async fn over_stdio_each_notification_goes_by_its_script() {
    let server = scripted([
        misbehaving(Misbehavior::Twice),
        MockReply::never(),
        misbehaving(Misbehavior::Raw("npm warn".into())).misbehave(Misbehavior::GarbageAfter("bye".into())),
        MockReply::usual(),
        misbehaving(Misbehavior::Cut(Some(10))),
    ]);
    let (reader, writer) = tokio::io::split(server.connect());
    let mut client = Lines::new(reader, writer);
    for line in [INITIALIZE, INITIALIZED, PING] {
        client.send(line).await;
    }
    soon(client.line()).await.unwrap();
    assert_eq!(soon(client.line()).await.unwrap(), PONG);
    for _ in 0..5 {
        server.notify(CHANGED, None);
        server.notify("notifications/other", None);
    }
    for expected in [
        NOTICE,
        NOTICE,
        OTHER,
        OTHER,
        "npm warn",
        "bye",
        OTHER,
        NOTICE,
        OTHER,
        r#"{"jsonrpc""#,
    ] {
        assert_eq!(soon(client.line()).await.unwrap(), expected);
    }
    assert_eq!(soon(client.line()).await, None);
}

#[tokio::test(start_paused = true)]
async fn over_stdio_a_notification_that_is_held_back_holds_up_nothing() {
    let hour = Duration::from_secs(3600);
    let server = scripted([MockReply::usual().delay(hour), MockReply::usual()]);
    let (reader, writer) = tokio::io::split(server.connect());
    let mut client = Lines::new(reader, writer);
    for line in [INITIALIZE, INITIALIZED, PING] {
        client.send(line).await;
    }
    client.line().await.unwrap();
    client.line().await.unwrap();
    let start = tokio::time::Instant::now();
    server.notify(CHANGED, None);
    client.send(PING).await;
    assert_eq!(client.line().await.unwrap(), PONG);
    assert!(start.elapsed() < hour);
    assert_eq!(client.line().await.unwrap(), NOTICE);
    assert!(start.elapsed() >= hour);
}

/// What comes over one connection, as far as it was read.
struct Wire {
    stream: TcpStream,
    text: String,
}

impl Wire {
    async fn send(http: &MockHttp, method: &str, headers: &str, body: &str) -> Self {
        let mut stream = TcpStream::connect(http.address()).await.unwrap();
        let request = format!(
            "{method} /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, \
             text/event-stream\r\n{headers}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        Self {
            stream,
            text: String::new(),
        }
    }

    /// Reads on; tells whether there was more.
    async fn more(&mut self) -> bool {
        let mut bytes = [0; 4096];
        // A connection that is reset has said what it had to say.
        let count = soon(self.stream.read(&mut bytes)).await.unwrap_or(0);
        self.text.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        count > 0
    }

    /// Reads until this has come, and gives what came up to there.
    async fn until(&mut self, what: &str) -> String {
        loop {
            if let Some(start) = self.text.find(what) {
                let rest = self.text.split_off(start + what.len());
                return std::mem::replace(&mut self.text, rest);
            }
            assert!(self.more().await, "{what}: {}", self.text);
        }
    }

    /// Reads to the end of the connection.
    async fn rest(mut self) -> String {
        while self.more().await {}
        self.text
    }
}

/// Opens a legacy session, and gives the header that names it.
async fn session(http: &MockHttp) -> String {
    let mut wire = Wire::send(http, "POST", "", INITIALIZE).await;
    let head = wire.until("\r\n\r\n").await;
    let id = head.split("mcp-session-id: ").nth(1).unwrap();
    format!("mcp-session-id: {}\r\n", id.split("\r\n").next().unwrap())
}

/// The end of a stream that is not cut off.
const EMPTY: &str = "0\r\n\r\n";

/// Sends the scripted notification and one that is not, and gives what comes of both. One after the other: of changes that
/// wait, a session is told the last only.
async fn told(server: &MockServer, stream: &mut Wire) -> String {
    server.notify(CHANGED, None);
    server.notify("notifications/other", None);
    stream.until(&format!("data: {OTHER}\n\n")).await
}

#[tokio::test]
async fn over_http_each_event_goes_by_its_script() {
    let server = scripted([
        misbehaving(Misbehavior::Twice),
        MockReply::never(),
        misbehaving(Misbehavior::Event(": odd\r\nretry: 5\rdata: {data}\n\n".into())),
        misbehaving(Misbehavior::GarbageBefore("<html>".into())),
        misbehaving(Misbehavior::Cut(Some(20))),
        misbehaving(Misbehavior::EmptyStream),
        MockReply::usual(),
    ]);
    let http = server.http().await.unwrap();
    let session = session(&http).await;
    let mut stream = Wire::send(&http, "GET", &session, "").await;
    stream.until("\r\n\r\n").await;
    let first = told(&server, &mut stream).await;
    assert_eq!(
        first.matches(&format!("data: {NOTICE}\n\n")).count(),
        2,
        "{first}"
    );
    let second = told(&server, &mut stream).await;
    assert!(!second.contains(NOTICE), "{second}");
    let third = told(&server, &mut stream).await;
    assert!(
        third.contains(&format!(": odd\r\nretry: 5\rdata: {NOTICE}\n\n")),
        "{third}"
    );
    let fourth = told(&server, &mut stream).await;
    assert!(fourth.contains("data: <html>\n\n"), "{fourth}");
    assert!(fourth.contains(&format!("data: {NOTICE}\n\n")), "{fourth}");
    server.notify(CHANGED, None);
    let cut = stream.rest().await;
    assert!(cut.contains("data: {\"json"), "{cut}");
    assert!(!cut.contains("jsonrpc") && !cut.contains(EMPTY), "{cut}");
    // Ended as it should be, and then there is one that is as it should be.
    let mut stream = Wire::send(&http, "GET", &session, "").await;
    server.notify(CHANGED, None);
    let ended = stream.until(EMPTY).await;
    assert!(!ended.contains(NOTICE), "{ended}");
    let mut stream = Wire::send(&http, "GET", &session, "").await;
    server.notify(CHANGED, None);
    stream.until(NOTICE).await;
}

#[tokio::test]
async fn in_streams_of_calls_and_subscriptions_as_well() {
    let server = MockServer::builder()
        .tool(MockTool::new("act").reply(MockReply::text("done").progress(1, 2)))
        .on("notifications/progress", misbehaving(Misbehavior::Twice))
        .on(CHANGED, misbehaving(Misbehavior::EmptyStream))
        .build();
    let http = server.http().await.unwrap();
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"act","_meta":{"progressToken":1}}}"#;
    let mut stream = Wire::send(&http, "POST", "", call).await;
    let all = stream.until(EMPTY).await;
    assert_eq!(all.matches("notifications/progress").count(), 2, "{all}");
    assert!(all.contains(r#""id":7"#), "{all}");
    let mut stream = Wire::send(&http, "POST", LISTENING, LISTEN).await;
    stream.until("notifications/subscriptions/acknowledged").await;
    server.notify(CHANGED, None);
    let ended = stream.until(EMPTY).await;
    assert!(!ended.contains(CHANGED), "{ended}");
}

/// A server that is too busy for subscriptions, ends one at once, or never says anything.
#[tokio::test]
async fn subscriptions_are_opened_or_not_by_their_script() {
    let busy = r#""error":{"code":-32603,"message":"busy"}}"#;
    let scripted = || {
        MockServer::builder()
            .tool(MockTool::new("act"))
            .on(
                "subscriptions/listen",
                MockReply::error(RpcError::new(-32603, "busy")),
            )
            .on("subscriptions/listen", MockReply::result(raw(r#"{"n":1e2}"#)))
            .on("subscriptions/listen", MockReply::never())
            .on("subscriptions/listen", MockReply::usual())
            .build()
    };
    let server = scripted();
    let (reader, writer) = tokio::io::split(server.connect());
    let mut client = Lines::new(reader, writer);
    client.send(LISTEN).await;
    assert!(soon(client.line()).await.unwrap().ends_with(busy));
    client.send(LISTEN).await;
    let ended = r#"{"jsonrpc":"2.0","id":8,"result":{"n":1e2}}"#;
    assert_eq!(soon(client.line()).await.unwrap(), ended);
    client.send(LISTEN).await;
    client.send(&LISTEN.replace(r#""id":8"#, r#""id":9"#)).await;
    let opened = soon(client.line()).await.unwrap();
    assert!(
        opened.contains("notifications/subscriptions/acknowledged") && opened.contains(":9"),
        "{opened}"
    );

    let server = scripted();
    let http = server.http().await.unwrap();
    let listen = async || Wire::send(&http, "POST", LISTENING, LISTEN).await;
    assert!(listen().await.until(busy).await.contains("HTTP/1.1 200 "));
    listen().await.until(ended).await;
    let _silent = listen().await;
    soon(server.wait_for_requests("subscriptions/listen", 3)).await;
    listen()
        .await
        .until("notifications/subscriptions/acknowledged")
        .await;
}

#[tokio::test]
async fn streams_are_opened_by_their_script() {
    let get = |misbehaviour| misbehaving(misbehaviour);
    let server = MockServer::builder()
        .tool(MockTool::new("act"))
        .on("GET", get(Misbehavior::status(503)))
        .on("GET", get(Misbehavior::Close))
        .on("GET", get(Misbehavior::EmptyStream))
        .on("GET", get(Misbehavior::Cut(None)))
        .on(
            "GET",
            get(Misbehavior::GarbageBefore("hello".into())).misbehave(Misbehavior::Cut(Some(9))),
        )
        .on("GET", get(Misbehavior::ContentType("text/html".into())))
        .on("GET", get(Misbehavior::DropSession))
        .on("GET", MockReply::usual())
        .build();
    let http = server.http().await.unwrap();
    let session = session(&http).await;
    let open = async || Wire::send(&http, "GET", &session, "").await;
    assert!(open().await.until("\r\n\r\n").await.starts_with("HTTP/1.1 503 "));
    assert_eq!(open().await.rest().await, "");
    let empty = open().await.until(EMPTY).await;
    assert!(
        empty.starts_with("HTTP/1.1 200 ") && empty.contains("text/event-stream"),
        "{empty}"
    );
    let cut = open().await.rest().await;
    assert!(
        cut.starts_with("HTTP/1.1 200 ") && cut.ends_with("\r\n\r\n"),
        "{cut}"
    );
    assert!(!cut.ends_with(EMPTY), "{cut}");
    let cut = open().await.rest().await;
    assert!(
        cut.contains("\r\n\r\n9\r\ndata: hel\r\n") && !cut.contains(EMPTY),
        "{cut}"
    );
    let typed = open().await.until("\r\n\r\n").await;
    assert!(typed.contains("content-type: text/html\r\n"), "{typed}");
    assert!(open().await.until("\r\n\r\n").await.starts_with("HTTP/1.1 404 "));
    // The session is forgotten; another one is not.
    let ping = Wire::send(&http, "POST", &session, PING)
        .await
        .until("\r\n\r\n")
        .await;
    assert!(ping.starts_with("HTTP/1.1 404 "), "{ping}");
    let other = self::session(&http).await;
    let mut stream = Wire::send(&http, "GET", &other, "").await;
    assert!(stream.until("\r\n\r\n").await.starts_with("HTTP/1.1 200 "));
    server.notify(CHANGED, None);
    stream.until(NOTICE).await;
}

#[tokio::test]
async fn a_scenario_says_it_in_the_same_words() {
    let server = MockServer::from_yaml(
        r#"
tools:
  grow: {replies: [{text: grown, before: [{add_resource_templates: {"mock://{city}": {mime_type: text/plain, replies: [{template: "{{ city }}"}]}}}]}]}
on:
  GET: [{misbehave: [{status: {code: 503}}]}, {}]
  notifications/tools/list_changed: [{misbehave: [twice]}, {no_answer: true}, {misbehave: [{event: "id: 9\ndata: {data}\n\n"}]}]
"#,
    )
    .unwrap();
    let http = server.http().await.unwrap();
    let session = session(&http).await;
    let mut refused = Wire::send(&http, "GET", &session, "").await;
    assert!(refused.until("\r\n\r\n").await.starts_with("HTTP/1.1 503 "));
    let mut stream = Wire::send(&http, "GET", &session, "").await;
    stream.until("\r\n\r\n").await;
    assert_eq!(told(&server, &mut stream).await.matches(NOTICE).count(), 2);
    assert_eq!(told(&server, &mut stream).await.matches(NOTICE).count(), 0);
    let third = told(&server, &mut stream).await;
    assert!(third.contains(&format!("id: 9\ndata: {NOTICE}\n\n")), "{third}");
    // What was not there before can be read once it is.
    let read = r#"{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"mock://Riga"}}"#;
    let grow = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"grow"}}"#;
    let answer = async |body| {
        let mut wire = Wire::send(&http, "POST", &format!("{session}connection: close\r\n"), body).await;
        wire.until("\r\n\r\n").await;
        wire.rest().await
    };
    assert!(answer(read).await.contains("there is no resource"));
    assert!(answer(grow).await.contains("grown"));
    let content = answer(read).await;
    assert!(
        content.contains(r#""text":"Riga""#) && content.contains("text/plain"),
        "{content}"
    );
}
