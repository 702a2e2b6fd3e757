//! Requests that a server authenticates before it reads them.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use http::request::Parts;
use mcp_server::{
    AuthenticateRequest, AuthenticateRequestFuture, HttpServerOptions, Principal, RequestRefusal, http,
};

use crate::support::{EVERYTHING, Head, Served};

/// Login by keys that are the names of their users. It waits once, as a login that asks a store does.
#[derive(Default)]
struct ByKey {
    n_asked: Arc<AtomicUsize>,
}

impl AuthenticateRequest for ByKey {
    fn authenticate<'a>(&'a self, head: &'a Parts) -> AuthenticateRequestFuture<'a> {
        Box::pin(async move {
            self.n_asked.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            let key = head
                .headers
                .get("authorization")
                .ok_or_else(RequestRefusal::unauthorized)?;
            match key.to_str().ok().and_then(|key| key.strip_prefix("Bearer ")) {
                Some("down") => Err(RequestRefusal::unavailable("the store is down")),
                Some("bad") => Err(RequestRefusal::invalid_token("the \"key\" is \\ bad\u{e4}\n")),
                Some(user) => Ok(Principal::new(user)),
                None => Err(RequestRefusal::invalid_request("no bearer token")),
            }
        })
    }
}

async fn start() -> (Served, Arc<AtomicUsize>) {
    let login = ByKey::default();
    let n_asked = login.n_asked.clone();
    let options = HttpServerOptions::default()
        .path("/mcp")
        .sse_path("/sse")
        // The login decides, not this.
        .identify(|_| Ok(Principal::new("nobody")))
        .authenticate(login);
    let served = Served::start(options).await;
    served.log.offer(EVERYTHING);
    (served, n_asked)
}

fn at(path: &str) -> Head<'_> {
    Head { path, ..Head::post() }
}

const WHO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"test/who"}"#;
const PAUSE: &str = r#"{"jsonrpc":"2.0","id":7,"method":"test/pause"}"#;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"t","version":"0"}}}"#;

#[tokio::test]
async fn refusals_have_the_challenges_of_the_standard() {
    let (served, _) = start().await;
    for (key, status, challenge) in [
        (None, 401, Some("Bearer")),
        (
            Some("Bearer bad"),
            401,
            Some(r#"Bearer error="invalid_token", error_description="the key is  bad""#),
        ),
        (
            Some("Basic x"),
            400,
            Some(r#"Bearer error="invalid_request", error_description="no bearer token""#),
        ),
        (Some("Bearer down"), 503, None),
        (Some("Bearer ada"), 200, None),
    ] {
        let head = match key {
            Some(key) => at("/mcp").with("Authorization", key),
            None => at("/mcp"),
        };
        let answer = served.once(&head, WHO).await;
        assert_eq!(
            (answer.status, answer.header("www-authenticate")),
            (status, challenge),
            "{key:?}"
        );
        if status == 200 {
            assert!(answer.body.contains(r#""principal":"ada""#), "{}", answer.body);
        }
    }
}

#[tokio::test]
async fn every_endpoint_asks_the_login() {
    let (served, n_asked) = start().await;
    for (n, (method, path)) in [
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
        ("PUT", "/mcp"),
        ("GET", "/sse"),
        ("POST", "/sse?session=0"),
        ("DELETE", "/sse"),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = served.once(&at(path).method(method), "").await;
        assert_eq!(answer.status, 401, "{method} {path}");
        assert_eq!(n_asked.load(Ordering::SeqCst), n + 1, "{method} {path}");
    }
    // Hosts, origins and paths are checked first, which needs no store.
    let n_before = n_asked.load(Ordering::SeqCst);
    assert_eq!(served.once(&at("/other"), WHO).await.status, 404);
    let page = at("/mcp").with("Origin", "https://example.com");
    assert_eq!(served.once(&page, WHO).await.status, 403);
    assert_eq!(n_asked.load(Ordering::SeqCst), n_before);
}

#[tokio::test]
async fn a_body_that_never_comes_does_not_delay_a_refusal() {
    let (served, _) = start().await;
    let mut connection = served.connect().await;
    // The head promises more bytes than are sent.
    connection.send_head(&at("/mcp"), 1 << 20).await;
    assert_eq!(connection.head().await.status, 401);
}

#[tokio::test]
async fn a_stream_is_resumed_by_its_principal_only() {
    let (served, _) = start().await;
    let ada = || at("/mcp").with("Authorization", "Bearer ada");
    let opened = served.once(&ada(), INITIALIZE).await;
    let session = opened.header("mcp-session-id").expect("a session").to_owned();
    let session = |head: Head<'static>| head.with("Mcp-Session-Id", &session);
    let paused = served.once(&session(ada()), PAUSE).await;
    assert!(paused.body.starts_with("id: 1-1\n"), "{}", paused.body);
    served.log.running(1).await;
    let resume = |head: Head<'static>| session(head).method("GET").with("Last-Event-ID", "1-1");
    let stolen = resume(at("/mcp").with("Authorization", "Bearer bob"));
    assert_eq!(served.once(&stolen, "").await.status, 404);
    // Nor does another principal cancel the call.
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    let other = session(at("/mcp").with("Authorization", "Bearer bob"));
    assert_eq!(served.once(&other, cancel).await.status, 404);
    assert_eq!(served.log.running.load(Ordering::SeqCst), 1);
    let mut stream = served.connect().await;
    stream.send(&resume(ada()), "").await;
    assert_eq!(stream.head().await.status, 200);
    served.log.gate.add_permits(1);
    let last = loop {
        let event = stream.event().await.expect("the stream is open");
        if event.contains(r#""id":7"#) {
            break event;
        }
    };
    assert!(last.contains(r#""result":{}"#), "{last}");
}
