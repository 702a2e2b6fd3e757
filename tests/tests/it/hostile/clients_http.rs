//! Clients over HTTP that send invalid messages, too slowly, or on behalf of others.
//!
//! The gateway has no authentication yet, so the id of a session identifies its client; ids are random, and unknown ids
//! are refused. The transport's own tests check which principal a session belongs to.

use std::{
    io::{BufReader, Read as _, Write as _},
    net::SocketAddr,
    sync::Arc,
    thread,
    time::Duration,
};

use super::{assert_memory, healthy};
use crate::support::{
    Client as _, Era, Gateway, HttpGateway, Response, Stopwatch, connect, exchange, receive,
};

/// A request: header lines that a case may change, and a body.
struct Post {
    line: &'static str,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Post {
    fn new(body: impl Into<Vec<u8>>) -> Self {
        let headers = [
            ("Host", "127.0.0.1"),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        Self {
            line: "POST /mcp",
            headers: headers.map(|(name, value)| (name, value.to_owned())).into(),
            body: body.into(),
        }
    }

    /// Returns a modern call whose head and body agree.
    fn modern() -> Self {
        Self::new(modern_body("2026-07-28", "tools/call"))
            .with("MCP-Protocol-Version", "2026-07-28")
            .with("Mcp-Method", "tools/call")
            .with("Mcp-Name", "healthy__echo")
    }

    fn line(mut self, line: &'static str) -> Self {
        self.line = line;
        self
    }

    /// Replaces the value of a header.
    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self = self.without(name);
        self.and(name, value)
    }

    /// Adds another header of this name.
    fn and(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(key, _)| *key != name);
        self
    }

    fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let headers: String = self
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let length = self.body.len();
        let head = format!(
            "{} HTTP/1.1\r\n{headers}Content-Length: {length}\r\n\r\n",
            self.line
        );
        [head.as_bytes(), &self.body].concat()
    }

    fn send(&self, address: SocketAddr) -> Response {
        exchange(address, self.bytes())
    }
}

fn modern_body(version: &str, method: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"name":"healthy__echo","arguments":{{}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"t","version":"0"}}}}}}}}"#
    )
}

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#;

fn call(id: u64, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"healthy__echo","arguments":{arguments}}}}}"#
    )
}

fn assert_served(gateway: &HttpGateway) {
    for post in [Post::modern(), Post::new(call(1, "{}"))] {
        let answer = post.send(gateway.address);
        assert!(
            answer.status == 200 && answer.body.contains("content"),
            "{}",
            answer.body
        );
    }
}

/// Checks the status, and the error code or text in the body.
fn refuses(gateway: &HttpGateway, cases: Vec<(&str, Post, u16, &str)>) {
    for (what, post, status, says) in cases {
        let answer = post.send(gateway.address);
        assert_eq!(answer.status, status, "{what}: {}", answer.body);
        assert!(answer.body.contains(says), "{what}: {}", answer.body);
        assert_served(gateway);
    }
}

#[test]
fn heads_that_are_wrong() {
    let gateway = Gateway::http(&healthy());
    let ping = || Post::new(PING);
    let modern = Post::modern;
    let legacy = |version: &str| ping().with("MCP-Protocol-Version", version);
    refuses(
        &gateway,
        vec![
            ("another host", ping().with("Host", "evil.example.com"), 403, ""),
            ("no host", ping().without("Host"), 403, ""),
            ("two hosts", ping().and("Host", "127.0.0.1"), 403, ""),
            (
                "another origin",
                ping().with("Origin", "https://evil.example.com"),
                403,
                "",
            ),
            ("no page's origin", ping().with("Origin", "null"), 403, ""),
            (
                "a form's type",
                ping().with("Content-Type", "text/plain"),
                415,
                "",
            ),
            ("no type", ping().without("Content-Type"), 415, ""),
            ("compressed", ping().with("Content-Encoding", "gzip"), 415, ""),
            ("pages only", ping().with("Accept", "text/html"), 406, ""),
            ("another path", ping().line("POST /"), 404, ""),
            ("another method", ping().line("PUT /mcp"), 405, ""),
            ("a method of its own", ping().line("MCP /mcp"), 405, ""),
            ("no session to listen to", ping().line("GET /mcp"), 405, ""),
            ("a revision that is none", legacy("1999-01-01"), 400, "-32022"),
            ("a modern head alone", legacy("2026-07-28"), 400, "-32602"),
            (
                "no revision",
                modern().without("MCP-Protocol-Version"),
                400,
                "-32020",
            ),
            (
                "another revision",
                modern().with("MCP-Protocol-Version", "2025-11-25"),
                400,
                "-32020",
            ),
            (
                "two revisions",
                modern().and("MCP-Protocol-Version", "2026-07-28"),
                400,
                "-32020",
            ),
            ("no method", modern().without("Mcp-Method"), 400, "-32020"),
            (
                "the wrong method",
                modern().with("Mcp-Method", "tools/list"),
                400,
                "-32020",
            ),
            ("no name", modern().without("Mcp-Name"), 400, "-32020"),
            (
                "the wrong name",
                modern().with("Mcp-Name", "healthy__act"),
                400,
                "-32020",
            ),
            (
                "a name in no base64",
                modern().with("Mcp-Name", "=?base64?*?="),
                400,
                "-32020",
            ),
            (
                "a name of bytes",
                modern().with("Mcp-Name", "\u{e9}"),
                400,
                "-32020",
            ),
            (
                "a revision to come",
                modern()
                    .with("MCP-Protocol-Version", "2999-01-01")
                    .body(modern_body("2999-01-01", "tools/call")),
                400,
                "-32022",
            ),
            (
                "a method that is none",
                modern()
                    .with("Mcp-Method", "no/such")
                    .body(modern_body("2026-07-28", "no/such")),
                404,
                "-32601",
            ),
            (
                "a method of the other era",
                modern()
                    .with("Mcp-Method", "ping")
                    .body(modern_body("2026-07-28", "ping")),
                404,
                "-32601",
            ),
        ],
    );
    assert_eq!(gateway.terminate().code(), Some(0));
}

#[test]
fn bodies_that_are_wrong() {
    let gateway = Gateway::http(&healthy());
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(1000), "]".repeat(1000));
    let with_id = |id: &str| Post::new(PING.replace(":1,", &format!(":{id},")));
    refuses(
        &gateway,
        vec![
            ("nothing", Post::new(""), 400, "-32700"),
            ("no JSON", Post::new("a=1&b=2"), 400, "-32700"),
            ("two messages", Post::new(format!("{PING}{PING}")), 400, "-32700"),
            (
                "bytes",
                Post::new(*b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xffng\"}"),
                400,
                "-32700",
            ),
            ("an empty batch", Post::new("[]"), 400, "-32600"),
            ("a batch", Post::new(format!("[{PING},{PING}]")), 400, "-32600"),
            (
                "a modern batch",
                Post::modern().body(format!("[{}]", modern_body("2026-07-28", "tools/call"))),
                400,
                "-32600",
            ),
            ("no object", Post::new("7"), 400, "-32600"),
            ("deep arguments", Post::new(call(1, &deep)), 400, "-32600"),
            (
                "a key twice",
                Post::new(call(1, r#"{"a":{"b":1,"\u0062":2}}"#)),
                400,
                "-32600",
            ),
            ("two ids", with_id("1,\"id\":2"), 400, "-32600"),
            ("no id but null", with_id("null"), 400, "-32600"),
            ("a broken id", with_id("1.5"), 400, "-32600"),
            ("an id beyond numbers", with_id("1e400"), 400, "-32600"),
            ("an object as id", with_id("{}"), 400, "-32600"),
            (
                "an id of 2 MB",
                with_id(&format!("\"{}\"", "x".repeat(2_000_000))),
                400,
                "-32600",
            ),
            (
                "neither call nor answer",
                Post::new(r#"{"jsonrpc":"2.0","id":1}"#),
                400,
                "-32600",
            ),
        ],
    );
    // Refused by its declared length before it is sent, or as soon as it is too long.
    let head = String::from_utf8(Post::new("").bytes()).unwrap();
    for (length, status) in [("5000000", 413), ("18446744073709551615", 431)] {
        let head = head.replace("Content-Length: 0", &format!("Content-Length: {length}"));
        assert_eq!(exchange(gateway.address, &head).status, status, "{length}");
    }
    let chunk = format!("400001\r\n{}", " ".repeat(0x0040_0001));
    let chunked = head.replace("Content-Length: 0", "Transfer-Encoding: chunked");
    assert_eq!(exchange(gateway.address, chunked + &chunk).status, 413);
    // Two parsers of these could see two requests (request smuggling).
    for smuggled in [
        "Content-Length: 0\r\nContent-Length: 5",
        "Content-Length: 0\r\nTransfer-Encoding: chunked",
    ] {
        let head = head.replace("Content-Length: 0", smuggled);
        let status = exchange(gateway.address, format!("{head}{PING}")).status;
        assert_ne!(status, 200, "{smuggled}");
    }
    assert_served(&gateway);
    assert_memory(&gateway.process);
    assert_eq!(gateway.terminate().code(), Some(0));
}

#[test]
fn sessions_that_are_not_theirs() {
    let gateway = Gateway::http(&healthy());
    let open = || {
        let answer = Post::new(INITIALIZE).send(gateway.address);
        answer.header("mcp-session-id").unwrap().to_owned()
    };
    let (session, ended) = (open(), open());
    let within = |session: &str| Post::new(PING).with("Mcp-Session-Id", session);
    assert_eq!(
        within(&ended).line("DELETE /mcp").send(gateway.address).status,
        204
    );
    let guessed: String = session.chars().rev().collect();
    let long = "f".repeat(10_000);
    for id in [
        &ended,
        &guessed,
        &long,
        "",
        "0",
        "../1",
        &format!("{session}0"),
        &session[1..],
        &session.to_uppercase().replace(char::is_numeric, "A"),
    ] {
        for line in ["POST /mcp", "GET /mcp", "DELETE /mcp"] {
            let answer = within(id).line(line).send(gateway.address);
            assert_eq!(answer.status, 404, "{line} {id:.40}: {}", answer.body);
        }
    }
    assert_eq!(within(&session).send(gateway.address).status, 200);
    assert_served(&gateway);
    assert_eq!(gateway.terminate().code(), Some(0));
}

#[test]
fn sessions_without_end_make_room_for_each_other() {
    const SESSIONS: usize = 3000;
    let gateway = Gateway::http(&healthy());
    let stream = connect(gateway.address);
    let (mut reader, mut writer) = (BufReader::new(stream.try_clone().unwrap()), stream);
    let initialize = Post::new(INITIALIZE).bytes();
    let ids: Vec<String> = (0..SESSIONS)
        .map(|_| {
            writer.write_all(&initialize).unwrap();
            receive(&mut reader).header("mcp-session-id").unwrap().to_owned()
        })
        .collect();
    let status = |id: &String| {
        Post::new(PING)
            .with("Mcp-Session-Id", id)
            .send(gateway.address)
            .status
    };
    assert_eq!(status(&ids[0]), 404);
    assert_eq!(status(&ids[SESSIONS - 1]), 200);
    assert_memory(&gateway.process);
    assert_eq!(gateway.terminate().code(), Some(0));
}

/// Every connection receives its own answers, although all use the same ids at the same time.
#[test]
fn equal_ids_on_many_connections() {
    let gateway = Gateway::http(&healthy());
    let address = gateway.address;
    let clients: Vec<_> = (0..8)
        .map(|number| {
            let era = if number % 2 == 0 { Era::Legacy } else { Era::Modern };
            let mut client = gateway.client(era);
            thread::spawn(move || {
                for turn in 0..30 {
                    let arguments = format!(r#"{{"client":{number},"turn":{turn}}}"#);
                    let result = client.call("healthy__echo", &arguments).result();
                    let own = arguments.replace('"', "\\\"");
                    assert!(result.contains(&own), "{own}: {result}");
                }
            })
        })
        .collect();
    // Pipelined: several requests on one connection before the first answer.
    let stream = connect(address);
    let mut writer = stream.try_clone().unwrap();
    for turn in 0..30 {
        writer
            .write_all(&Post::new(call(1, &format!(r#"{{"turn":{turn}}}"#))).bytes())
            .unwrap();
    }
    let mut reader = BufReader::new(stream);
    for turn in 0..30 {
        let answer = receive(&mut reader);
        assert!(
            answer.body.contains(&format!(r#"\"turn\":{turn}}}"#)),
            "{}",
            answer.body
        );
    }
    clients.into_iter().for_each(|client| client.join().unwrap());
    assert_eq!(gateway.terminate().code(), Some(0));
}

#[test]
fn slow_clients_are_left() {
    let gateway = Gateway::http(&healthy());
    let address = gateway.address;
    let whole = Post::new(PING).bytes();
    let (head, body) = whole.split_at(whole.len() - PING.len());
    let fast_head = [head, &body[..1]].concat();
    // Bytes sent at once, bytes sent slowly, and the end: a head without an answer, a body with one.
    let cases = [
        (Vec::new(), head.to_vec(), ""),
        (fast_head, body.to_vec(), "HTTP/1.1 408 "),
    ];
    let slow: Vec<_> = cases
        .into_iter()
        .map(|(start, rest, expected)| {
            thread::spawn(move || {
                let mut stream = connect(address);
                stream.write_all(&start).unwrap();
                let mut answer = String::new();
                let mut reader = stream.try_clone().unwrap();
                let writer = thread::spawn(move || {
                    for byte in rest.chunks(1) {
                        thread::sleep(Duration::from_secs(1));
                        if stream.write_all(byte).is_err() {
                            return;
                        }
                    }
                });
                let watch = Stopwatch::start();
                // The connection may be closed or reset.
                let _ = reader.read_to_string(&mut answer);
                assert!(answer.starts_with(expected), "{answer}");
                // The whole message would have taken longer.
                assert!(
                    watch.elapsed() < Duration::from_secs(PING.len() as u64),
                    "{:?}",
                    watch.elapsed()
                );
                writer.join().unwrap();
            })
        })
        .collect();
    assert_served(&gateway);
    slow.into_iter().for_each(|client| client.join().unwrap());
    assert_served(&gateway);
    assert_eq!(gateway.terminate().code(), Some(0));
}

#[test]
fn clients_that_do_not_read_take_no_memory() {
    let gateway = Gateway::http(&healthy());
    let address = gateway.address;
    let request: Arc<[u8]> = Post::new(call(1, &format!(r#"{{"a":"{}"}}"#, "x".repeat(1_000_000))))
        .bytes()
        .into();
    let clients: Vec<_> = (0..10)
        .map(|_| {
            let request = Arc::clone(&request);
            thread::spawn(move || {
                let mut stream = connect(address);
                stream.set_write_timeout(Some(Duration::from_secs(3))).unwrap();
                let sent = (0..200)
                    .take_while(|_| stream.write_all(&request).is_ok())
                    .count();
                assert!(sent < 200, "everything was taken in");
                stream
            })
        })
        .collect();
    assert_served(&gateway);
    let streams: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    assert_served(&gateway);
    assert_memory(&gateway.process);
    drop(streams);
    assert_eq!(gateway.terminate().code(), Some(0));
}
