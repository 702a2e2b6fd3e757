//! `mock_in_a_test` with wiremock: the client under test is one of rmcp.

use std::time::Duration;

use rmcp::{
    ServiceExt, model::CallToolRequestParams, object, service::RunningService,
    transport::StreamableHttpClientTransport,
};
use serde_json::{Value, json};
use tokio::time::timeout;
use wiremock::{Mock, MockServer, Request, ResponseTemplate, matchers::body_partial_json};

type Client = RunningService<rmcp::RoleClient, ()>;

/// The code under test: asks a second time if the server is not there, and waits a second at most.
async fn forecast(client: &Client, city: &str) -> Option<String> {
    for _ in 0..2 {
        let request = CallToolRequestParams::new("forecast").with_arguments(object!({"city": city}));
        let call = timeout(Duration::from_secs(1), client.call_tool(request));
        match call.await.ok()? {
            Ok(result) => return Some(result.content.first()?.as_text()?.text.clone()),
            Err(_) => continue,
        }
    }
    None
}

fn method(name: &str) -> wiremock::MockBuilder {
    Mock::given(body_partial_json(json!({"method": name})))
}

/// Answers with the id of the request.
fn result(result: Value) -> impl Fn(&Request) -> ResponseTemplate {
    move |request| {
        let request: Value = request.body_json().expect("a request is JSON");
        let body = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        ResponseTemplate::new(200).set_body_json(body)
    }
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

async fn server() -> MockServer {
    let server = MockServer::start().await;
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "mock", "version": "1.0.0"},
    });
    method("initialize")
        .respond_with(result(hello))
        .mount(&server)
        .await;
    let accepted = ResponseTemplate::new(202);
    method("notifications/initialized")
        .respond_with(accepted.clone())
        .mount(&server)
        .await;
    method("notifications/cancelled")
        .respond_with(accepted)
        .mount(&server)
        .await;
    server
}

async fn calls(server: &MockServer) -> usize {
    let received = server.received_requests().await.unwrap_or_default();
    let methods = received
        .iter()
        .filter_map(|request| request.body_json::<Value>().ok());
    methods.filter(|body| body["method"] == "tools/call").count()
}

async fn connect(server: &MockServer) -> Client {
    let transport = StreamableHttpClientTransport::from_uri(format!("{}/mcp", server.uri()));
    ().serve(transport).await.expect("the handshake is scripted")
}

#[tokio::test]
async fn a_server_that_is_down_is_asked_again() {
    let server = server().await;
    let down = ResponseTemplate::new(503);
    method("tools/call")
        .respond_with(down)
        .up_to_n_times(1)
        .mount(&server)
        .await;
    method("tools/call")
        .respond_with(result(text("sunny")))
        .mount(&server)
        .await;
    let client = connect(&server).await;
    assert_eq!(forecast(&client, "Oslo").await.as_deref(), Some("sunny"));
    assert_eq!(calls(&server).await, 2);
}

#[tokio::test]
async fn a_server_that_never_answers_is_left() {
    let server = server().await;
    let late = ResponseTemplate::new(200).set_delay(Duration::from_secs(60));
    method("tools/call").respond_with(late).mount(&server).await;
    let client = connect(&server).await;
    assert_eq!(forecast(&client, "Oslo").await, None);
    assert_eq!(calls(&server).await, 1);
}
