//! Servers of the WebSocket transport, and their possible faults.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{SinkExt as _, StreamExt as _};
use mcp_client::{
    ClientError, ClientErrorKind, Connection, ConnectionOptions, Endpoint, EraChoice, HttpEndpoint, Upstream,
    UpstreamOptions,
};
use mcp_wire::Era;
use raw_json::RawJson;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async,
    tungstenite::{
        Message,
        handshake::server::{ErrorResponse, Request, Response},
        protocol::{CloseFrame, frame::coding::CloseCode},
    },
};

use crate::support::peer::{DISCOVERED, OPENED, raw, within};

const PATIENCE: Duration = Duration::from_secs(60);
const LIMIT: usize = 64 * 1024;

/// Handle of a test on its server.
struct Server {
    url: String,
    n_opened: Arc<AtomicUsize>,
    /// Messages that the server received, without the handshake.
    said: mpsc::UnboundedReceiver<Value>,
}

/// Starts a server that behaves as the name of the called tool says.
async fn server(era: Era) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/mcp?a=b", listener.local_addr().unwrap());
    let n_opened = Arc::new(AtomicUsize::new(0));
    let (log, said) = mpsc::unbounded_channel();
    let counter = Arc::clone(&n_opened);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (counter, log) = (Arc::clone(&counter), log.clone());
            tokio::spawn(async move {
                let Ok(socket) = accept_hdr_async(socket, greet).await else {
                    return;
                };
                counter.fetch_add(1, Ordering::SeqCst);
                serve(socket, era, &log).await;
            });
        }
    });
    Server { url, n_opened, said }
}

/// Checks the handshake request.
#[expect(clippy::result_large_err, reason = "the library wants it")]
fn greet(request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
    let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap());
    assert_eq!(request.uri().to_string(), "/mcp?a=b");
    assert_eq!(header("sec-websocket-protocol"), Some("mcp"));
    assert_eq!(header("sec-websocket-extensions"), None, "nothing is compressed");
    assert_eq!(header("authorization"), Some("Bearer secret"));
    assert!(header("host").unwrap().starts_with("127.0.0.1:"));
    response
        .headers_mut()
        .insert("sec-websocket-protocol", "mcp".parse().unwrap());
    Ok(response)
}

async fn serve(mut socket: WebSocketStream<TcpStream>, era: Era, log: &mpsc::UnboundedSender<Value>) {
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else { continue };
        let message: Value = serde_json::from_str(&text).unwrap();
        let id = &message["id"];
        let answer = match (message["method"].as_str().unwrap(), era) {
            ("server/discover", Era::Modern) => {
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{DISCOVERED}}}"#)
            }
            ("server/discover", Era::Legacy) | ("initialize", Era::Modern) => {
                format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no"}}}}"#)
            }
            ("initialize", Era::Legacy) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{OPENED}}}"#),
            ("tools/call", _) => {
                log.send(message.clone()).unwrap();
                let name = message["params"]["name"].as_str().unwrap();
                let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"n":1e2}}}}"#);
                if act(&mut socket, name, &answer).await {
                    continue;
                }
                return;
            }
            _ => {
                log.send(message).unwrap();
                continue;
            }
        };
        socket.send(Message::text(answer)).await.unwrap();
    }
}

/// Raw frame with its length in the longest form.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first, 127];
    frame.extend_from_slice(&(payload.len() as u64).to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// Behaves as the name says. Returns `false` when the connection is over.
async fn act(socket: &mut WebSocketStream<TcpStream>, name: &str, answer: &str) -> bool {
    const TEXT: u8 = 0x81;
    const MORE: u8 = 0x01;
    const CONTINUED: u8 = 0x80;
    const PING: u8 = 0x89;
    let bytes = answer.as_bytes();
    let (start, end) = bytes.split_at(bytes.len() / 2);
    let (written, goes_on): (Vec<u8>, bool) = match name {
        "answer" => (frame(TEXT, bytes), true),
        "lines" => (frame(TEXT, answer.replace(',', ",\r\n").as_bytes()), true),
        "fragments" => (
            [
                frame(MORE, start),
                frame(0x00, b""),
                vec![PING, 0],
                frame(CONTINUED, end),
            ]
            .concat(),
            true,
        ),
        "garbage" => (
            [frame(TEXT, b"no message"), frame(TEXT, b""), frame(TEXT, bytes)].concat(),
            true,
        ),
        "pings" => {
            socket.send(Message::Ping("are you there".into())).await.unwrap();
            let pong = socket.next().await.unwrap().unwrap();
            assert_eq!(pong, Message::Pong("are you there".into()));
            (frame(TEXT, bytes), true)
        }
        "answer and close" => ([frame(TEXT, bytes), vec![0x88, 0]].concat(), false),
        "silence" => return true,
        "close" => {
            let close = CloseFrame {
                code: CloseCode::Restart,
                reason: "back soon\u{1b}[2J".into(),
            };
            socket.send(Message::Close(Some(close))).await.unwrap();
            // Wait for the client's close frame.
            while socket.next().await.is_some() {}
            return false;
        }
        "end" => (Vec::new(), false),
        "half a frame" => (frame(TEXT, bytes)[..15].to_vec(), false),
        "binary" => (frame(0x82, bytes), false),
        "oversize" => (frame(TEXT, &vec![b' '; LIMIT + 1]), false),
        "a length that is a lie" => ([vec![0x81, 127], u64::MAX.to_be_bytes().to_vec()].concat(), false),
        "oversize in fragments" => {
            let piece = vec![b' '; LIMIT / 2 + 1];
            (
                [frame(MORE, &piece), frame(0x00, &piece), frame(CONTINUED, b"")].concat(),
                false,
            )
        }
        "masked" => (
            [vec![TEXT, 0x80 | 4, 0, 0, 0, 0], b"null".to_vec()].concat(),
            false,
        ),
        "compressed" => (frame(0xC1, bytes), false),
        "no text" => (frame(TEXT, b"\xff\xfe"), false),
        "an unknown frame" => (frame(0x83, bytes), false),
        "a long ping" => (frame(PING, &[0; 126]), false),
        "a continuation of nothing" => (frame(CONTINUED, bytes), false),
        other => panic!("{other}"),
    };
    let raw = socket.get_mut();
    let _ = raw.write_all(&written).await;
    if !goes_on && !matches!(name, "end" | "half a frame") {
        // Wait until the client has disconnected.
        let mut rest = Vec::new();
        let _ = raw.read_to_end(&mut rest).await;
    }
    goes_on
}

fn endpoint(url: &str) -> HttpEndpoint {
    let endpoint = HttpEndpoint::websocket(url).unwrap();
    endpoint.header("authorization", "Bearer secret").unwrap()
}

fn options(era: EraChoice) -> ConnectionOptions {
    ConnectionOptions::default().era(era).max_message(LIMIT)
}

async fn open(url: &str, era: EraChoice) -> Result<Connection, ClientError> {
    let endpoint = endpoint(url);
    let opening = Connection::websocket(&endpoint, options(era));
    timeout(PATIENCE, opening).await.unwrap()
}

fn upstream(server: &Server, era: EraChoice) -> Upstream {
    let options = UpstreamOptions::default().connection(options(era));
    Upstream::new(Endpoint::WebSocket(endpoint(&server.url)), options)
}

async fn call(upstream: &Upstream, name: &str) -> Result<RawJson, ClientError> {
    let params = raw(&format!(r#"{{"name":"{name}"}}"#));
    let calling = upstream.request("tools/call", Some(params), within(20));
    timeout(PATIENCE, calling).await.unwrap()
}

#[tokio::test]
async fn messages_of_both_eras() {
    for era in [Era::Legacy, Era::Modern] {
        let mut server = server(era).await;
        let upstream = upstream(&server, EraChoice::Auto);
        for name in ["answer", "lines", "fragments", "garbage", "pings", "answer"] {
            let result = call(&upstream, name).await;
            let result = result.unwrap_or_else(|error| panic!("{era:?}, {name}: {error}"));
            assert_eq!(result.get("n").unwrap().as_str(), "1e2", "{name}");
        }
        let connection = upstream.connection().await.unwrap();
        assert_eq!(connection.server().era(), era);
        assert_eq!(
            server.n_opened.load(Ordering::SeqCst),
            1,
            "one connection does for all"
        );
        // A caller that leaves cancels its request, and a large message arrives whole.
        let params = raw(&format!(r#"{{"name":"silence","x":"{}"}}"#, "x".repeat(1 << 20)));
        let waiting = tokio::spawn({
            let connection = connection.clone();
            async move { connection.request("tools/call", Some(params), within(50)).await }
        });
        let next = async |server: &mut Server| timeout(PATIENCE, server.said.recv()).await.unwrap().unwrap();
        let sent = loop {
            let said = next(&mut server).await;
            if said["params"]["name"] == "silence" {
                break said;
            }
        };
        assert_eq!(sent["params"]["x"].as_str().unwrap().len(), 1 << 20);
        waiting.abort();
        let cancelled = next(&mut server).await;
        assert_eq!(
            (&cancelled["method"], &cancelled["params"]["requestId"]),
            (&"notifications/cancelled".into(), &sent["id"])
        );
        upstream.shutdown().await;
    }
}

/// Faults of a server during a call. The request was sent, so its outcome is unknown, and the next call opens another
/// connection.
#[tokio::test]
async fn servers_that_misbehave() {
    for (name, expected) in [
        ("close", "with code 1012: back soon\\u{1b}[2J"),
        ("end", "the server closed the connection"),
        ("half a frame", "the server closed the connection"),
        ("binary", "a binary message"),
        ("oversize", "larger than 65536 bytes"),
        ("a length that is a lie", "larger than 65536 bytes"),
        ("oversize in fragments", "larger than 65536 bytes"),
        ("masked", "invalid WebSocket"),
        ("compressed", "invalid WebSocket"),
        ("no text", "invalid WebSocket"),
        ("an unknown frame", "invalid WebSocket"),
        ("a long ping", "invalid WebSocket"),
        ("a continuation of nothing", "invalid WebSocket"),
    ] {
        let server = server(Era::Legacy).await;
        let connection = open(&server.url, EraChoice::Legacy).await.unwrap();
        let params = raw(&format!(r#"{{"name":"{name}"}}"#));
        let calling = connection.request("tools/call", Some(params), within(20));
        let error = timeout(PATIENCE, calling).await.unwrap().unwrap_err();
        assert!(error.was_sent(), "{name}: {error}");
        assert!(error.to_string().contains(expected), "{name}: {error}");
        assert!(
            matches!(
                error.kind(),
                ClientErrorKind::Closed(_) | ClientErrorKind::TooLarge { limit: LIMIT, .. }
            ),
            "{name}: {error:?}"
        );
        timeout(PATIENCE, connection.closed()).await.unwrap();
        let error = connection
            .request("tools/call", None, within(20))
            .await
            .unwrap_err();
        assert!(!error.was_sent(), "{name}: {error}");
    }
}

#[tokio::test]
async fn a_server_that_is_gone_is_asked_again() {
    let server = server(Era::Legacy).await;
    let upstream = upstream(&server, EraChoice::Legacy);
    // Messages before the end are received.
    assert_eq!(
        call(&upstream, "answer and close")
            .await
            .unwrap()
            .get("n")
            .unwrap()
            .as_str(),
        "1e2"
    );
    let connection = upstream.connection().await;
    if let Ok(connection) = connection {
        timeout(PATIENCE, connection.closed()).await.unwrap();
    }
    tokio::time::pause();
    loop {
        tokio::time::advance(Duration::from_secs(2)).await;
        match call(&upstream, "answer").await {
            Ok(_) => break,
            Err(error) => assert!(!error.was_sent(), "{error}"),
        }
    }
    assert_eq!(server.n_opened.load(Ordering::SeqCst), 2);
}

/// Answers to the handshake request.
#[tokio::test]
async fn handshakes_that_fail() {
    type Judge = fn(&ClientErrorKind) -> bool;
    let cases: [(&str, Judge); 8] = [
        (
            "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer realm=x\r\ncontent-length: 0\r\n\r\n",
            |kind| matches!(kind, ClientErrorKind::Auth { status: 401, challenge: Some(challenge), .. } if challenge == "Bearer realm=x"),
        ),
        ("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n", |kind| {
            matches!(
                kind,
                ClientErrorKind::Auth {
                    status: 403,
                    challenge: None,
                    ..
                }
            )
        }),
        (
            "HTTP/1.1 503 Busy\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n",
            |kind| matches!(kind, ClientErrorKind::HttpStatus { status: 503, retry_after: Some(after), .. } if after == "7"),
        ),
        (
            "HTTP/1.1 302 Found\r\nlocation: ws://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
            |kind| matches!(kind, ClientErrorKind::HttpStatus { status: 302, .. }),
        ),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", |kind| {
            matches!(kind, ClientErrorKind::HttpStatus { status: 200, .. })
        }),
        // The key of another handshake.
        (
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-protocol: mcp\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
            |kind| matches!(kind, ClientErrorKind::Closed(said) if said.contains("invalid WebSocket")),
        ),
        ("SSH-2.0-OpenSSH_9.2\r\n\r\n", |kind| {
            matches!(kind, ClientErrorKind::Closed(_))
        }),
        ("", |kind| matches!(kind, ClientErrorKind::Closed(_))),
    ];
    for (answer, is_right) in cases {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(socket.read_u8().await.unwrap());
            }
            socket.write_all(answer.as_bytes()).await.unwrap();
        });
        let error = open(&url, EraChoice::Auto).await.map(drop).unwrap_err();
        assert!(
            is_right(error.kind()) && !error.was_sent(),
            "{answer:?}: {error:?}"
        );
    }
}

#[tokio::test]
async fn a_server_without_the_subprotocol_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let _open = tokio_tungstenite::accept_async(socket).await;
    });
    let error = open(&url, EraChoice::Auto).await.map(drop).unwrap_err();
    assert!(error.to_string().to_lowercase().contains("protocol"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_has_its_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    let opened = Connection::websocket(&endpoint(&url), options(EraChoice::Auto)).await;
    let error = opened.map(drop).unwrap_err();
    assert!(matches!(error.kind(), ClientErrorKind::Timeout(_)), "{error:?}");
}

#[tokio::test]
async fn endpoints_that_cannot_be() {
    for url in [
        "http://x/",
        "https://x/",
        "wss://",
        "ws://a:b@x/",
        "wss://a@x/",
        "ws://:b@x/",
        "ws:\\\\a:b@x",
        "ftp://x/",
    ] {
        let error = HttpEndpoint::websocket(url).map(drop).unwrap_err();
        assert!(
            matches!(error.kind(), ClientErrorKind::Invalid(_)),
            "{url}: {error:?}"
        );
    }
    assert!(HttpEndpoint::new("ws://x/").is_err());
    for name in [
        "sec-websocket-extensions",
        "Sec-WebSocket-Key",
        "sec-websocket-protocol",
    ] {
        let endpoint = endpoint("ws://127.0.0.1:1/").header(name, "x").unwrap();
        let opening = Connection::websocket(&endpoint, options(EraChoice::Auto));
        let error = opening.await.map(drop).unwrap_err();
        assert!(
            matches!(error.kind(), ClientErrorKind::Invalid(said) if said.contains("cannot be set")),
            "{error:?}"
        );
    }
}
