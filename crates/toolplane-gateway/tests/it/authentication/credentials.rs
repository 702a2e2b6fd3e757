//! Tokens that are missing, malformed, unknown, expired or revoked.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::SystemTime,
};

use bytes::Bytes;
use http::{Method, StatusCode};
use hyper::body::{Body, Frame};
use tokio::{net::TcpListener, sync::oneshot};
use toolplane::{
    Toolplane,
    core::{BoxFuture, TokenRecord, Tokens, TokensError},
    observe::Metrics,
    policy::{NewToken, TokenText},
};
use toolplane_gateway::{Gateway, GatewayOptions, HttpServerOptions, Principal, ServeOptions};

use super::{World, configuration, hours_from_now, json};

const TOOLS: &str = "{t: {description: T., executor: {kind: mock, result: done}}}";
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

fn post() -> http::request::Builder {
    http::Request::post("/mcp")
}

/// Returns status and challenge of a response.
fn refusal<B>(response: &http::Response<B>) -> (u16, Option<&str>) {
    let challenge = response.headers().get("www-authenticate");
    (
        response.status().as_u16(),
        challenge.map(|challenge| challenge.to_str().expect("ASCII")),
    )
}

const BARE: (u16, Option<&str>) = (401, Some("Bearer"));

fn invalid_token(reason: &str) -> String {
    format!(r#"Bearer error="invalid_token", error_description="{reason}""#)
}

#[tokio::test]
async fn only_an_active_token_with_its_secret_is_accepted() {
    let world = World::new("{}", TOOLS);
    let good = world.token("ada").await;
    let expired = world
        .token_with("ada", |token| token.expires_at = hours_from_now(-1))
        .await;
    let revoked = world
        .token_with("ada", |token| token.revoked_at = hours_from_now(-1))
        .await;
    let later = world
        .token_with("ada", |token| token.expires_at = hours_from_now(1))
        .await;
    let reserved = world.token("anonymous").await;
    let unknown = NewToken::generate("ada", SystemTime::now()).expect("randomness");
    let unknown = format!("Bearer {}", unknown.text.expose());
    // The id of a stored token with the secret of another one.
    let forged = {
        let mut record = NewToken::generate("ada", SystemTime::now()).expect("randomness");
        let id = record.record.id.clone();
        record.record.secret_digest = [0; 32];
        world.tokens.insert(record.record).await.expect("it is new");
        assert_eq!(record.text.id(), &*id);
        format!("Bearer {}", record.text.expose())
    };
    for (token, reason) in [
        (&unknown, "the token is unknown"),
        (&forged, "the token is unknown"),
        (&"Bearer tp_0".to_owned(), "the token is unknown"),
        (&expired, "the token has expired"),
        (&revoked, "the token was revoked"),
        (
            &reserved,
            "the principal of the token is reserved for clients without one",
        ),
    ] {
        let response = world.send(post(), Some(token), PING).await;
        assert_eq!(refusal(&response), (401, Some(&*invalid_token(reason))));
        assert_eq!(json(response).await["error"]["message"], reason);
    }
    for token in [&good, &later, &good.replace("Bearer", "bearer")] {
        let response = world.send(post(), Some(token), PING).await;
        assert_eq!(refusal(&response), (200, None));
    }
}

#[tokio::test]
async fn requests_without_credentials_get_a_challenge_and_malformed_ones_an_error() {
    let world = World::new("{}", TOOLS);
    let token = world.token("ada").await;
    let bare = token.strip_prefix("Bearer ").expect("a bearer token");
    for header in [None, Some("Basic YWRhOmFkYQ=="), Some("")] {
        let response = world.send(post(), header, PING).await;
        assert_eq!(refusal(&response), BARE, "{header:?}");
    }
    // A token elsewhere than in the header is not read (RFC 6750, sections 2.2 and 2.3).
    let query = http::Request::post(format!("/mcp?access_token={bare}"));
    assert_eq!(refusal(&world.send(query, None, PING).await), BARE);
    let two = post().header("authorization", &token);
    for (request, header) in [
        (post(), "Bearer"),
        (post(), "Bearer  "),
        (post(), "Bearer a b"),
        (post(), "Bearer \u{e4}"),
        (two, &*token),
    ] {
        let response = world.send(request, Some(header), PING).await;
        let (status, challenge) = refusal(&response);
        assert_eq!(status, 400, "{header}");
        let challenge = challenge.expect("a challenge");
        assert!(
            challenge.starts_with(r#"Bearer error="invalid_request", "#),
            "{challenge}"
        );
    }
}

#[tokio::test]
async fn a_token_stops_to_work_with_the_next_request_after_its_revocation() {
    let world = World::new("{}", TOOLS);
    let token = world.token("ada").await;
    let parsed: TokenText = token["Bearer ".len()..].parse().expect("a token");
    let answer = world.call(&token, "t", "").await;
    assert_eq!(answer["result"]["content"][0]["text"], "done");
    let known = world.tokens.revoke(parsed.id(), SystemTime::now()).await;
    known.expect("it works").expect("it is known");
    assert_eq!(
        world.try_call(&token, "t", "").await.status(),
        StatusCode::UNAUTHORIZED
    );
}

/// Body that notices whether it is read.
struct WatchedBody(Arc<AtomicBool>);

impl Body for WatchedBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.store(true, Ordering::SeqCst);
        Poll::Ready(None)
    }
}

#[tokio::test]
async fn every_endpoint_refuses_before_it_reads_the_body() {
    let world = World::new("{}", TOOLS);
    let is_read = Arc::new(AtomicBool::new(false));
    for (method, path) in [
        (Method::POST, "/mcp"),
        (Method::GET, "/mcp"),
        (Method::DELETE, "/mcp"),
        (Method::GET, "/sse"),
        (Method::POST, "/sse?session=0"),
        (Method::PUT, "/mcp"),
        (Method::OPTIONS, "/mcp"),
    ] {
        let request = http::Request::builder()
            .method(&method)
            .uri(path)
            .header("host", "localhost")
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .header("mcp-session-id", "0")
            .body(WatchedBody(is_read.clone()))
            .expect("a request");
        let response = world.mcp.respond(request).await;
        assert_eq!(refusal(&response), BARE, "{method} {path}");
    }
    assert!(!is_read.load(Ordering::SeqCst));
}

/// Store that does not work.
struct Broken;

impl Tokens for Broken {
    fn insert(&self, _: TokenRecord) -> BoxFuture<'_, Result<(), TokensError>> {
        Box::pin(async { Err(broken()) })
    }

    fn find<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<TokenRecord>, TokensError>> {
        Box::pin(async { Err(broken()) })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<TokenRecord>, TokensError>> {
        Box::pin(async { Err(broken()) })
    }

    fn revoke<'a>(
        &'a self,
        _: &'a str,
        _: SystemTime,
    ) -> BoxFuture<'a, Result<Option<TokenRecord>, TokensError>> {
        Box::pin(async { Err(broken()) })
    }
}

fn broken() -> TokensError {
    TokensError::Unavailable("the disk at /var/secret is gone".to_owned())
}

#[tokio::test]
async fn nobody_gets_in_while_the_store_of_tokens_does_not_work() {
    let token = NewToken::generate("ada", SystemTime::now()).expect("randomness");
    let token = format!("Bearer {}", token.text.expose());
    for has_store in [true, false] {
        let builder = Toolplane::builder()
            .yaml(configuration("{}", TOOLS))
            .expect("it is valid");
        let builder = if has_store {
            builder.tokens(Arc::new(Broken))
        } else {
            builder
        };
        let gateway = Gateway::from(builder.build().expect("it can be set up"));
        let world = World {
            mcp: gateway.http_service(HttpServerOptions::default()),
            ..World::new("{}", TOOLS)
        };
        let response = world.send(post(), Some(&token), PING).await;
        // Without a challenge: the client keeps its token.
        assert_eq!(refusal(&response), (503, None));
        let message = json(response).await["error"]["message"].to_string();
        assert!(!message.contains("secret"), "{message}");
        // Whoever sends no token is not let in either.
        let status = world.send(post(), None, PING).await.status();
        assert!(status.is_client_error() || status.is_server_error(), "{status}");
    }
}

#[tokio::test]
async fn a_login_of_the_host_program_is_asked_instead_of_the_tokens() {
    let world = World::new("{}", TOOLS);
    let options = HttpServerOptions::default().identify(|_| Ok(Principal::new("ada")));
    let mcp = world.gateway.http_service(options);
    let world = World { mcp, ..world };
    assert_eq!(world.send(post(), None, PING).await.status(), StatusCode::OK);
}

/// Tests the pages beside MCP, which only a listener serves.
#[tokio::test]
async fn pages_with_names_need_a_token_and_probes_need_none() {
    let world = World::new("{}", TOOLS);
    let token = world.token("ada").await;
    let options = GatewayOptions::default()
        .metrics(Arc::<Metrics>::default())
        .serves_metrics(true);
    let gateway = Gateway::new(world.plane.clone(), options);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = oneshot::channel::<()>();
    let served = tokio::spawn(async move {
        let stopped = async {
            let _ = stopped.await;
        };
        let (http, serve) = (HttpServerOptions::default(), ServeOptions::default());
        gateway.serve_http(listener, http, serve, stopped).await
    });
    let get = async |path: &str, token: Option<&str>| {
        let authorization = token.map(|token| format!("Authorization: {token}\r\n"));
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\n{}Connection: close\r\n\r\n",
            authorization.unwrap_or_default()
        );
        crate::support::exchange(address, &head).await
    };
    for path in ["/health", "/metrics"] {
        let refused = get(path, None).await;
        assert!(refused.starts_with("HTTP/1.1 401 "), "{path}: {refused}");
        assert!(
            refused.contains("\r\nwww-authenticate: Bearer\r\n"),
            "{path}: {refused}"
        );
        let answered = get(path, Some(&token)).await;
        assert!(answered.starts_with("HTTP/1.1 200 "), "{path}: {answered}");
    }
    assert!(get("/healthz", None).await.contains(r#"{"status":"ok"}"#));
    assert!(get("/readyz", None).await.ends_with(r#"{"status":"ready"}"#));
    assert!(get("/readyz", Some(&token)).await.contains(r#""servers":{}"#));
    stop.send(()).expect("it is serving");
    served.await.expect("no panic").expect("no error");
}
