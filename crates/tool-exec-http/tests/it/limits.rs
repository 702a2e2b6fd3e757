use std::{io::Write, sync::Arc, time::Duration};

use flate2::{Compression, write::GzEncoder};
use serde_json::json;
use tokio::task::JoinSet;
use tool_core::{DispatchState, ErrorKind};

use crate::{
    server::{Answer, Server, answer, ok},
    support::{Prepared, prepare},
};

const TOO_LARGE: &str = "the upstream's answer is larger than the allowed 1000 bytes of `max_response_bytes`";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zipped(body: &[u8]) -> Vec<u8> {
    answer(
        "200 OK",
        &[("content-type", "application/json"), ("content-encoding", "gzip")],
        gzip(body),
    )
}

fn head(rest: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n{rest}\r\n").into_bytes()
}

#[tokio::test]
async fn the_size_counts_after_decompression() {
    let server = Server::start(|request| {
        let size: usize = request.line().trim_start_matches("GET /").parse().unwrap();
        let mut body = vec![b' '; size];
        *body.last_mut().unwrap() = b'1';
        Answer::Keep(zipped(&body))
    })
    .await;
    let tool = prepare(json!({"url": server.url("/{size}"), "max_response_bytes": 1000}));
    assert_eq!(tool.call(json!({"size": 1000})).await.text(), "1");
    for size in [1001, 5000, 20_000_000] {
        let done = tool.call(json!({"size": size})).await;
        assert_eq!(done.error().to_string(), TOO_LARGE);
        assert_eq!(
            (done.kind(), done.dispatch),
            (ErrorKind::ResultTooLarge, DispatchState::Answered)
        );
    }
}

#[tokio::test]
async fn a_large_answer_is_given_up() {
    for (number, script) in [
        // Announced by `content-length`, then counted, in one chunk or in many.
        (1, Answer::Close as fn(Vec<u8>) -> Answer),
        (2, |_| Answer::Hang(head("content-length: 1001\r\n"))),
        (3, |_| Answer::Endless(head(""), vec![b'x'; 700])),
        (4, |_| {
            Answer::Endless(head("transfer-encoding: chunked\r\n"), b"5\r\nhello\r\n".to_vec())
        }),
    ] {
        let server = Server::start(move |_| {
            let mut bytes = head("");
            bytes.extend_from_slice(&[b'x'; 1001]);
            script(bytes)
        })
        .await;
        let done = prepare(json!({"url": server.url("/"), "max_response_bytes": 1000}))
            .call(json!({}))
            .await;
        assert_eq!(done.error().to_string(), TOO_LARGE, "{number}");
    }
}

#[tokio::test]
async fn compression_that_was_not_asked_for_is_refused() {
    for (coding, body) in [("zstd", b"x".to_vec()), ("gzip, gzip", gzip(&gzip(b"1")))] {
        let bytes = answer(
            "200 OK",
            &[("content-type", "text/plain"), ("content-encoding", coding)],
            body,
        );
        let server = Server::start(move |_| Answer::Keep(bytes.clone())).await;
        let done = prepare(json!({"url": server.url("/")})).call(json!({})).await;
        assert_eq!(done.kind(), ErrorKind::Protocol, "{coding}: {:?}", done.result);
    }
    let bytes = answer("200 OK", &[("content-encoding", "gzip")], b"no gzip at all");
    let server = Server::start(move |_| Answer::Keep(bytes.clone())).await;
    let done = prepare(json!({"url": server.url("/")})).call(json!({})).await;
    assert!(
        done.error()
            .to_string()
            .starts_with("the upstream's answer cannot be decompressed"),
        "{}",
        done.error()
    );
}

/// Makes one call that is answered, so that later ones need no new client and no new connection.
async fn warm(tool: &Prepared) {
    assert_eq!(tool.call(json!({"path": "warm"})).await.text(), "1");
}

#[tokio::test]
async fn silence_ends_a_call() {
    let server = Server::start(|request| {
        Answer::Hang(match request.line() {
            "GET /warm" => return Answer::Keep(ok("application/json", "1")),
            "GET /nothing" => Vec::new(),
            "GET /part-of-the-head" => b"HTTP/1.1 200 OK\r\nx-a: ".to_vec(),
            "GET /head" => head("content-length: 10\r\n"),
            _ => ok("text/plain", "0123456789")[..70].to_vec(),
        })
    })
    .await;
    let mut calls = JoinSet::new();
    for (limit, message) in [
        (
            json!({"timeout_ms": 2000}),
            "the upstream did not answer within 2 s",
        ),
        (
            json!({"read_timeout_ms": 1000, "connect_timeout_ms": 1000}),
            "the upstream sent no data within `read_timeout_ms`",
        ),
    ] {
        let mut config = limit;
        config["url"] = json!(server.url("/{path}"));
        let tool = Arc::new(prepare(config));
        warm(&tool).await;
        for path in ["nothing", "part-of-the-head", "head", "part-of-the-body"] {
            let tool = tool.clone();
            calls.spawn(async move { (path, message, tool.call(json!({"path": path})).await) });
        }
    }
    while let Some(call) = calls.join_next().await {
        let (path, message, done) = call.unwrap();
        let expected = format!("{message}; whether the tool ran is not known");
        assert_eq!(done.error().to_string(), expected, "{path}");
        assert_eq!(
            (done.kind(), done.dispatch),
            (ErrorKind::OutcomeUnknown, DispatchState::Sent),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_drip_ends_with_the_time() {
    let server =
        Server::start(|_| Answer::Endless(b"HTTP/1.1 200 OK\r\n".to_vec(), b"x: y\r\n".to_vec())).await;
    let tool = prepare(json!({"url": server.url("/"), "timeout_ms": 20_000}));
    let done = tool.call(json!({})).await;
    // Endless headers are refused by their number before the timeout.
    assert_eq!(done.kind(), ErrorKind::OutcomeUnknown);
    assert!(
        done.error()
            .to_string()
            .starts_with("the upstream's answer is not HTTP"),
        "{}",
        done.error()
    );
}

#[tokio::test]
async fn the_callers_deadline_counts_as_well() {
    let server = Server::start(|request| match request.line() {
        "GET /warm" => Answer::Keep(ok("application/json", "1")),
        _ => Answer::Hang(Vec::new()),
    })
    .await;
    let tool = prepare(json!({"url": server.url("/{path}"), "timeout_ms": 25_000}));
    warm(&tool).await;
    let arguments = r#"{"path": "nothing"}"#;
    let done = tool
        .call_within(arguments, Some(Duration::from_millis(1000)))
        .await;
    let message = "the upstream did not answer within 1 s; whether the tool ran is not known";
    assert_eq!(done.error().to_string(), message);
    let before = server.requests().len();
    let done = tool.call_within(arguments, Some(Duration::ZERO)).await;
    assert_eq!(
        (done.kind(), done.dispatch),
        (ErrorKind::Timeout, DispatchState::NotSent)
    );
    assert_eq!(server.requests().len(), before);
}
