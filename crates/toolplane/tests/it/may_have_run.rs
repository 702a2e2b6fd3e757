//! What may follow a failure of a tool, by what its upstream answers: over HTTP and over MCP.

use std::sync::{
    Arc,
    atomic::{AtomicU16, AtomicUsize, Ordering},
};

use mcp_mock::{Misbehavior, MockReply, MockServer, MockTool};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use toolplane::{
    CallRequest, RawJson, Toolplane,
    core::{ErrorKind, Outcome, ToolError, is_status_not_taken},
    manifest::{LoadOptions, Syntax, load},
};

/// What is done when a call fails: the tool's settings for it.
const FOLLOWS: [&str; 4] = [
    "on_failure: [{fallback: alt}]",
    "cache: {ttl: 0s}, on_failure: [{stale: 1h}]",
    "cache: {ttl: 0s, stale_if_error: 1h}",
    "on_failure: [{default: given}]",
];
const STATUSES: [u16; 16] = [
    302, 400, 401, 403, 404, 407, 408, 409, 421, 425, 429, 500, 501, 502, 503, 504,
];
/// Breaks the connection after the request.
const CUT: u16 = 1;

fn plane(yaml: &str) -> Toolplane {
    let loaded = load(&LoadOptions::new().text("c", Syntax::Yaml, yaml)).expect("usable");
    Toolplane::builder().loaded(&loaded).build().expect("usable")
}

/// A server that answers with the status that is set, and how many requests it had.
pub(crate) async fn upstream() -> (String, Arc<AtomicU16>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback is there");
    let address = listener.local_addr().expect("it is bound");
    let (status, count) = (Arc::new(AtomicU16::new(200)), Arc::new(AtomicUsize::new(0)));
    let (set, counted) = (status.clone(), count.clone());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                let mut buffer = [0; 4096];
                match stream.read(&mut buffer).await {
                    Ok(n_read) if n_read > 0 => head.extend_from_slice(&buffer[..n_read]),
                    _ => break,
                }
            }
            counted.fetch_add(1, Ordering::SeqCst);
            let status = set.load(Ordering::SeqCst);
            if status != CUT {
                let head = "x\r\ncontent-type: application/json\r\ncontent-length: 1\r\nconnection: close";
                let answer = format!("HTTP/1.1 {status} {head}\r\n\r\n7");
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        }
    });
    (format!("http://{address}/act"), status, count)
}

fn is_given(result: &Result<Outcome, ToolError>) -> bool {
    matches!(result, Ok(Outcome::Reply(reply)) if !reply.is_error)
}

#[tokio::test]
async fn an_http_tool_is_replaced_only_if_it_cannot_have_run_or_may_run_twice() {
    let (url, status, count) = upstream().await;
    for method in ["GET", "POST", "DELETE"] {
        for (declared, is_repeatable) in [
            ("", false),
            ("idempotent: false, ", false),
            ("idempotent: true, ", true),
            ("read_only: true, ", true),
        ] {
            // A tool that is declared to have an effect cannot have a cache.
            let may_keep = !declared.contains("false");
            for follows in FOLLOWS
                .into_iter()
                .filter(|follows| may_keep || !follows.contains("cache"))
            {
                let plane = plane(&format!(
                    "tools:
  t: {{description: d, {declared}retry: {{max_attempts: 1}}, {follows}, executor: {{kind: http, method: {method}, url: '{url}', allow_private: true}}}}
  alt: {{description: d, executor: {{kind: mock, result: other}}}}"
                ));
                for failure in STATUSES.into_iter().chain([CUT]) {
                    let shown = format!("{method} {declared}{follows} {failure}");
                    status.store(200, Ordering::SeqCst);
                    plane.call(CallRequest::new("t")).await.expect("answered");
                    status.store(failure, Ordering::SeqCst);
                    let before = count.load(Ordering::SeqCst);
                    let result = plane.call(CallRequest::new("t")).await;
                    assert_eq!(count.load(Ordering::SeqCst), before + 1, "{shown}");
                    let may_have_run = !is_repeatable && !is_status_not_taken(failure);
                    match &result {
                        Ok(_) => assert!(!may_have_run, "{shown}: {result:?}"),
                        Err(error) => {
                            let is_callers = !error.kind().degrades()
                                || follows.contains("stale_if_error") && error.kind() == ErrorKind::Auth;
                            assert!(may_have_run || is_callers, "{shown}: {error:?}");
                            assert_eq!(error.may_have_run(), may_have_run, "{shown}: {error:?}");
                        }
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn an_mcp_tool_is_replaced_only_if_it_cannot_have_run_or_may_run_twice() {
    for status in STATUSES {
        for (declared, is_repeatable) in [("", false), ("read_only: true", true)] {
            for follows in ["fallback: alt", "default: {content: []}"] {
                let shown = format!("{status} {declared} {follows}");
                let fails = MockReply::text("no").misbehave(Misbehavior::status(status));
                // It says so of itself, which does not count.
                let annotations = RawJson::parse(r#"{"readOnlyHint":true,"idempotentHint":true}"#);
                let tool = MockTool::new("act")
                    .member("annotations", annotations.expect("JSON"))
                    .reply(fails);
                let server = MockServer::builder().tool(tool).build();
                let http = server.http().await.expect("it listens");
                let plane = plane(&format!(
                    "servers: {{s: {{url: '{}'}}}}
tools:
  t: {{description: d, {declared}{} on_failure: [{{{follows}}}], executor: {{kind: mcp, server: s, tool: act}}}}
  alt: {{description: d, executor: {{kind: mock, result: other}}}}",
                    http.url(),
                    if declared.is_empty() { "" } else { "," },
                ));
                let result = plane.call(CallRequest::new("t")).await;
                let may_have_run = !is_repeatable && !is_status_not_taken(status);
                match &result {
                    Ok(_) => assert!(is_given(&result) && !may_have_run, "{shown}: {result:?}"),
                    Err(error) => {
                        assert!(may_have_run || !error.kind().degrades(), "{shown}: {error:?}");
                        assert_eq!(error.may_have_run(), may_have_run, "{shown}: {error:?}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn what_never_reached_its_upstream_is_replaced() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback is there");
    let address = listener.local_addr().expect("it is bound");
    drop(listener);
    let plane = plane(&format!(
        "tools:
  t: {{description: d, on_failure: [{{default: given}}], executor: {{kind: http, method: POST, url: 'http://{address}/', allow_private: true}}}}"
    ));
    let result = plane.call(CallRequest::new("t")).await;
    assert!(is_given(&result), "{result:?}");
}
