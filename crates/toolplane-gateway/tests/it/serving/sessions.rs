//! Idle sessions over HTTP.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use mcp_wire::header;
use tokio::{
    net::TcpListener,
    time::{advance, pause, resume, sleep, timeout},
};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};
use toolplane::{
    Toolplane,
    manifest::{LoadOptions, Syntax, load},
};
use toolplane_gateway::{Gateway, GatewayOptions, HttpServerOptions, HttpService, ServeOptions};

use crate::support::plane;

/// A toolplane whose only server has a connection for each session.
async fn plane_in_front_of_gateway() -> Toolplane {
    let inner = plane(&ScriptedExecutor::new([ScriptStep::Echo]), [TestTool::new("t")]);
    let inner = Gateway::new(inner, GatewayOptions::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let never = std::future::pending();
        inner
            .serve_http(
                listener,
                HttpServerOptions::default(),
                ServeOptions::default(),
                never,
            )
            .await
    });
    let yaml = format!("servers: {{inner: {{url: \"http://{address}/mcp\", isolation: session}}}}");
    let loaded = load(&LoadOptions::new().text("toolplane.yaml", Syntax::Yaml, yaml)).expect("usable");
    let builder = Toolplane::builder().loaded(&loaded);
    builder.build().expect("it can be set up")
}

/// Posts a request. Returns the session that the answer opens, and the body of the answer.
async fn post(service: &HttpService<Gateway>, session: &str, body: &'static str) -> (String, String) {
    let mut request = http::Request::post("http://localhost/")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    if !session.is_empty() {
        request = request.header(header::SESSION_ID, session);
    }
    let request = request
        .body(Full::new(Bytes::from_static(body.as_bytes())))
        .expect("a request");
    let answer = service.respond(request).await;
    let opened = answer.headers().get(header::SESSION_ID);
    let opened = opened.map_or("", |id| id.to_str().expect("an id"));
    let opened = opened.to_owned();
    let bytes = answer.into_body().collect().await.expect("a whole body");
    let said = String::from_utf8(bytes.to_bytes().to_vec()).expect("a text");
    (opened, said)
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#;
const CALL: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"inner__t","arguments":{"a":1}}}"#;

#[tokio::test]
async fn an_idle_session_releases_its_connections() {
    let plane = plane_in_front_of_gateway().await;
    let gateway = Gateway::new(plane.clone(), GatewayOptions::default());
    let idle = Duration::from_secs(60);
    let service = gateway.http_service(HttpServerOptions::default().session_idle(idle));
    let (session, _) = post(&service, "", INITIALIZE).await;
    let (_, said) = post(&service, &session, CALL).await;
    assert!(said.contains(r#""structuredContent":{"a":1}"#), "{said}");
    let n_own = || plane.connection_use().pop().expect("there is one").1.n_own;
    assert_eq!((n_own(), service.n_sessions()), (1, 1));
    // No request comes. The session expires before an idle connection would be closed.
    pause();
    advance(idle + Duration::from_secs(1)).await;
    resume();
    let released = async {
        while n_own() > 0 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(60), released)
        .await
        .expect("they are given up");
    assert_eq!(service.n_sessions(), 0);
    plane.shutdown().await;
}
