//! Tests of one's own MCP client against a mock server: one that is down at first, one that never answers, and one that
//! cuts the connection in the middle of an answer.
//!
//! Run it with `cargo test -p toolplane-examples --test mock-in-a-test`.

use std::time::Duration;

use mcp_client::{ClientError, ClientErrorKind, Connection, ConnectionOptions, HttpEndpoint, RequestOptions};
use mcp_mock::{Misbehavior, MockReply, MockServer, MockTool};
use serde_json::json;

/// The code under test: waits a second at most, and asks a second time if the call did not run.
async fn forecast(client: &Connection, city: &str) -> Result<String, ClientError> {
    let options = RequestOptions::with_timeout(Duration::from_secs(1));
    let arguments = json!({"city": city});
    let mut result = client.call_tool("forecast", &arguments, options.clone()).await;
    if matches!(&result, Err(error) if is_down(error)) {
        result = client.call_tool("forecast", &arguments, options).await;
    }
    Ok(result?.text())
}

fn is_down(error: &ClientError) -> bool {
    matches!(error.kind(), ClientErrorKind::HttpStatus { status: 503, .. })
}

fn server(replies: [MockReply; 2]) -> MockServer {
    let tool = replies
        .into_iter()
        .fold(MockTool::new("forecast"), MockTool::reply);
    MockServer::builder().tool(tool).build()
}

#[tokio::test]
async fn a_server_that_is_down_is_asked_again() {
    let down = MockReply::usual().misbehave(Misbehavior::status(503));
    let server = server([down, MockReply::text("sunny")]);
    let http = server.http().await.expect("a port is free");
    let endpoint = HttpEndpoint::new(&http.url()).expect("it is a URL");
    let client = Connection::http(&endpoint, ConnectionOptions::default())
        .await
        .expect("it answers");
    assert_eq!(forecast(&client, "Oslo").await.expect("it answers"), "sunny");
    server.assert_called("forecast", 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_left() {
    let server = server([MockReply::never(), MockReply::text("sunny")]);
    let (reader, writer) = tokio::io::split(server.connect());
    let client = Connection::from_streams(reader, writer, ConnectionOptions::default()).await;
    let error = forecast(&client.expect("it answers"), "Oslo")
        .await
        .expect_err("it does not answer");
    assert!(matches!(error.kind(), ClientErrorKind::Timeout(_)), "{error}");
    server.assert_called("forecast", 1);
}

#[tokio::test]
async fn a_call_that_may_have_run_is_not_made_again() {
    let cut = MockReply::text("sunny").misbehave(Misbehavior::Cut(Some(20)));
    let server = server([cut, MockReply::text("sunny")]);
    let (reader, writer) = tokio::io::split(server.connect());
    let client = Connection::from_streams(reader, writer, ConnectionOptions::default()).await;
    let error = forecast(&client.expect("it answers"), "Oslo")
        .await
        .expect_err("it is cut");
    assert!(error.was_sent(), "{error}");
    server.assert_called("forecast", 1);
}
