//! When a call counts as sent: what decides whether it may be sent again.

use std::net::TcpListener as BlockingListener;

use serde_json::json;
use tokio::{net::TcpListener, time::timeout};
use tool_core::{DispatchState, ErrorKind, Metadata};

use crate::{
    server::{Answer, Server, ok},
    support::{LONG, Values, descriptor, executor, prepare, prepare_by},
};

/// An address at which nobody listens.
fn closed_port() -> String {
    let listener = BlockingListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}/", listener.local_addr().unwrap())
}

#[tokio::test]
async fn a_refused_connection_sends_nothing() {
    for method in ["GET", "POST", "DELETE"] {
        let done = prepare(json!({"url": closed_port(), "method": method}))
            .call(json!({"a": 1}))
            .await;
        assert_eq!(
            done.error().to_string(),
            "the upstream cannot be reached: connection refused"
        );
        assert_eq!(
            (done.kind(), done.dispatch),
            (ErrorKind::Unavailable, DispatchState::NotSent),
            "{method}"
        );
    }
}

#[tokio::test]
async fn a_failed_handshake_sends_nothing() {
    let server = Server::start(|_| Answer::Close(b"no TLS here".to_vec())).await;
    let url = server.url("/").replace("http:", "https:");
    // The server waits for a request that never comes in the clear; the client's limit ends it.
    let config = json!({"url": url, "method": "POST", "connect_timeout_ms": 200});
    let done = prepare(config).call(json!({"a": 1})).await;
    assert_eq!(
        (done.kind(), done.dispatch),
        (ErrorKind::Unavailable, DispatchState::NotSent)
    );
    let message = "the upstream cannot be reached: it did not accept a connection in time";
    assert_eq!(done.error().to_string(), message);
}

#[tokio::test]
async fn an_answer_that_is_cut_off_anywhere_is_unknown_or_whole() {
    let whole = ok("application/json", r#"{"a": 1}"#);
    let length = whole.len();
    let executor = executor(Values::of(&[]));
    for end in 0..=length {
        let bytes = whole[..end].to_vec();
        let server = Server::start(move |_| Answer::Close(bytes.clone())).await;
        let config = json!({"url": server.url("/"), "method": "POST"});
        let tool =
            prepare_by(&executor, descriptor(config)).unwrap_or_else(|problems| panic!("{problems:?}"));
        let done = tool.call(json!({"b": 2})).await;
        if end == length {
            assert_eq!(done.text(), r#"{"a": 1}"#);
            assert_eq!(done.dispatch, DispatchState::Answered);
        } else {
            assert_eq!(
                done.kind(),
                ErrorKind::OutcomeUnknown,
                "cut at {end}: {:?}",
                done.error()
            );
            assert_eq!(done.dispatch, DispatchState::Sent, "cut at {end}");
        }
        assert_eq!(server.requests().len(), 1, "cut at {end}: never sent twice");
    }
}

#[tokio::test]
async fn a_chunked_answer_that_is_cut_off_is_unknown() {
    let whole = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n3\r\n[1,\r\n2\r\n2]\r\n0\r\n\r\n";
    let executor = executor(Values::of(&[]));
    for end in 0..=whole.len() {
        let bytes = whole[..end].to_vec();
        let server = Server::start(move |_| Answer::Close(bytes.clone())).await;
        let config = json!({"url": server.url("/"), "method": "POST"});
        let tool =
            prepare_by(&executor, descriptor(config)).unwrap_or_else(|problems| panic!("{problems:?}"));
        let done = tool.call(json!({"b": 2})).await;
        match &done.result {
            Ok(result) => assert_eq!(
                (result.as_str(), end + 4 >= whole.len()),
                ("[1,2]", true),
                "cut at {end}"
            ),
            Err(error) => assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "cut at {end}"),
        }
        assert_eq!(server.requests().len(), 1, "cut at {end}");
    }
}

#[tokio::test]
async fn a_tool_that_may_run_twice_is_only_unavailable() {
    let server = Server::start(|_| Answer::Close(Vec::new())).await;
    let mut read_only = descriptor(json!({"url": server.url("/")}));
    read_only.metadata = Metadata {
        read_only: Some(true),
        ..Metadata::default()
    };
    let tool =
        prepare_by(&executor(Values::of(&[])), read_only).unwrap_or_else(|problems| panic!("{problems:?}"));
    let done = tool.call(json!({})).await;
    assert_eq!(
        (done.kind(), done.dispatch),
        (ErrorKind::Unavailable, DispatchState::Sent)
    );
    assert_eq!(
        done.error().to_string(),
        "the exchange with the upstream broke off: the connection was closed"
    );
}

#[tokio::test]
async fn what_is_not_http_is_a_broken_protocol() {
    let mut answers = vec![
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n".to_vec(),
        b"HTTP/1.1 banana\r\n\r\n".to_vec(),
    ];
    answers.push([b"HTTP/1.1 200 OK\r\nx: ", &[b'a'; 600_000][..], b"\r\n\r\n"].concat());
    for bytes in answers {
        let server = Server::start(move |_| Answer::Close(bytes.clone())).await;
        let done = prepare(json!({"url": server.url("/")})).call(json!({})).await;
        assert_eq!(done.kind(), ErrorKind::OutcomeUnknown);
        assert!(
            done.error()
                .to_string()
                .starts_with("the upstream's answer is not HTTP"),
            "{}",
            done.error()
        );
    }
}

#[tokio::test]
async fn a_dropped_call_tells_whether_it_was_sent() {
    // Sent, and not answered.
    let server = Server::start(|_| Answer::Hang(Vec::new())).await;
    for method in ["GET", "POST"] {
        let tool = prepare(json!({"url": server.url("/"), "method": method}));
        let mut cx = tool.context(r#"{"a": 1}"#);
        let dispatch = cx.dispatch().clone();
        {
            let call = tool.invoke().invoke_boxed(&mut cx);
            let arrived = async {
                let before = server.requests().len();
                while server.requests().len() == before {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                _ = call => panic!("nothing is answered"),
                () = async { timeout(LONG, arrived).await.unwrap() } => {}
            }
        }
        assert_eq!(dispatch.state(), DispatchState::Sent, "{method}");
    }
    // Still connecting: with a body, nothing can have left.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let tool = prepare(json!({"url": url.replace("https", "http"), "method": "POST", "timeout_ms": 20_000}));
    let mut cx = tool.context(r#"{"a": 1}"#);
    let dispatch = cx.dispatch().clone();
    drop(tool.invoke().invoke_boxed(&mut cx));
    assert_eq!(dispatch.state(), DispatchState::NotSent);
}
