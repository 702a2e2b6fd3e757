use std::{fs, time::Duration};

use serde_json::json;
use tool_core::{DispatchState, ErrorKind};

use crate::{answer, context};

#[tokio::test]
async fn a_fixed_result_is_given_as_a_plain_value() {
    // A result with the shape of an MCP result stays a plain value, since a mock represents any API.
    let result = json!({"content": [{"type": "text", "text": "hi"}]});
    let text = answer(json!({"result": result}), json!({})).await.unwrap();
    assert_eq!(text, result.to_string());
    assert_eq!(answer(json!({"result": null}), json!({})).await.unwrap(), "null");
}

#[tokio::test]
async fn a_file_is_read_by_the_first_call_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("result.json");
    let (mock, mut cx) = context(json!({"result_file": path}), json!({}));

    let error = mock.invoke_boxed(&mut cx).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        !error.message().contains("result.json"),
        "no path for a model: {error}"
    );

    for written in [r#"{"id": 12345678901234567890123, "rate": 1e2}"#, "[]"] {
        fs::write(&path, written).unwrap();
        let tool_core::Outcome::Reply(reply) = mock.invoke_boxed(&mut cx).await.unwrap() else {
            panic!("not a reply");
        };
        // The original bytes of the file.
        assert_eq!(
            reply.raw().as_str(),
            r#"{"id": 12345678901234567890123, "rate": 1e2}"#
        );
    }
}

#[tokio::test]
async fn a_file_that_is_no_json_and_no_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("result.json");
    fs::write(&path, "{").unwrap();
    let error = answer(json!({"result_file": path}), json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    let error = answer(json!({"result_file": folder.path()}), json!({}))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn a_latency_is_waited_for() {
    let start = tokio::time::Instant::now();
    answer(json!({"result": 1, "latency_ms": 250}), json!({}))
        .await
        .unwrap();
    assert_eq!(start.elapsed(), Duration::from_millis(250));
}

#[test]
fn a_mock_speaks_with_nobody() {
    let (mock, _) = context(json!({"result": 1}), json!({}));
    assert_eq!(mock.dyn_protocol(), None);
}

#[tokio::test(start_paused = true)]
async fn the_marks_say_how_far_a_call_got() {
    let (mock, mut cx) = context(json!({"result": 1, "latency_ms": 1_000}), json!({}));
    let dispatch = cx.dispatch().clone();
    assert_eq!(dispatch.state(), DispatchState::NotSent);
    let cut_off = tokio::time::timeout(Duration::from_millis(10), mock.invoke_boxed(&mut cx)).await;
    assert!(cut_off.is_err());
    assert_eq!(dispatch.state(), DispatchState::Sent);

    mock.invoke_boxed(&mut cx).await.unwrap();
    assert_eq!(dispatch.state(), DispatchState::Answered);
}

#[tokio::test]
async fn a_configured_error_has_its_kind_and_words() {
    let cases = [
        (
            json!({"kind": "rate_limited", "message": "slow down"}),
            ErrorKind::RateLimited,
            "slow down",
            DispatchState::Answered,
        ),
        (
            json!({"kind": "timeout"}),
            ErrorKind::Timeout,
            "the mock fails as configured",
            DispatchState::Sent,
        ),
    ];
    for (error, kind, message, state) in cases {
        let (mock, mut cx) = context(json!({"error": error}), json!({}));
        let error = mock.invoke_boxed(&mut cx).await.unwrap_err();
        assert_eq!((error.kind(), error.message()), (kind, message));
        assert_eq!(cx.dispatch().state(), state);
    }
}

#[tokio::test]
async fn a_preview_says_that_nothing_is_sent_and_which_rule_answers() {
    for (settings, rule) in [
        (json!({"result": 1}), "result"),
        (json!({"result_file": "/nowhere.json"}), "result_file"),
        (json!({"template": "{\"n\": {{ n }}}"}), "template"),
        (json!({"error": {"kind": "timeout", "message": "m"}}), "error"),
    ] {
        let (mock, cx) = context(settings, json!({"n": 1}));
        let preview = mock.preview_boxed(&cx).await.unwrap().unwrap();
        assert_eq!(
            preview.request.to::<serde_json::Value>().unwrap(),
            json!({"answered_by": rule})
        );
        assert!(preview.text.starts_with("nothing is sent: "), "{}", preview.text);
        assert_eq!(cx.dispatch().state(), DispatchState::NotSent);
    }
    // The preview fails with the error of the template.
    let (mock, cx) = context(json!({"template": "{{ n }}"}), json!({}));
    let error = mock.preview_boxed(&cx).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
}
