//! Serving over HTTP: the gateway's own routes, and the gateway in another router.

use std::{sync::Arc, time::Duration};

use axum::{Router, routing::get};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    time::timeout,
};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};
use toolplane::{Toolplane, observe::Metrics};
use toolplane_gateway::{Gateway, GatewayOptions, HttpServerOptions, ServeOptions, serve_metrics};

use crate::support::{BehaviorExecutor, ChangingSource, plane};

async fn exchange(
    address: std::net::SocketAddr,
    method: &str,
    path: &str,
    host: &str,
    body: &str,
) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.expect("the server listens");
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream
        .write_all(request.as_bytes())
        .await
        .expect("the server reads");
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .await
        .expect("the server answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head[9..12].parse().expect("a status"), body.to_owned())
}

const CALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":1}}}"#;
const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}}"#;

fn gateway() -> Gateway {
    let plane = plane(&ScriptedExecutor::new([ScriptStep::Echo]), [TestTool::new("t")]);
    Gateway::new(plane, GatewayOptions::default())
}

#[tokio::test]
async fn the_gateway_serves_itself() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = oneshot::channel::<()>();
    let served = tokio::spawn(async move {
        let stopped = async {
            let _ = stopped.await;
        };
        gateway()
            .serve_http(
                listener,
                HttpServerOptions::default(),
                ServeOptions::default(),
                stopped,
            )
            .await
    });
    let ask = |method, path, host, body| exchange(address, method, path, host, body);
    assert_eq!(
        ask("POST", "/mcp", "localhost", CALL).await,
        (200, RESULT.to_owned())
    );
    assert_eq!(ask("POST", "/mcp", "evil.example.com", CALL).await.0, 403);
    assert_eq!(ask("POST", "/", "localhost", CALL).await.0, 404);
    // Probes may use any host name.
    assert_eq!(
        ask("GET", "/healthz", "10.0.0.7", "").await,
        (200, r#"{"status":"ok"}"#.to_owned())
    );
    assert_eq!(
        ask("GET", "/readyz", "10.0.0.7", "").await,
        (200, r#"{"status":"ready"}"#.to_owned())
    );
    assert_eq!(ask("HEAD", "/readyz", "10.0.0.7", "").await, (200, String::new()));
    stop.send(()).expect("it is serving");
    served.await.expect("no panic").expect("no error");
}

#[tokio::test]
async fn the_gateway_goes_into_another_router() {
    let mcp = gateway().http_service(HttpServerOptions::default());
    let router = Router::new()
        .route("/", get(|| async { "mine" }))
        .route_service("/tools", mcp);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let served = tokio::spawn(async move { axum::serve(listener, router).await });
    assert_eq!(exchange(address, "GET", "/", "localhost", "").await.1, "mine");
    assert_eq!(
        exchange(address, "POST", "/tools", "localhost", CALL).await,
        (200, RESULT.to_owned())
    );
    assert_eq!(
        exchange(address, "POST", "/tools", "evil.example.com", CALL)
            .await
            .0,
        403
    );
    served.abort();
}

#[tokio::test]
async fn a_session_receives_notifications_on_its_stream() {
    let source = ChangingSource::new(&["a"]);
    let builder = Toolplane::builder()
        .executor(Arc::new(BehaviorExecutor::default()))
        .source(source.clone());
    let gateway = Gateway::new(
        builder.build().expect("it can be set up"),
        GatewayOptions::default(),
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let served = tokio::spawn(async move {
        let never = std::future::pending();
        gateway
            .serve_http(
                listener,
                HttpServerOptions::default(),
                ServeOptions::default(),
                never,
            )
            .await
    });
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#;
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{initialize}",
        initialize.len()
    );
    let mut stream = TcpStream::connect(address).await.expect("the server listens");
    stream
        .write_all(request.as_bytes())
        .await
        .expect("the server reads");
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .await
        .expect("the server answers");
    let session = answer
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "))
        .expect("a session");
    let listen = format!(
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n"
    );
    let mut stream = TcpStream::connect(address).await.expect("the server listens");
    stream
        .write_all(listen.as_bytes())
        .await
        .expect("the server reads");
    // The list changes after the client has received it.
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    assert_eq!(exchange(address, "POST", "/mcp", "localhost", list).await.0, 200);
    let mut heard = String::new();
    let hear = async {
        source.set(&["a", "b"]);
        while !heard.contains("notifications/tools/list_changed") {
            let mut buffer = [0; 1024];
            let count = stream.read(&mut buffer).await.expect("the stream goes on");
            assert!(count > 0, "the stream ended: {heard}");
            heard.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    };
    timeout(Duration::from_secs(60), hear)
        .await
        .expect("the change is told");
    served.abort();
}

#[tokio::test]
async fn metrics_are_served_where_enabled() {
    let metrics = Arc::new(Metrics::new());
    let plane = Toolplane::builder()
        .executor(Arc::new(ScriptedExecutor::new([ScriptStep::Echo])))
        .tool(TestTool::new("t").descriptor)
        .observer(metrics.clone())
        .build()
        .expect("it can be set up");
    let serve = |serves_metrics| {
        let mut options = GatewayOptions::default();
        options.metrics = Some(metrics.clone());
        options.serves_metrics = serves_metrics;
        Gateway::new(plane.clone(), options)
    };
    for (serves_metrics, status) in [(true, 200), (false, 404)] {
        let gateway = serve(serves_metrics);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let served = tokio::spawn(async move {
            let (http, serve) = (HttpServerOptions::default(), ServeOptions::default());
            gateway
                .serve_http(listener, http, serve, std::future::pending())
                .await
        });
        exchange(address, "POST", "/mcp", "localhost", CALL).await;
        let (answered, page) = exchange(address, "GET", "/metrics", "localhost:9", "").await;
        assert_eq!(answered, status);
        if serves_metrics {
            for line in [
                r#"toolplane_calls_total{tool="t",outcome="ok"} 1"#,
                r#"toolplane_source_up{source="configuration"} 1"#,
                r#"toolplane_source_state{source="configuration"} 2"#,
                "toolplane_sessions 0",
                "toolplane_parked_calls 0",
                "toolplane_cache_bytes 0",
                "toolplane_cache_fetches_running 0",
            ] {
                assert!(page.lines().any(|it| it == line), "{line} in\n{page}");
            }
            every_metric_is_documented(&page);
            for (host, status) in [("10.0.0.7:1", 200), ("[::1]:1", 200), ("evil.example.com", 403)] {
                assert_eq!(
                    exchange(address, "GET", "/metrics", host, "").await.0,
                    status,
                    "{host}"
                );
            }
            assert_eq!(
                exchange(address, "POST", "/metrics", "localhost", "").await.0,
                405
            );
        }
        served.abort();
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let served = tokio::spawn(serve_metrics(listener, metrics, std::future::pending()));
    let (status, page) = exchange(address, "GET", "/metrics", "127.0.0.1", "").await;
    assert_eq!(status, 200);
    assert!(
        page.contains(r#"toolplane_calls_total{tool="t",outcome="ok"} 2"#),
        "{page}"
    );
    assert_eq!(exchange(address, "GET", "/", "127.0.0.1", "").await.0, 404);
    assert_eq!(
        exchange(address, "GET", "/metrics", "evil.example.com", "")
            .await
            .0,
        403
    );
    served.abort();
}

/// Checks that the documentation names every metric of the page.
fn every_metric_is_documented(page: &str) {
    let documented = include_str!("../../../../../docs/src/how-to/observe.md");
    let names = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let names: Vec<_> = names.filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains(&"toolplane_own_connections_limit"), "{names:?}");
    assert!(
        page.contains("# TYPE toolplane_http_connections_total counter\n"),
        "{page}"
    );
    for name in names {
        assert!(
            documented.contains(&format!("`{name}`")),
            "{name} is not documented"
        );
    }
}

#[tokio::test]
async fn health_pages_name_tools_only_to_accepted_requests() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let plane = Toolplane::builder()
        .executor(Arc::new(ScriptedExecutor::new([ScriptStep::Echo])))
        .source(ChangingSource::new(&["a"]))
        .tool(TestTool::new("t").descriptor)
        .build()
        .expect("it can be set up");
    let gateway = Gateway::new(plane, GatewayOptions::default());
    let served = tokio::spawn(async move {
        let never = std::future::pending();
        gateway
            .serve_http(
                listener,
                HttpServerOptions::default(),
                ServeOptions::default(),
                never,
            )
            .await
    });
    let ask = |path, host| exchange(address, "GET", path, host, "");
    exchange(address, "POST", "/mcp", "localhost", CALL).await;
    let page = |text: String| serde_json::from_str::<serde_json::Value>(&text).expect("JSON");
    let (status, body) = ask("/readyz", "localhost").await;
    let body = page(body);
    assert_eq!(
        (status, &body["status"], &body["reasons"]),
        (200, &"ready".into(), &serde_json::json!([]))
    );
    assert_eq!(body["servers"].as_object().expect("an object").len(), 1);
    let (status, body) = ask("/health", "localhost").await;
    let body = page(body);
    assert_eq!((status, &body["tools"][0]["name"]), (200, &"t".into()));
    // DNS rebinding: a foreign host name that points here.
    assert_eq!(
        ask("/health", "evil.example.com").await,
        (403, r#"{"status":"refused"}"#.to_owned())
    );
    assert_eq!(
        ask("/readyz", "evil.example.com").await,
        (200, r#"{"status":"ready"}"#.to_owned())
    );
    served.abort();
}
