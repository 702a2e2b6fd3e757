//! Outcomes of calls and the kinds of their failures.

use std::{sync::Arc, time::Duration};

use raw_json::RawJson;
use serde_json::json;
use tool_core::{Arguments, Claim, DispatchState, ErrorKind, Executor as _};
use tool_exec_mcp::{KeyPlace, McpExecutor, McpServer};
use tool_testkit::TestTool;

use crate::fixture::{Call, Fixture, NoSecrets, Reports, load, tool};

#[tokio::test]
async fn arguments_and_results_keep_their_text() {
    let fixture = Fixture::new(&[tool("echo")]);
    let server = fixture.server("");
    let text = r#"{ "n": 12345678901234567890123, "z": 1e2, "a": [ "A", "\ud83e\udd80" ] }"#;
    let mut call = Call::new(&server, "odd \"name\"", json!({}));
    call.cx.arguments = Arc::new(Arguments::parse(text).unwrap());
    let reply = call.make().await.unwrap();
    assert_eq!(reply.raw().get("arguments").unwrap().as_str(), text);
    assert_eq!(reply.raw().get("name").unwrap().string().unwrap(), "odd \"name\"");
    assert!(!reply.is_error);
    assert_eq!(call.cx.dispatch().state(), DispatchState::Answered);
    server.shutdown().await;
}

#[tokio::test]
async fn a_tool_that_says_it_failed_has_answered() {
    let fixture = Fixture::new(&[tool("is-error")]);
    let server = fixture.server("");
    let reply = Call::new(&server, "is-error", json!({})).make().await.unwrap();
    assert!(reply.is_error);
    assert_eq!(
        reply.raw().as_str(),
        r#"{"content":[{"type":"text","text":"no such city"}],"isError":true}"#
    );
    server.shutdown().await;
}

#[tokio::test]
async fn a_server_cannot_say_that_it_runs_in_a_sandbox() {
    let fixture = Fixture::new(&[tool("claims-sandbox")]);
    let server = fixture.server("");
    let reply = Call::new(&server, "claims-sandbox", json!({}))
        .make()
        .await
        .unwrap();
    assert_eq!(reply.raw().as_str(), r#"{"content":[],"_meta":{"page":1}}"#);
    server.shutdown().await;
}

#[tokio::test]
async fn failures_have_their_kinds() {
    let fixture = Fixture::new(&[]);
    let mut settings = fixture.settings("");
    settings.max_message = 100_000;
    let server = McpServer::new(settings, Arc::new(NoSecrets));
    let cases = [
        (
            "rpc-error",
            ErrorKind::UpstreamError,
            "the error -32050: the moon is full",
        ),
        ("no-object", ErrorKind::Protocol, "not an object"),
        (
            "twice",
            ErrorKind::Protocol,
            "duplicate member `structuredContent`",
        ),
        ("large", ErrorKind::ResultTooLarge, "100000 bytes"),
        // The last one ends the server.
        ("exit", ErrorKind::OutcomeUnknown, "closed the connection"),
    ];
    for (tool, kind, message) in cases {
        let error = Call::new(&server, tool, json!({})).make().await.unwrap_err();
        assert_eq!(error.kind(), kind, "{tool}: {error}");
        assert!(error.message().contains(message), "{tool}: {error}");
        assert!(error.message().contains("`box`"), "{tool}: {error}");
    }
    server.shutdown().await;
}

#[tokio::test]
async fn details_of_a_server_error_are_kept() {
    let fixture = Fixture::new(&[]);
    let server = fixture.server("");
    let cases = [
        (
            "rpc-error",
            r#"{"code":-32050,"message":"the\u0007 moon is full","data":{"phase":1e0}}"#,
        ),
        // The data says what the client must do first (2025-11-25).
        (
            "visit",
            r#"{"code":-32042,"message":"look there first","data":{"elicitations":[{"mode":"url","url":"https://a.test","elicitationId":"e1","message":"?"}]}}"#,
        ),
    ];
    for (tool, detail) in cases {
        let error = Call::new(&server, tool, json!({})).make().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UpstreamError, "{tool}");
        assert_eq!(error.detail().unwrap().as_str(), detail, "{tool}");
    }
    server.shutdown().await;
}

#[tokio::test]
async fn an_invalid_answer_leaves_the_outcome_unknown() {
    let fixture = Fixture::new(&[]);
    let server = fixture.server("");
    let error = Call::new(&server, "both", json!({})).make().await.unwrap_err();
    let kinds = [ErrorKind::Protocol, ErrorKind::OutcomeUnknown];
    assert!(kinds.contains(&error.kind()), "{error:?}");
    server.shutdown().await;
}

#[tokio::test]
async fn whether_a_tool_ran_that_did_not_answer_is_unknown_unless_it_may_run_twice() {
    let listed = json!({
        "name": "never", "inputSchema": {"type": "object"},
        "annotations": {"idempotentHint": true, "readOnlyHint": true},
    });
    let fixture = Fixture::new(&[listed]);
    let server = fixture.server("");
    let catalogue = load(&server).await;
    let upstream = (*catalogue.tools[0]).clone();
    let mut promised = tool_testkit::TestTool::new("mine").descriptor;
    promised.executor = upstream.executor.clone();
    let plain = promised.clone();
    promised.metadata.idempotent = Some(true);
    let cases = [
        (upstream, ErrorKind::OutcomeUnknown, "a server's hint"),
        (plain, ErrorKind::OutcomeUnknown, "no word of the operator"),
        (promised, ErrorKind::Timeout, "the operator's word"),
    ];
    for (descriptor, kind, why) in cases {
        let mut call = Call::for_tool(&server, descriptor, json!({})).within(Duration::from_millis(200));
        let error = call.make().await.unwrap_err();
        assert_eq!(error.kind(), kind, "{why}: {error}");
        assert_eq!(call.cx.dispatch().state(), DispatchState::Sent, "{why}");
    }
    server.shutdown().await;
}

#[tokio::test]
async fn a_call_that_was_not_sent_says_so() {
    let fixture = Fixture::new(&[]);
    let server = fixture.server("fails");
    for _ in 0..2 {
        let mut call = Call::new(&server, "echo", json!({}));
        let error = call.make().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert_eq!(call.cx.dispatch().state(), DispatchState::NotSent);
    }
    server.shutdown().await;
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_at_the_server() {
    let fixture = Fixture::new(&[]);
    let server = fixture.server("");
    let mut call = Call::new(&server, "never", json!({}));
    let dispatch = call.cx.dispatch().clone();
    let waited = async {
        while dispatch.state() != DispatchState::Sent {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        result = call.make() => panic!("{result:?}"),
        () = waited => {}
    }
    fixture.noted("notifications", "notifications/cancelled").await;
    assert!(Call::new(&server, "echo", json!({})).make().await.is_ok());
    server.shutdown().await;
}

#[tokio::test]
async fn progress_is_passed_on_in_order_and_before_the_reply() {
    let fixture = Fixture::new(&[]);
    let server = fixture.server("");
    for _ in 0..20 {
        let reports = Arc::new(Reports::default());
        let mut call = Call::new(&server, "progress", json!({}));
        call.cx.origin.progress = Some(reports.clone());
        call.make().await.unwrap();
        let reports = reports.0.lock().unwrap();
        let steps: Vec<_> = reports
            .iter()
            .map(|report| {
                (
                    report.get("progress").unwrap().to_string(),
                    report.get("message").unwrap(),
                )
            })
            .collect();
        let expected: Vec<_> = (1..=5)
            .map(|step| (step.to_string(), RawJson::from(format!("step {step}").as_str())))
            .collect();
        assert_eq!(steps, expected);
    }
    server.shutdown().await;
}

#[tokio::test]
async fn progress_that_nobody_wants_is_not_requested() {
    let fixture = Fixture::new(&[]);
    let server = fixture.server("");
    let reply = Call::new(&server, "echo", json!({})).make().await.unwrap();
    assert_eq!(reply.raw().get("_meta"), None);
    server.shutdown().await;
}

#[tokio::test]
async fn the_server_gets_a_derived_idempotency_key_where_the_operator_says() {
    let fixture = Fixture::new(&[]);
    for (place, own) in [
        (None, None),
        (Some(KeyPlace::Meta("example.com/key".to_owned())), None),
        (Some(KeyPlace::Argument("absent".to_owned())), None),
        (None, Some(json!({"argument": "id"}))),
    ] {
        let mut settings = fixture.settings("");
        settings.key_place = place.clone();
        let server = McpServer::new(settings, Arc::new(NoSecrets));
        let mut descriptor = TestTool::new("outward").descriptor;
        descriptor.executor.kind = McpExecutor::KIND.to_owned();
        descriptor.executor.config = json!({"server": "box", "tool": "echo"});
        if let Some(own) = &own {
            descriptor.executor.config["idempotency"] = own.clone();
        }
        let passes_key = McpExecutor::new([server.clone()]).passes_key(&descriptor);
        let mut call = Call::for_tool(&server, descriptor, json!({"a": 1}));
        call.cx.extras.idempotency_key = Some("k".into());
        call.cx.extras.meta = Some(RawJson::from(json!({(Claim::META_KEY): "k", "mine": 1})));
        let key = call.cx.upstream_idempotency_key().unwrap();
        let reply = call.make().await.unwrap();
        let text = reply.raw().to_string();
        assert_eq!(text.contains(&key), passes_key, "{place:?} {own:?}: {text}");
        assert!(!text.contains(Claim::META_KEY) && text.contains("mine"), "{text}");
        let is_meta = matches!(place, Some(KeyPlace::Meta(_)));
        assert_eq!(passes_key, is_meta || own.is_some(), "{place:?} {own:?}");
        if own.is_some() {
            let mut call = Call::for_tool(
                &server,
                call.cx.tool().descriptor().as_ref().clone(),
                json!({"id": 1}),
            );
            call.cx.extras.idempotency_key = Some("k".into());
            let error = call.make().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{error}");
        }
        server.shutdown().await;
    }
}
