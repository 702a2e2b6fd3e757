//! Approval in the standard stack: asked for once, for valid arguments, outside of whatever repeats attempts.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};
use toolplane::{
    CallRequest, Toolplane,
    core::{ErrorKind, Metadata, Outcome, Pattern, ToolError, Trust},
    manifest::Configuration,
    policy::ApprovalRule,
    policy::ApprovalVerdict,
    runtime::RetrySettings,
};

#[cfg(feature = "outbound")]
use crate::outbound::endpoint;
#[cfg(feature = "outbound")]
use toolplane::manifest::{LoadOptions, Syntax, load};

fn guarded(name: &str) -> TestTool {
    let mut tool = TestTool::new(name);
    tool.descriptor.overrides.set(ApprovalRule::Required);
    tool
}

fn plane(script: &ScriptedExecutor, change: impl FnOnce(&mut Configuration), tool: TestTool) -> Toolplane {
    let mut configuration = Configuration::default();
    change(&mut configuration);
    Toolplane::builder()
        .configuration(configuration)
        .executor(Arc::new(script.clone()))
        .tool(tool.descriptor)
        .build()
        .expect("it can be set up")
}

fn request(arguments: &Value) -> CallRequest {
    CallRequest::new("pay")
        .json(arguments.to_string())
        .expect("a test gives usable arguments")
}

/// The handle of a call that waits.
async fn pending(plane: &Toolplane, request: CallRequest) -> Arc<str> {
    match plane.call(request).await {
        Ok(Outcome::Pending(pending)) => {
            let detail = pending.detail.expect("it says what it waits for");
            assert_eq!(detail.get("state").expect("a state").as_str(), "\"pending\"");
            pending.handle
        }
        other => panic!("expected to wait: {other:?}"),
    }
}

async fn approve(plane: &Toolplane, handle: &str) {
    let decided = plane
        .approvals()
        .decide(handle, ApprovalVerdict::Approve, "operator");
    decided.await.expect("can be decided");
}

#[tokio::test(start_paused = true)]
async fn one_approval_is_for_all_attempts_of_a_call() {
    let failed = ScriptStep::Fail(ToolError::new(ErrorKind::Unavailable, "it is ill"));
    let script = ScriptedExecutor::new([failed.clone(), failed, ScriptStep::Echo]);
    let mut tool = guarded("pay").metadata({
        let mut metadata = Metadata::default();
        metadata.idempotent = Some(true);
        metadata
    });
    tool.descriptor.overrides = tool.descriptor.overrides.with(RetrySettings::default());
    let plane = plane(&script, |_| {}, tool);
    let handle = pending(&plane, request(&json!({"n": 1}))).await;
    approve(&plane, &handle).await;
    let explained = plane
        .call_explained(request(&json!({"n": 1})).approval(&handle))
        .await;
    assert!(matches!(explained.result, Ok(Outcome::Reply(_))), "{explained:?}");
    assert_eq!(script.n_calls(), 3);
    let layers: Vec<_> = explained.decisions.iter().map(|note| note.layer).collect();
    assert_eq!(layers[3..6], ["validation", "approval", "attempt"]);
}

#[tokio::test]
async fn nobody_is_asked_about_a_call_that_cannot_be_made() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let tool = guarded("pay").input(json!({"type": "object", "required": ["to"]}));
    let plane = plane(
        &script,
        |configuration| configuration.policy.blocklist = vec![Pattern::new("other")],
        tool,
    );
    let invalid = plane.call(request(&json!({}))).await.expect_err("it is refused");
    assert_eq!(invalid.kind(), ErrorKind::InvalidArguments);
    assert!(plane.approvals().list().await.expect("it works").is_empty());
    pending(&plane, request(&json!({"to": "ann"}))).await;
    assert_eq!(script.n_calls(), 0);
}

#[tokio::test]
async fn a_dry_run_says_that_approval_would_be_asked_for() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let plane = plane(&script, |_| {}, guarded("pay"));
    let explained = plane.dry_run(request(&json!({}))).await;
    let note = explained.decisions.iter().find(|note| note.layer == "approval");
    assert_eq!(
        note.expect("a note").decision,
        "would ask for approval, because the tool's settings require it"
    );
    assert!(plane.approvals().list().await.expect("it works").is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_approval_expires_as_the_policy_says() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let minute = Duration::from_secs(60);
    let plane = plane(
        &script,
        |configuration| configuration.policy.approval.expires_after = Some(minute),
        guarded("pay"),
    );
    let handle = pending(&plane, request(&json!({}))).await;
    approve(&plane, &handle).await;
    tokio::time::advance(minute).await;
    let late = plane.call(request(&json!({})).approval(&handle)).await;
    assert_eq!(late.expect_err("it is refused").kind(), ErrorKind::Denied);
    assert_eq!(script.n_calls(), 0);
}

#[tokio::test]
async fn what_a_server_says_of_its_tools_neither_asks_for_approval_nor_does_without() {
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    for (own, default, needs) in [
        (ApprovalRule::Required, None, false),
        (ApprovalRule::Never, Some(ApprovalRule::Required), true),
    ] {
        let mut tool = TestTool::new("pay");
        tool.descriptor.overrides.set(own);
        tool.descriptor.origin.trust = Trust::Upstream;
        let plane = plane(
            &script,
            |configuration| {
                if let Some(default) = default {
                    configuration.defaults.overrides.set(default);
                }
            },
            tool,
        );
        let result = plane.call(request(&json!({}))).await;
        assert_eq!(matches!(result, Ok(Outcome::Pending(_))), needs, "{result:?}");
    }
}

#[cfg(feature = "outbound")]
#[tokio::test]
async fn whoever_is_to_decide_is_called_and_told_what_was_decided() {
    let (url, mut received) = endpoint("200 OK").await;
    let text = format!(
        "secrets: {{key: '${{NO_SUCH_VARIABLE:-whsec_c2VjcmV0}}'}}
policy: {{approval: {{required: [pay], callback: {{url: '{url}', secret: '${{secret:key}}'}}}}}}"
    );
    let loaded = load(&LoadOptions::new().text("a.yaml", Syntax::Yaml, text)).expect("usable");
    let plane = Toolplane::builder()
        .loaded(&loaded)
        .executor(Arc::new(ScriptedExecutor::new([ScriptStep::Echo])))
        .tool(TestTool::new("pay").descriptor)
        .build()
        .expect("usable");
    let handle = pending(&plane, request(&json!({"to": "ann"}))).await;
    approve(&plane, &handle).await;
    for state in ["pending", "approved"] {
        let request = tokio::time::timeout(Duration::from_secs(30), received.recv()).await;
        let request = request.expect("it was sent").expect("the endpoint is there");
        let (head, body) = request.split_once("\r\n\r\n").expect("a request");
        assert!(head.contains("webhook-signature: v1,"), "{head}");
        let body: Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(body["type"], "toolplane.approval");
        assert_eq!(body["data"]["handle"], json!(&*handle));
        assert_eq!(body["data"]["state"], json!(state));
        assert_eq!(body["data"]["arguments"], json!({"to": "ann"}));
    }
}
