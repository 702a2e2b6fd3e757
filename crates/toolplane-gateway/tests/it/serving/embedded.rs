//! The gateway at a route of another server: what it does besides answering requests.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, extract::Request, middleware::map_request};
use http_body_util::BodyExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    time::timeout,
};
use toolplane::{
    Toolplane,
    core::Caller,
    observe::{Metrics, OtelMetrics},
};
use toolplane_gateway::{Gateway, GatewayOptions, HttpServerOptions, Principal, RequestRefusal, http};

use crate::support::{BehaviorExecutor, ChangingSource};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#;

async fn login(mut request: Request) -> Request {
    if let Some(user) = request.headers().get("x-user") {
        let user = user.to_str().expect("a name is ASCII").to_owned();
        request.extensions_mut().insert(Principal::new(user));
    }
    request
}

/// Connection to the server.
struct Visit(TcpStream);

impl Visit {
    async fn begin(address: SocketAddr, line: &str, headers: &str, body: &str) -> Self {
        let mut stream = TcpStream::connect(address).await.expect("the server listens");
        let request = format!(
            "{line} HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream
            .write_all(request.as_bytes())
            .await
            .expect("the server reads");
        Self(stream)
    }

    /// Reads until a text has arrived, or to the end.
    async fn until(&mut self, text: &str) -> String {
        let mut heard = String::new();
        let hear = async {
            while !heard.contains(text) {
                let mut buffer = [0; 1024];
                let count = self.0.read(&mut buffer).await.expect("the connection is there");
                if count == 0 {
                    break;
                }
                heard.push_str(&String::from_utf8_lossy(&buffer[..count]));
            }
        };
        timeout(Duration::from_secs(60), hear).await.expect("it arrives");
        heard
    }

    async fn whole(address: SocketAddr, headers: &str, body: &str) -> String {
        let headers = format!("Connection: close\r\n{headers}");
        let mut visit = Self::begin(address, "POST /mcp", &headers, body).await;
        visit.until("\0").await
    }
}

#[tokio::test]
async fn an_embedded_gateway_announces_and_stops() {
    let source = ChangingSource::new(&["a"]);
    let builder = Toolplane::builder()
        .executor(Arc::new(BehaviorExecutor::default()))
        .source(source.clone());
    let options = HttpServerOptions::default().require_principal();
    let mcp = Gateway::from(builder.build().expect("it can be set up")).embed(options);
    let router = Router::new()
        .route_service("/mcp", mcp.service())
        .layer(map_request(login));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = oneshot::channel::<()>();
    let stopping = mcp.stop_on(stopped);
    let serving = axum::serve(listener, router).with_graceful_shutdown(stopping);
    let served = tokio::spawn(async move { serving.await });

    let refused = Visit::whole(address, "Host: localhost\r\n", LIST).await;
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    assert!(refused.contains("www-authenticate: Bearer"), "{refused}");
    let foreign = Visit::whole(address, "Host: tools.example.com\r\nX-User: ada\r\n", LIST).await;
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
    let advice = "this host name is not served here; admit it with `HttpServerOptions::allow_host`";
    assert!(foreign.contains(advice), "{foreign}");

    let opened = Visit::whole(address, "Host: localhost\r\nX-User: ada\r\n", INITIALIZE).await;
    let session = opened.lines().find(|line| line.starts_with("mcp-session-id: "));
    let session = session.expect("a session");
    assert_eq!(mcp.service().n_sessions(), 1);
    let known = format!("Host: localhost\r\nX-User: ada\r\n{session}\r\n");
    let mut stream = Visit::begin(address, "GET /mcp", &known, "").await;
    // The list changes after the client has received it.
    let listed = Visit::whole(address, &known, LIST).await;
    assert!(listed.contains(r#""name":"a""#), "{listed}");
    source.set(&["a", "b"]);
    let heard = stream.until("notifications/tools/list_changed").await;
    assert!(heard.contains("notifications/tools/list_changed"), "{heard}");

    // The stream is open, and the server ends all the same.
    stop.send(()).expect("it is serving");
    let served = timeout(Duration::from_secs(60), served).await;
    served.expect("it ends").expect("no panic").expect("no error");
    stream.until("\0").await;
    mcp.shutdown().await;
}

const TOOLS: &str = "
tools:
  read: {description: Reads., executor: {kind: mock, result: done}}
  write: {description: Writes., required_permissions: [files.write], executor: {kind: mock, result: done}}
";

/// Users of a program with their tokens, and those who can write.
struct Users {
    by_token: [(&'static str, &'static str); 3],
    writers: [&'static str; 1],
}

impl Users {
    fn find(&self, token: &str) -> Option<&'static str> {
        let found = self.by_token.iter().find(|(known, _)| *known == token);
        found.map(|(_, user)| *user)
    }

    fn can_write(&self, user: &str) -> bool {
        self.writers.contains(&user)
    }
}

#[tokio::test]
async fn principals_have_the_permissions_that_the_program_says() {
    let plane = Toolplane::from_yaml(TOOLS).expect("it can be set up");
    let users = Arc::new(Users {
        by_token: [
            ("Bearer of-ada", "ada"),
            ("Bearer of-bob", "bob"),
            ("Bearer of-eve", "eve"),
        ],
        writers: ["ada"],
    });
    // ANCHOR: permissions
    let known = Arc::clone(&users);
    let options = HttpServerOptions::default().identify(move |head| {
        let token = head
            .headers
            .get("authorization")
            .and_then(|token| token.to_str().ok());
        match token.and_then(|token| known.find(token)) {
            Some("eve") => Err(RequestRefusal::forbidden("this account is closed")),
            Some(user) => Ok(Principal::new(user)),
            None => Err(RequestRefusal::unauthorized()),
        }
    });
    let gateway_options = GatewayOptions::default().caller_resolver(move |principal| {
        let mut caller = Caller::new(principal.as_str());
        if users.can_write(principal.as_str()) {
            caller.permissions.insert("files.write".into());
        }
        Arc::new(caller)
    });
    let mcp = Gateway::new(plane, gateway_options).embed(options);
    // ANCHOR_END: permissions
    let list = async |token: &str| {
        let request = http::Request::post("http://localhost/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("authorization", token)
            .body(LIST.to_owned())
            .expect("a request");
        let response = mcp.service().respond(request).await;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.expect("a whole body");
        let body = String::from_utf8(body.to_bytes().to_vec()).expect("it is text");
        (
            status,
            body.contains(r#""name":"read""#),
            body.contains(r#""name":"write""#),
        )
    };
    assert_eq!(list("Bearer of-ada").await, (200, true, true));
    assert_eq!(list("Bearer of-bob").await, (200, true, false));
    assert_eq!(list("Bearer of-eve").await, (403, false, false));
    assert_eq!(list("").await, (401, false, false));
}

#[tokio::test]
async fn a_program_and_its_gateway_share_their_metrics() {
    let builder = Toolplane::builder();
    // ANCHOR: metrics
    let metrics = Arc::new(Metrics::new());
    let plane = builder.metrics(OtelMetrics::global(Arc::clone(&metrics))).build();
    let gateway_options = GatewayOptions::default().metrics(metrics);
    // ANCHOR_END: metrics
    let shown = gateway_options.metrics.clone().expect("they are set");
    let gateway = Gateway::new(plane.expect("it can be set up"), gateway_options);
    let mcp = gateway.embed(HttpServerOptions::default());
    assert!(
        shown.render().contains("toolplane_sessions 0"),
        "{}",
        shown.render()
    );
    mcp.shutdown().await;
}
