//! The crate without a registry: a tool from settings, called by the program.

use std::{error::Error, iter::successors};

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

/// Checks that no error in the chain contains the text of the next one.
fn assert_no_repetition(error: &(dyn Error + 'static)) {
    let chain = successors(Some(error), |&error| error.source());
    let texts: Vec<String> = chain.map(ToString::to_string).collect();
    for pair in texts.windows(2) {
        assert!(!pair[0].contains(&pair[1]), "said twice: {texts:?}");
    }
}

#[tokio::test]
async fn errors_say_each_sentence_once() {
    let executor = HttpExecutor::default();
    let not_json = Server::start(|_| Answer::Keep(ok("application/json", "{"))).await;
    let cut_off =
        Server::start(|_| Answer::Close(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n1".to_vec())).await;
    let not_http = Server::start(|_| Answer::Close(b"SSH-2.0\r\n".to_vec())).await;
    let closed = Server::start(|_| Answer::Close(Vec::new())).await;
    let gone = json!({"url": "http://127.0.0.1:1/", "allow_private": true});
    let without_value = json!({"url": "https://api.example.com/", "headers": {"A": "${secret:none}"}});
    let unusable = executor.tool("t", json!({})).unwrap_err();
    assert_no_repetition(&unusable);
    let at = |server: &Server| tool(&executor, server, json!({"url": "/"})).unwrap();
    for (tool, kind) in [
        (at(&not_json), ErrorKind::Protocol),
        (at(&not_http), ErrorKind::OutcomeUnknown),
        (at(&cut_off), ErrorKind::OutcomeUnknown),
        (at(&closed), ErrorKind::OutcomeUnknown),
        (executor.tool("t", gone).unwrap(), ErrorKind::Unavailable),
    ] {
        let error = tool.call(&json!({})).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert_no_repetition(&error);
    }
    // A value that is missing from the start is a problem of the settings.
    assert_no_repetition(&executor.tool("t", without_value).unwrap_err());
}
