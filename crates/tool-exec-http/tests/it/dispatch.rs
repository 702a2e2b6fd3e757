//! Dispatch state of calls, which decides whether a call may be retried.

use std::{
    future::pending,
    io,
    net::{IpAddr, TcpListener as BlockingListener},
    sync::Arc,
};

use serde_json::json;
use tokio::time::timeout;
use tool_core::{BoxFuture, DispatchState, ErrorKind};
use tool_exec_http::{HttpExecutor, HttpExecutorOptions, Resolve};

use crate::{
    server::{Answer, Server, answer, ok},
    support::{LONG, Values, descriptor, executor, prepare, prepare_by},
};

/// Returns an address without a listener.
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
    // The server waits for a plain-text request that never comes; the client's timeout ends the call.
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
    let executor = executor(Values::new(&[]));
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
    let executor = executor(Values::new(&[]));
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
    read_only.metadata.read_only = Some(true);
    let tool =
        prepare_by(&executor(Values::new(&[])), read_only).unwrap_or_else(|problems| panic!("{problems:?}"));
    let done = tool.call(json!({})).await;
    assert_eq!(
        (done.kind(), done.dispatch),
        (ErrorKind::Unavailable, DispatchState::Sent)
    );
    assert_eq!(
        done.error().to_string(),
        "the exchange with the upstream failed: the connection was closed"
    );
}

/// The server behind a gateway may have processed the request.
#[tokio::test]
async fn a_gateway_that_had_no_answer_leaves_open_whether_the_tool_ran() {
    use ErrorKind::{OutcomeUnknown, Unavailable};
    for (line, is_idempotent, kind, dispatch) in [
        ("502 x", None, OutcomeUnknown, DispatchState::Sent),
        ("504 x", None, OutcomeUnknown, DispatchState::Sent),
        ("504 x", Some(true), Unavailable, DispatchState::Sent),
        ("503 x", None, Unavailable, DispatchState::Answered),
    ] {
        let json = [("content-type", "application/json"), ("retry-after", "7")];
        let server = Server::start(move |_| Answer::Keep(answer(line, &json, r#"{"why":"slow"}"#))).await;
        let mut pay = descriptor(json!({"url": server.url("/"), "method": "POST"}));
        pay.metadata.idempotent = is_idempotent;
        let tool =
            prepare_by(&executor(Values::new(&[])), pay).unwrap_or_else(|problems| panic!("{problems:?}"));
        let done = tool.call(json!({"a": 1})).await;
        assert_eq!(
            (done.kind(), done.dispatch),
            (kind, dispatch),
            "{line} {is_idempotent:?}"
        );
        let error = done.error();
        assert!(error.to_string().contains(&line[..3]), "{error}");
        assert_eq!(error.detail().unwrap().as_str(), r#"{"why":"slow"}"#);
    }
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
    // The request was sent and not answered.
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
    // The client is still connecting, so no byte was sent.
    let options = HttpExecutorOptions::default().with_resolver(Arc::new(Never));
    let executor = HttpExecutor::new(options, Values::new(&[]));
    for (method, scheme) in [("GET", "http"), ("POST", "http"), ("POST", "https")] {
        let config = json!({"url": format!("{scheme}://a.example/"), "method": method, "timeout_ms": 200});
        let tool =
            prepare_by(&executor, descriptor(config)).unwrap_or_else(|problems| panic!("{problems:?}"));
        let done = tool.call(json!({"a": 1})).await;
        assert_eq!(
            (done.kind(), done.dispatch),
            (ErrorKind::Timeout, DispatchState::NotSent),
            "{method} {scheme}"
        );
    }
}

/// Resolver that never answers.
struct Never;

impl Resolve for Never {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(pending())
    }
}

#[tokio::test]
async fn a_pooled_connection_that_was_closed_is_replaced() {
    // The server closes the connection after each answer without announcing it in the head.
    let server = Server::start(|_| Answer::Close(ok("application/json", "1"))).await;
    let tool = prepare(json!({"url": server.url("/"), "method": "POST"}));
    for n_calls in 1..=20 {
        let done = tool.call(json!({"a": 1})).await;
        match &done.result {
            Ok(result) => assert_eq!(result.as_str(), "1"),
            // The request was written to a connection that was closing, so it is not sent again.
            Err(error) => assert_eq!(error.kind(), ErrorKind::OutcomeUnknown),
        }
        assert!(server.requests().len() <= n_calls);
    }
}

#[tokio::test]
async fn a_redirect_is_no_answer_while_its_target_is_silent() {
    let server = Server::start(|request| {
        if request.line() == "POST /" {
            Answer::Keep(answer("307 x", &[("location", "/next")], ""))
        } else {
            Answer::Close(Vec::new())
        }
    })
    .await;
    let done = prepare(json!({"url": server.url("/"), "method": "POST"}))
        .call(json!({"a": 1}))
        .await;
    assert_eq!(
        (done.kind(), done.dispatch),
        (ErrorKind::OutcomeUnknown, DispatchState::Sent)
    );
    assert_eq!(server.requests().len(), 2);
}

/// A payment whose redirect leads to a missing page was made, and must not be retried.
#[tokio::test]
async fn what_a_redirect_leads_to_says_nothing_of_the_request_that_it_took() {
    use ErrorKind::{Auth, OutcomeUnknown, Unavailable};
    for (redirect, then, is_idempotent, kind, dispatch) in [
        ("303 x", Some("503 x"), None, OutcomeUnknown, DispatchState::Sent),
        ("302 x", Some("401 x"), None, OutcomeUnknown, DispatchState::Sent),
        ("301 x", Some("404 x"), None, OutcomeUnknown, DispatchState::Sent),
        ("303 x", Some("302 x"), None, OutcomeUnknown, DispatchState::Sent),
        ("303 x", None, None, OutcomeUnknown, DispatchState::Sent),
        (
            "303 x",
            Some("503 x"),
            Some(true),
            Unavailable,
            DispatchState::Sent,
        ),
        // Neither the first upstream nor the target of the redirect processed the request.
        ("307 x", Some("503 x"), None, Unavailable, DispatchState::Answered),
        ("308 x", Some("401 x"), None, Auth, DispatchState::Answered),
    ] {
        let server = Server::start(move |request| match (request.line(), then) {
            ("POST /pay", _) => Answer::Keep(answer(redirect, &[("location", "/receipt")], "")),
            (_, Some(then)) => Answer::Keep(answer(then, &[], "")),
            (_, None) => Answer::Close(Vec::new()),
        })
        .await;
        let mut pay = descriptor(json!({"url": server.url("/pay"), "method": "POST"}));
        pay.metadata.idempotent = is_idempotent;
        let tool =
            prepare_by(&executor(Values::new(&[])), pay).unwrap_or_else(|problems| panic!("{problems:?}"));
        let done = tool.call(json!({"a": 1})).await;
        assert_eq!(
            (done.kind(), done.dispatch),
            (kind, dispatch),
            "{redirect}, {then:?}, {is_idempotent:?}: {}",
            done.error()
        );
        assert_eq!(server.requests().len(), 2);
    }
}

#[tokio::test]
async fn many_calls_at_once_do_not_mix() {
    let server = Server::start(|request| Answer::Keep(ok("application/json", request.text()))).await;
    let tool = Arc::new(prepare(json!({"url": server.url("/"), "method": "POST"})));
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..200 {
        let tool = tool.clone();
        calls.spawn(async move { (n, tool.call(json!({"n": n})).await.text().to_owned()) });
    }
    while let Some(done) = timeout(LONG, calls.join_next()).await.unwrap() {
        let (n, text) = done.unwrap();
        assert_eq!(text, format!("{{\"n\":{n}}}"));
    }
    assert_eq!(server.requests().len(), 200);
}
