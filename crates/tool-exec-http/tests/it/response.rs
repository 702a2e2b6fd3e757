use std::time::Duration;

use serde_json::json;
use tool_core::{DispatchState, ErrorKind, HealthSignal, HealthSignals, Outcome};

use crate::{
    server::{Answer, Server, answer, ok},
    support::prepare,
};

#[tokio::test]
async fn statuses() {
    for (status, headers, body, kind, message, wait) in [
        (
            "400 Bad Request",
            vec![],
            "no",
            ErrorKind::InvalidArguments,
            "the upstream answered 400 Bad Request: no",
            None,
        ),
        (
            "401 Unauthorized",
            vec![],
            "",
            ErrorKind::Auth,
            "the upstream answered 401 Unauthorized",
            None,
        ),
        (
            "403 Forbidden",
            vec![],
            "",
            ErrorKind::Auth,
            "the upstream answered 403 Forbidden",
            None,
        ),
        (
            "404 Whatever",
            vec![],
            "{\"e\": 1}",
            ErrorKind::InvalidArguments,
            "the upstream answered 404 Not Found: {\"e\": 1}",
            None,
        ),
        (
            "429 x",
            vec![("retry-after", "7")],
            "",
            ErrorKind::RateLimited,
            "the upstream answered 429 Too Many Requests",
            Some(7),
        ),
        (
            "429 x",
            vec![("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")],
            "",
            ErrorKind::RateLimited,
            "the upstream answered 429 Too Many Requests",
            Some(10),
        ),
        (
            "429 x",
            vec![("retry-after", "99999999")],
            "",
            ErrorKind::RateLimited,
            "the upstream answered 429 Too Many Requests",
            Some(99_999_999),
        ),
        (
            "429 x",
            vec![("retry-after", "-1")],
            "",
            ErrorKind::RateLimited,
            "the upstream answered 429 Too Many Requests",
            None,
        ),
        (
            "503 x",
            vec![("retry-after", "3")],
            "",
            ErrorKind::Unavailable,
            "the upstream answered 503 Service Unavailable",
            Some(3),
        ),
        (
            "500 x",
            vec![],
            " a\r\n\tb\u{1b}[31m\u{202e} ",
            ErrorKind::UpstreamError,
            "the upstream answered 500 Internal Server Error: a b\\u{1b}[31m\\u{202e}",
            None,
        ),
        (
            "599 x",
            vec![],
            "",
            ErrorKind::UpstreamError,
            "the upstream answered 599",
            None,
        ),
        (
            "304 x",
            vec![],
            "",
            ErrorKind::Protocol,
            "the upstream answered 304 Not Modified",
            None,
        ),
    ] {
        let bytes = answer(status, &headers, body);
        let server = Server::start(move |_| Answer::Keep(bytes.clone())).await;
        let done = prepare(json!({"url": server.url("/")})).call(json!({})).await;
        assert_eq!(done.error().to_string(), message);
        assert_eq!(done.kind(), kind, "{status}");
        assert_eq!(
            done.error().retry_after(),
            wait.map(Duration::from_secs),
            "{status}"
        );
        let is_final = headers.contains(&("retry-after", "-1")) || status.starts_with("403");
        assert_eq!(done.error().allows_retry(), !is_final, "{status} {headers:?}");
        assert_eq!(done.dispatch, DispatchState::Answered, "{status}");
    }
}

#[tokio::test]
async fn no_refusal_is_a_sign_that_the_upstream_is_ill() {
    let server = Server::start(|request| {
        let line = request.line();
        let status = line
            .split(['/', ' '])
            .find(|part| part.len() == 3 && part.starts_with('4'));
        Answer::Keep(answer(&format!("{} x", status.unwrap()), &[], ""))
    })
    .await;
    for status in 400..=499 {
        let tool = prepare(json!({"url": server.url(&format!("/{status}"))}));
        let error = tool.call(json!({})).await.result.unwrap_err();
        let is_again = matches!(status, 408 | 421 | 425 | 429);
        assert_eq!(error.kind().is_retryable(), is_again, "{status}");
        let cx = tool.context("{}");
        let signs = HealthSignals::from_result(&cx, Some(&Err(error)), Duration::ZERO);
        // Refused credentials do not count for a breaker, since waiting does not help.
        let expected = match status {
            401 | 403 | 407 => HealthSignal::AuthFailure,
            _ => HealthSignal::Neutral,
        };
        assert_eq!((signs.tool, signs.upstream), (expected, expected), "{status}");
    }
}

#[tokio::test]
async fn an_errors_body_is_bounded_and_kept_as_data() {
    let server = Server::start(|request| {
        if request.line().ends_with("/long") {
            let endless = b"HTTP/1.1 500 x\r\n\r\n".to_vec();
            return Answer::Endless(endless, vec![b'x'; 1000]);
        }
        Answer::Keep(answer(
            "409 x",
            &[("content-type", "application/problem+json")],
            r#"{"token": "t", "n": 1e2}"#,
        ))
    })
    .await;
    let done = prepare(json!({"url": server.url("/long")})).call(json!({})).await;
    assert!(done.error().to_string().len() < 400, "{}", done.error());
    assert!(done.error().detail().is_none());
    let done = prepare(json!({"url": server.url("/"), "redact": ["token"]}))
        .call(json!({}))
        .await;
    assert_eq!(
        done.error().detail().unwrap().as_str(),
        r#"{"token": "[redacted]", "n": 1e2}"#
    );
    assert!(!done.error().to_string().contains("\"t\""));
}

#[tokio::test]
async fn an_error_that_never_ends_is_still_an_answer() {
    let cut = b"HTTP/1.1 404 x\r\ncontent-length: 10\r\n\r\nabc";
    for script in [Answer::Hang as fn(Vec<u8>) -> Answer, Answer::Close] {
        let server = Server::start(move |_| script(cut.to_vec())).await;
        let done = prepare(json!({"url": server.url("/")})).call(json!({})).await;
        assert_eq!(
            done.error().to_string(),
            "the upstream answered 404 Not Found: abc"
        );
        assert_eq!(
            (done.kind(), done.dispatch),
            (ErrorKind::InvalidArguments, DispatchState::Answered)
        );
    }
}

#[tokio::test]
async fn expected_statuses() {
    for (status, expected, fine) in [
        ("201 Created", json!([]), true),
        ("204 No Content", json!([]), true),
        ("201 Created", json!([200]), false),
        ("404 Not Found", json!(["2xx", 404]), true),
        ("302 Found", json!([302]), true),
        ("200 OK", json!(["4xx"]), false),
    ] {
        let bytes = answer(
            status,
            &[("content-type", "text/plain"), ("location", "/other")],
            "",
        );
        let server = Server::start(move |_| Answer::Keep(bytes.clone())).await;
        let done = prepare(json!({"url": server.url("/"), "expected_status": expected}))
            .call(json!({}))
            .await;
        assert_eq!(done.result.is_ok(), fine, "{status} {expected}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_status_says_that_an_answer_is_a_part() {
    for (status, is_partial) in [("200 OK", false), ("206 Partial Content", true)] {
        let bytes = answer(status, &[("content-type", "application/json")], "[1]");
        let server = Server::start(move |_| Answer::Keep(bytes.clone())).await;
        let tool = prepare(json!({"url": server.url("/")}));
        let mut cx = tool.context("{}");
        let outcome = tool.invoke().invoke_boxed(&mut cx).await;
        let Ok(Outcome::Reply(reply)) = outcome else {
            panic!("{status}: {outcome:?}");
        };
        assert_eq!(reply.is_partial(), is_partial, "{status}");
    }
}

#[tokio::test]
async fn response_paths() {
    let answer = r#"{"forecast": {"daily": [{"t": 1.50}, {"t": 12345678901234567890123}]}}"#;
    for (path, expected) in [
        (
            "$.forecast.daily",
            r#"[{"t": 1.50}, {"t": 12345678901234567890123}]"#,
        ),
        ("$.forecast.daily[*].t", "[1.50,12345678901234567890123]"),
        ("$.nothing", "null"),
    ] {
        let server = Server::json(answer).await;
        let done = prepare(json!({"url": server.url("/"), "response_path": path}))
            .call(json!({}))
            .await;
        assert_eq!(done.text(), expected);
    }
}

#[tokio::test]
async fn a_large_response_is_searched() {
    let body: &'static str = format!("{{\"pad\": \"{}\", \"n\": 1.0}}", "x".repeat(600_000)).leak();
    let server = Server::json(body).await;
    let done = prepare(json!({"url": server.url("/"), "response_path": "$.n"}))
        .call(json!({}))
        .await;
    assert_eq!(done.text(), "1.0");
    let many: &'static str = format!("[{}0]", "0,".repeat(20_000)).leak();
    let server = Server::json(many).await;
    let config = json!({"url": server.url("/"), "response_path": "$[?match(@.a, 'x')]"});
    let done = prepare(config).call(json!({})).await;
    assert_eq!(done.kind(), ErrorKind::ResultTooLarge);
}

#[tokio::test]
async fn fields_are_hidden_in_the_result() {
    let server = Server::json(r#"{"user": {"ssn": "123-45", "n": 1.0}}"#).await;
    let done = prepare(json!({"url": server.url("/"), "redact": ["ssn"]}))
        .call(json!({}))
        .await;
    assert_eq!(done.text(), r#"{"user": {"ssn": "[redacted]", "n": 1.0}}"#);
}

#[tokio::test]
async fn a_selection_does_not_bring_hidden_fields_out() {
    for selection in [
        json!({"response_path": "$.user.ssn"}),
        json!({"response": {"body_mapping": "user.ssn"}}),
    ] {
        let server = Server::json(r#"{"user": {"ssn": "123-45", "n": 1.0}}"#).await;
        let mut config = selection;
        config["url"] = json!(server.url("/"));
        config["redact"] = json!(["ssn"]);
        assert_eq!(prepare(config).call(json!({})).await.text(), "\"[redacted]\"");
    }
}

#[tokio::test]
async fn connections_are_shared() {
    let server = Server::start(|_| Answer::Keep(ok("application/json", "1"))).await;
    let executor = crate::support::executor(crate::support::Values::new(&[]));
    for path in ["/a", "/b", "/c", "/d"] {
        let descriptor = crate::support::descriptor(json!({"url": server.url(path)}));
        let tool = crate::support::prepare_by(&executor, descriptor)
            .unwrap_or_else(|problems| panic!("{problems:?}"));
        for _ in 0..3 {
            assert_eq!(tool.call(json!({})).await.text(), "1");
        }
    }
    assert_eq!((server.requests().len(), server.connections()), (12, 1));
}
