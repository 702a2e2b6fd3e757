//! Sessions and streams of two principals.

use std::time::SystemTime;

use http::{Response, StatusCode};
use http_body_util::BodyExt;
use mcp_server::ResponseBody;
use toolplane::{
    core::Tokens,
    manifest::{LoadOptions, Syntax, load},
    policy::TokenText,
};

use super::{World, configuration};

const TOOLS: &str = "{t: {description: T., executor: {kind: mock, result: done}}}";
const POLICY: &str = "{required_permissions: {t: [use]}, permissions: {ada: [use], bob: [use]}}";
const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t"}}"#;

fn initialize(revision: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"t","version":"0"}}}}}}"#
    )
}

#[tokio::test]
async fn a_session_does_not_exist_for_another_principal() {
    let world = World::new(POLICY, TOOLS);
    let (ada, bob) = (world.token("ada").await, world.token("bob").await);
    let second = world.token("ada").await;
    let acme = world
        .token_with("ada", |token| token.tenant = Some("acme".into()))
        .await;
    let opened = world
        .send(http::Request::post("/mcp"), Some(&ada), &initialize("2025-11-25"))
        .await;
    let session = opened.headers()["mcp-session-id"].clone();
    let send = async |method: &str, token: &str, body: &str| {
        let request = http::Request::builder()
            .method(method)
            .uri("/mcp")
            .header("mcp-session-id", &session);
        let request = match method {
            // Resumes a stream of the session.
            "GET" => request.header("last-event-id", "1-1"),
            _ => request,
        };
        world.send(request, Some(token), body).await.status()
    };
    for other in [&bob, &acme] {
        for method in ["POST", "GET", "DELETE"] {
            assert_eq!(send(method, other, CALL).await, StatusCode::NOT_FOUND, "{method}");
        }
    }
    // Both tokens are of the principal that opened the session.
    for own in [&ada, &second] {
        assert_eq!(send("POST", own, CALL).await, StatusCode::OK);
    }
    let revoked: TokenText = ada["Bearer ".len()..].parse().expect("a token");
    let revoked = world.tokens.revoke(revoked.id(), SystemTime::now()).await;
    revoked.expect("it works").expect("it is known");
    assert_eq!(send("POST", &ada, CALL).await, StatusCode::UNAUTHORIZED);
    assert_eq!(send("DELETE", &second, "").await, StatusCode::NO_CONTENT);
}

/// Returns the next event of a stream.
async fn event(stream: &mut Response<ResponseBody>) -> String {
    let frame = stream.body_mut().frame().await.expect("the stream is open");
    let data = frame.expect("it is not broken").into_data().expect("data");
    String::from_utf8(data.to_vec()).expect("text")
}

#[tokio::test]
async fn a_stream_of_http_sse_belongs_to_its_principal_whose_permissions_are_current() {
    let world = World::new(POLICY, TOOLS);
    let (ada, bob) = (world.token("ada").await, world.token("bob").await);
    let mut stream = world.send(http::Request::get("/sse"), Some(&ada), "").await;
    let first = event(&mut stream).await;
    let place = first
        .strip_prefix("event: endpoint\ndata: ")
        .expect("an endpoint")
        .trim_end()
        .to_owned();
    let post = async |token: &str, body: &str| {
        world
            .send(http::Request::post(&*place), Some(token), body)
            .await
            .status()
    };
    assert_eq!(post(&bob, CALL).await, StatusCode::NOT_FOUND);
    assert_eq!(post(&ada, &initialize("2024-11-05")).await, StatusCode::ACCEPTED);
    event(&mut stream).await;
    assert_eq!(post(&ada, CALL).await, StatusCode::ACCEPTED);
    let answered = event(&mut stream).await;
    assert!(answered.contains("done"), "{answered}");
    // The open stream does not keep permissions that the principal had when it was opened.
    let text = configuration("{required_permissions: {t: [use]}}", TOOLS);
    let loaded = load(&LoadOptions::new().text("toolplane.yaml", Syntax::Yaml, text)).expect("it is valid");
    world.plane.reload(&loaded).expect("it can be used");
    assert_eq!(post(&ada, CALL).await, StatusCode::ACCEPTED);
    let refused = event(&mut stream).await;
    assert!(!refused.contains("done"), "{refused}");
}
