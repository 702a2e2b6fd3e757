//! The crate without a registry: a tool from settings, called by the program.

use std::error::Error;

use serde_json::{Value, json};
use tool_core::{Descriptor, ErrorKind, ExecutorSpec};
use tool_exec_http::{HttpExecutor, HttpTool, InvalidHttpTool};

use crate::server::{Answer, Server, ok};

/// Makes a tool that may reach this machine.
fn tool(executor: &HttpExecutor, server: &Server, mut settings: Value) -> Result<HttpTool, InvalidHttpTool> {
    let path = settings["url"].as_str().unwrap_or_default();
    settings["url"] = json!(format!("http://{}{path}", server.address));
    settings["allow_private"] = json!(true);
    executor.tool("t", settings)
}

#[tokio::test]
async fn one_line_calls_an_api() {
    let server = Server::start(|_| Answer::Keep(ok("application/json", r#"{"days":[21.50]}"#))).await;
    let settings = json!({"url": "/{city}", "response_path": "$.days"});
    let weather = tool(&HttpExecutor::default(), &server, settings).unwrap();
    let reply = weather.call(&json!({"city": "Oslo", "days": 2})).await.unwrap();
    assert_eq!(reply.text(), "[21.50]");
    assert_eq!(server.requests()[0].line(), "GET /Oslo?days=2");
    let error = weather.call(&[1]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
}

#[tokio::test]
async fn what_no_placeholder_names_can_be_kept_back() {
    let server = Server::start(|_| Answer::Keep(ok("application/json", "1"))).await;
    for (settings, line) in [
        (json!({"url": "/{a}"}), "GET /1?internal=2"),
        (json!({"url": "/{a}", "request": {}}), "GET /1"),
        (json!({"url": "/", "query": {"a": "{a}"}}), "GET /?a=1"),
    ] {
        let tool = tool(&HttpExecutor::default(), &server, settings).unwrap();
        tool.call(&json!({"a": 1, "internal": 2})).await.unwrap();
        assert_eq!(server.requests().last().unwrap().line(), line);
    }
}

#[test]
fn unusable_settings_are_shown_with_their_places() {
    let settings = json!({"url": "ftp://x", "methd": "GET"});
    let error = HttpExecutor::default().tool("t", settings).unwrap_err();
    let text = error.to_string();
    assert_eq!(text.lines().count(), 1 + error.problems().len());
    assert!(error.problems().len() > 1, "{text}");
    assert!(
        text.contains("\n  /methd: ") && text.contains("did you mean"),
        "{text}"
    );
    assert!(error.source().is_none());
}

#[test]
fn tools_of_one_host_share_the_state_of_their_upstream_and_pass_keys() {
    let executor = HttpExecutor::default();
    let make = |settings: Value| executor.tool("t", settings).unwrap();
    let first = make(json!({"url": "https://api.example.com/a"}));
    let second =
        make(json!({"url": "https://api.example.com/b", "idempotency": {"header": "Idempotency-Key"}}));
    let other = make(json!({"url": "https://other.example.com/a"}));
    let upstream = |tool: &HttpTool| tool.tool().state().upstream().unwrap().clone();
    assert!(std::sync::Arc::ptr_eq(&upstream(&first), &upstream(&second)));
    assert_eq!(&**upstream(&other).name(), "https://other.example.com");
    assert!(!first.tool().settings().passes_key && second.tool().settings().passes_key);
    let executor_spec = ExecutorSpec::new("http").with_config(json!({"url": "https://api.example.com"}));
    let described = Descriptor::new("described", executor_spec);
    let tool = executor
        .tool_with(described, |tool| tool.idempotent(true).description("Says so."))
        .unwrap();
    let descriptor = tool.tool().descriptor();
    assert_eq!(descriptor.metadata.idempotent, Some(true));
    assert_eq!(descriptor.description, "Says so.");
}
