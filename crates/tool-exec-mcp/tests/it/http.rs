//! Failures that only servers over HTTP have.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::Mutex,
};
use tool_core::{BoxFuture, ErrorKind, Reference, Refresh, Secret, SecretError, Secrets, Template};
use tool_exec_mcp::{EraChoice, HttpTarget, HttpTransport, McpServer, ServerSettings};

use crate::fixture::{Call, NoSecrets, load};

/// Listens on the loopback interface. Every call of a tool gets this response.
async fn listen(response: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, response));
        }
    });
    address
}

/// Answers requests one after the other until the client leaves.
async fn serve(stream: TcpStream, response: &str) {
    let mut stream = BufReader::new(stream);
    while let Some((line, body)) = read_request(&mut stream).await {
        let id = &body["id"];
        let answer = match body["method"].as_str() {
            _ if !line.starts_with("POST") => bare("405 Method Not Allowed"),
            Some("initialize") => result(
                id,
                r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"h","version":"1"}}"#,
            ),
            Some("tools/list") => result(
                id,
                r#"{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#,
            ),
            Some("tools/call") if response == "ok" => result(id, r#"{"content":[]}"#),
            Some("tools/call") if response == "close" => return,
            Some("tools/call") => match response.split_once('|') {
                Some((status, body)) => with_body(status, body),
                None => bare(response),
            },
            _ => bare("202 Accepted"),
        };
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

pub(crate) async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<(String, Value)> {
    let (mut first, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let lower = line.trim().to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if lower.is_empty() {
            break;
        }
        if first.is_empty() {
            first = line;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((first, serde_json::from_slice(&body).unwrap_or_default()))
}

fn with_body(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// A response without a body. The text is the status, possibly with headers.
pub(crate) fn bare(status: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")
}

pub(crate) fn result(id: &Value, result: &str) -> String {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
}

async fn server(response: &'static str) -> Arc<McpServer> {
    let target = HttpTarget::new(Template::parse(&format!("http://{}/mcp", listen(response).await)).unwrap())
        .transport(HttpTransport::Streamable);
    let mut settings = ServerSettings::new("box", target);
    settings.era = EraChoice::Legacy;
    McpServer::new(settings, Arc::new(NoSecrets))
}

#[tokio::test]
async fn tools_of_an_endpoint_are_listed_and_called() {
    let server = server("ok").await;
    let catalogue = load(&server).await;
    assert_eq!(&*catalogue.tools[0].name, "box__echo");
    let reply = Call::new(&server, "echo", json!({})).make().await.unwrap();
    assert_eq!(reply.raw().as_str(), r#"{"content":[]}"#);
    server.shutdown().await;
}

#[tokio::test]
async fn statuses_have_their_kinds() {
    let cases = [
        (
            "401 Unauthorized\r\nWWW-Authenticate: Bearer",
            ErrorKind::Auth,
            None,
        ),
        ("403 Forbidden", ErrorKind::Auth, None),
        ("429 Too Many Requests", ErrorKind::RateLimited, None),
        (
            "429 Too Many Requests\r\nRetry-After: 7",
            ErrorKind::RateLimited,
            Some(Duration::from_secs(7)),
        ),
        (
            "429 Too Many Requests\r\nRetry-After: 99999999999999999999",
            ErrorKind::RateLimited,
            Some(Duration::from_secs(u64::MAX)),
        ),
        (
            "429 Too Many Requests\r\nRetry-After: Thu, 01 Jan 1970 00:00:10 GMT",
            ErrorKind::RateLimited,
            Some(Duration::from_secs(10)),
        ),
        (
            "429 Too Many Requests\r\nRetry-After: soon",
            ErrorKind::RateLimited,
            None,
        ),
        ("400 Bad Request", ErrorKind::InvalidArguments, None),
        ("404 Not Found", ErrorKind::UpstreamError, None),
        ("408 Request Timeout", ErrorKind::Unavailable, None),
        ("410 Gone", ErrorKind::UpstreamError, None),
        ("422 Unprocessable Content", ErrorKind::InvalidArguments, None),
        ("302 Found", ErrorKind::UpstreamError, None),
        // A proxy may answer with these after the server has begun.
        ("500 Internal Server Error", ErrorKind::OutcomeUnknown, None),
        ("502 Bad Gateway", ErrorKind::OutcomeUnknown, None),
        ("504 Gateway Timeout", ErrorKind::OutcomeUnknown, None),
        ("503 Service Unavailable", ErrorKind::Unavailable, None),
        (
            "503 Service Unavailable\r\nRetry-After: 7",
            ErrorKind::Unavailable,
            Some(Duration::from_secs(7)),
        ),
        // Some frameworks report this as an error without a request id.
        (
            r#"500 Internal Server Error|{"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal server error"},"id":null}"#,
            ErrorKind::OutcomeUnknown,
            None,
        ),
        (
            "502 Bad Gateway\r\nRetry-After: 7|{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32603,\"message\":\"bad gateway\"}}",
            ErrorKind::OutcomeUnknown,
            Some(Duration::from_secs(7)),
        ),
        (
            r#"400 Bad Request|{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"},"id":null}"#,
            ErrorKind::InvalidArguments,
            None,
        ),
        ("close", ErrorKind::OutcomeUnknown, None),
    ];
    for (response, kind, retry_after) in cases {
        let server = server(response).await;
        let error = Call::new(&server, "echo", json!({})).make().await.unwrap_err();
        assert_eq!(
            (error.kind(), error.retry_after()),
            (kind, retry_after),
            "{response}: {error}"
        );
        server.shutdown().await;
    }
}

#[tokio::test]
async fn a_negative_wait_forbids_another_attempt() {
    for (response, is_final) in [
        ("429 Too Many Requests\r\nRetry-After: -1", true),
        ("503 Service Unavailable\r\nRetry-After: -1", true),
        ("503 Service Unavailable\r\nRetry-After: 1", false),
        ("503 Service Unavailable", false),
    ] {
        let server = server(response).await;
        let error = Call::new(&server, "echo", json!({})).make().await.unwrap_err();
        assert_eq!(error.allows_retry(), !is_final, "{response}: {error}");
        server.shutdown().await;
    }
}

/// A server of 2024-11-05, which answers on the event stream alone.
async fn listen_old() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let events: Arc<Mutex<Option<TcpStream>>> = Arc::default();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve_old(stream, events.clone()));
        }
    });
    address
}

async fn serve_old(stream: TcpStream, events: Arc<Mutex<Option<TcpStream>>>) {
    let mut stream = BufReader::new(stream);
    while let Some((line, body)) = read_request(&mut stream).await {
        if line.starts_with("GET") {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            let first = format!("{head}event: endpoint\ndata: /messages\n\n");
            stream.write_all(first.as_bytes()).await.unwrap();
            *events.lock().await = Some(stream.into_inner());
            return;
        }
        let is_message = line.starts_with("POST /messages ");
        let result = match body["method"].as_str() {
            Some("initialize") => {
                r#"{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"o","version":"1"}}"#
            }
            _ => r#"{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#,
        };
        if is_message && !body["id"].is_null() {
            let event = format!(
                "data: {{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}\n\n",
                body["id"]
            );
            let mut events = events.lock().await;
            events
                .as_mut()
                .unwrap()
                .write_all(event.as_bytes())
                .await
                .unwrap();
        }
        let status = if is_message {
            "202 Accepted"
        } else {
            "405 Method Not Allowed"
        };
        if stream.write_all(bare(status).as_bytes()).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn servers_of_the_old_transport_are_reached_unless_it_is_ruled_out() {
    for (transport, reached) in [
        (HttpTransport::Either, true),
        (HttpTransport::Sse, true),
        (HttpTransport::Streamable, false),
    ] {
        let target = HttpTarget::new(Template::parse(&format!("http://{}/sse", listen_old().await)).unwrap())
            .transport(transport);
        let server = McpServer::new(ServerSettings::new("box", target), Arc::new(NoSecrets));
        let catalogue = load(&server).await;
        assert_eq!(catalogue.tools.len(), usize::from(reached), "{transport:?}");
        server.shutdown().await;
    }
}

/// A key as part of the URL, cached until it is renewed.
struct Kept {
    n_renewals: AtomicUsize,
    keys: &'static [&'static str],
}

impl Secrets for Kept {
    fn get<'a>(&'a self, _: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        let n = self.n_renewals.load(Ordering::SeqCst);
        let key = self.keys[n.min(self.keys.len() - 1)];
        Box::pin(async move { Ok(Some(Secret::new(key))) })
    }

    fn renew<'a>(&'a self, _: &'a Reference) -> BoxFuture<'a, Result<(), SecretError>> {
        self.n_renewals.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(()) })
    }

    fn has(&self, _: &Reference) -> Result<bool, SecretError> {
        Ok(true)
    }
}

/// Answers requests to the path of the fresh key.
async fn guard(mut stream: BufReader<TcpStream>) {
    while let Some((line, body)) = read_request(&mut stream).await {
        let answer = match body["method"].as_str() {
            _ if !line.starts_with("POST /fresh ") => bare("401 Unauthorized"),
            Some("initialize") => result(
                &body["id"],
                r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"h","version":"1"}}"#,
            ),
            Some("tools/list") => result(
                &body["id"],
                r#"{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#,
            ),
            Some("tools/call") => result(&body["id"], r#"{"content":[]}"#),
            _ => bare("202 Accepted"),
        };
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// A server that accepts the fresh key alone, and returns these keys for it.
async fn guarded(keys: &'static [&'static str]) -> (Arc<McpServer>, Arc<Kept>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/${{secret:key}}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(guard(BufReader::new(stream)));
        }
    });
    let target = HttpTarget::new(Template::parse(&url).unwrap()).transport(HttpTransport::Streamable);
    let mut settings = ServerSettings::new("box", target);
    settings.era = EraChoice::Legacy;
    let n_renewals = AtomicUsize::new(0);
    let kept = Arc::new(Kept { n_renewals, keys });
    (McpServer::new(settings, kept.clone()), kept)
}

/// Checks that a renewal may need several attempts, before anything was listed.
#[tokio::test]
async fn a_key_is_renewed_until_the_server_takes_it() {
    let (server, kept) = guarded(&["stale", "older", "fresh"]).await;
    assert_eq!(load(&server).await.tools.len(), 0);
    assert_eq!(kept.n_renewals.load(Ordering::SeqCst), 1);
    assert_eq!(load(&server).await.tools.len(), 1);
    assert_eq!(kept.n_renewals.load(Ordering::SeqCst), 2);
    server.shutdown().await;
}

#[tokio::test]
async fn a_server_that_refuses_the_key_is_reached_with_another() {
    for lists_first in [false, true] {
        let (server, kept) = guarded(&["stale", "fresh"]).await;
        if lists_first {
            assert_eq!(load(&server).await.tools.len(), 1, "it renews the key by itself");
        } else {
            let mut call = Call::new(&server, "echo", json!({}));
            let error = call.make().await.unwrap_err();
            assert!(error.kind() == ErrorKind::Auth && error.allows_retry(), "{error}");
            let executor = call.cx.tool().executor().clone();
            assert!(
                !executor.refresh_credentials_boxed(Refresh::Peek).await,
                "there is no other yet"
            );
            assert!(executor.refresh_credentials_boxed(Refresh::Force).await);
            assert!(
                executor.refresh_credentials_boxed(Refresh::Force).await,
                "others find it renewed"
            );
        }
        assert_eq!(kept.n_renewals.load(Ordering::SeqCst), 1);
        Call::new(&server, "echo", json!({})).make().await.unwrap();
        server.shutdown().await;
    }
}

/// A server that changes its era on demand. It refuses requests of the other era with this text, and runs a tool in its
/// own.
struct Switching {
    is_modern: AtomicBool,
    refusal: &'static str,
    n_runs: AtomicUsize,
}

impl Switching {
    fn answer(&self, line: &str, body: &Value) -> String {
        let is_modern = self.is_modern.load(Ordering::SeqCst);
        let id = &body["id"];
        let asked = &body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        let fits = match body["method"].as_str() {
            _ if !line.starts_with("POST") => return bare("405 Method Not Allowed"),
            Some("initialize") => !is_modern,
            Some("server/discover") => is_modern,
            _ if id.is_null() => return bare("202 Accepted"),
            _ => asked.is_null() != is_modern,
        };
        if !fits {
            return self.refuse(id, is_modern);
        }
        match body["method"].as_str() {
            Some("initialize") => result(
                id,
                r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}"#,
            ),
            Some("server/discover") => result(
                id,
                r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#,
            ),
            Some("tools/call") => {
                self.n_runs.fetch_add(1, Ordering::SeqCst);
                result(id, r#"{"content":[],"resultType":"complete"}"#)
            }
            _ => result(id, r#"{"tools":[]}"#),
        }
    }

    fn refuse(&self, id: &Value, is_modern: bool) -> String {
        if self.refusal != "named" {
            return bare(self.refusal);
        }
        let supported = if is_modern { "2026-07-28" } else { "2025-11-25" };
        let body = json!({"jsonrpc": "2.0", "id": id, "error": {
            "code": -32022, "message": "Unsupported protocol version", "data": {"supported": [supported]},
        }});
        let body = body.to_string();
        let length = body.len();
        format!(
            "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    }
}

#[tokio::test]
async fn a_change_of_the_servers_era_is_detected() {
    for (was_modern, refusal) in [
        (true, "400 Bad Request"),
        (true, "404 Not Found"),
        (true, "named"),
        (false, "400 Bad Request"),
        (false, "404 Not Found"),
        (false, "named"),
    ] {
        let switching = Arc::new(Switching {
            is_modern: AtomicBool::new(was_modern),
            refusal,
            n_runs: AtomicUsize::new(0),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = switching.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serving.clone();
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    while let Some((line, body)) = read_request(&mut stream).await {
                        let answer = serving.answer(&line, &body);
                        if stream.write_all(answer.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        let target = HttpTarget::new(Template::parse(&format!("http://{address}/mcp")).unwrap())
            .transport(HttpTransport::Streamable);
        let server = McpServer::new(ServerSettings::new("box", target), Arc::new(NoSecrets));
        let is_modern = || {
            let status = server.status().unwrap();
            status.server.unwrap().era() == mcp_wire::Era::Modern
        };
        Call::new(&server, "echo", json!({})).make().await.unwrap();
        assert_eq!(is_modern(), was_modern);
        switching.is_modern.store(!was_modern, Ordering::SeqCst);
        Call::new(&server, "echo", json!({})).make().await.unwrap();
        assert_eq!(is_modern(), !was_modern, "{refusal}");
        assert_eq!(switching.n_runs.load(Ordering::SeqCst), 2, "{refusal}");
        // Eras are not tried again and again: this refusal has another cause.
        switching.is_modern.store(was_modern, Ordering::SeqCst);
        Call::new(&server, "echo", json!({})).make().await.unwrap_err();
        assert_eq!(switching.n_runs.load(Ordering::SeqCst), 2);
        server.shutdown().await;
    }
}
