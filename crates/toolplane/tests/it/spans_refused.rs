//! What a trace says of calls that a layer refused: which one, and why.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolplane::{
    CallRequest, RawJson, Toolplane,
    core::Outcome,
    manifest::{LoadOptions, Syntax, load},
    observe::{AttributeValue, EndedSpan, Sampler, SpanKind, SpanProcessor, Tracer},
    policy::ApprovalVerdict,
};

/// What the traces of calls say of refusals: `layer reason`.
#[derive(Default)]
struct Kept(Mutex<Vec<String>>);

impl SpanProcessor for Kept {
    fn on_end(&self, span: EndedSpan) {
        assert!(span.kind() == SpanKind::Call || span.events.is_empty());
        for event in span.events {
            assert_eq!(event.name, "toolplane.refused");
            let said: Vec<_> = event.attributes().collect();
            let [
                ("toolplane.layer", AttributeValue::Static(layer)),
                ("toolplane.reason", AttributeValue::Static(reason)),
            ] = said[..]
            else {
                panic!("{said:?}")
            };
            let line = format!("{layer} {reason}");
            self.0.lock().expect("no test panics with it").push(line);
        }
    }
}

fn plane(policy: &str, tool: &str) -> (Toolplane, Arc<Kept>) {
    let text = format!(
        "
policy: {policy}
tools:
  t:
    description: d
    input_schema: {{type: object, properties: {{n: {{type: integer}}}}}}
    executor: {{kind: mock, result: 1}}
    {tool}
"
    );
    let loaded = load(&LoadOptions::new().text("c.yaml", Syntax::Yaml, text)).expect("it is usable");
    let kept = Arc::new(Kept::default());
    let plane = Toolplane::builder()
        .loaded(&loaded)
        .tracer(Tracer::new(Sampler::DEFAULT, kept.clone()))
        .build()
        .expect("can be set up");
    (plane, kept)
}

fn request(arguments: &Value) -> CallRequest {
    CallRequest::new("t")
        .json(arguments.to_string())
        .expect("an object")
}

fn said(kept: &Kept) -> Vec<String> {
    std::mem::take(&mut *kept.0.lock().expect("no test panics with it"))
}

#[tokio::test]
async fn it_says_which_rule_of_the_policy_does_not_admit_a_call() {
    for (policy, tool, expected) in [
        ("{tool_choice: none}", "", "admit tool_choice"),
        ("{blocklist: [t]}", "", "admit blocklist"),
        ("{allowlist: [other]}", "", "admit allowlist"),
        ("{}", "required_permissions: [pay]", "admit permission"),
    ] {
        let (plane, kept) = plane(policy, tool);
        plane.call(request(&json!({}))).await.expect_err("it is refused");
        assert_eq!(said(&kept), [expected]);
    }
}

#[tokio::test]
async fn it_says_which_limit_a_call_would_exceed() {
    for (limit, expected) in [
        ("calls_per_turn: 1", "allowance calls_per_turn"),
        ("calls_per_conversation: 1", "allowance calls_per_conversation"),
        ("identical_calls: 1", "allowance identical_calls"),
        ("cost_per_turn: 0.9", "allowance cost_per_turn"),
        ("cost_per_conversation: 0.9", "allowance cost_per_conversation"),
    ] {
        let (plane, kept) = plane(&format!("{{limits: {{{limit}}}}}"), "cost_per_call: 0.5");
        let meta = json!({"dev.toolplane/turn": 1, "dev.toolplane/conversation": "c"});
        let request = || request(&json!({})).meta(RawJson::from(meta.clone()));
        plane.call(request()).await.expect("the first is within it");
        assert_eq!(said(&kept), [""; 0]);
        plane.call(request()).await.expect_err("it is refused");
        assert_eq!(said(&kept), [expected]);
    }
}

#[tokio::test]
async fn it_says_that_arguments_or_a_key_were_refused() {
    let (plane, kept) = plane("{}", "");
    let secret = json!({"n": "a secret"});
    plane.call(request(&secret)).await.expect_err("it does not fit");
    assert_eq!(said(&kept), ["validate arguments"]);
    let keyed = |n: u32| request(&json!({"n": n})).idempotency_key("k");
    plane.call(keyed(1)).await.expect("the first with its key");
    plane.call(keyed(2)).await.expect_err("another call");
    let long = request(&json!({})).idempotency_key("k".repeat(10_000));
    plane.call(long).await.expect_err("no key");
    assert_eq!(said(&kept), ["idempotency conflict", "idempotency key"]);
}

/// The handle of a call that waits for approval.
async fn pending(plane: &Toolplane, n: u32) -> Arc<str> {
    match plane.call(request(&json!({"n": n}))).await {
        Ok(Outcome::Pending(pending)) => pending.handle,
        other => panic!("expected to wait: {other:?}"),
    }
}

#[tokio::test]
async fn it_says_why_an_approval_does_not_let_a_call_pass() {
    let (plane, kept) = plane("{}", "approval: required");
    let decide = async |handle: &str, verdict: ApprovalVerdict| {
        let decided = plane.approvals().decide(handle, verdict, "operator");
        decided.await.expect("can be decided");
    };
    let call = async |n: u32, handle: &str| {
        let request = request(&json!({"n": n})).approval(handle);
        plane.call(request).await.map(|_| ())
    };
    let handle = pending(&plane, 1).await;
    assert_eq!(said(&kept), [""; 0], "what waits is not refused");
    let reason = Some("my secret reason".into());
    decide(&handle, ApprovalVerdict::Deny { reason }).await;
    call(1, &handle).await.expect_err("it is denied");
    let handle = pending(&plane, 2).await;
    decide(&handle, ApprovalVerdict::Approve).await;
    call(3, &handle).await.expect_err("it is for other arguments");
    call(2, &handle).await.expect("it is for this one");
    call(2, &handle).await.expect_err("it is used, and not kept");
    assert_eq!(
        said(&kept),
        ["approve denied", "approve other_arguments", "approve unknown",]
    );
}
