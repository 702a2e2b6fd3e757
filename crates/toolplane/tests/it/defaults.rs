//! Defaults of a tool's schema in the standard stack: approvals, caches and tools see the arguments with them.

use serde_json::{Value, json};
use toolplane::{
    CallRequest, Toolplane,
    core::{ErrorKind, Outcome, Reply, ToolError},
    policy::ApprovalVerdict,
};

const CONFIGURATION: &str = r#"
defaults: {arguments: coerce}
tools:
  search: &search
    description: Searches.
    input_schema: &schema
      type: object
      properties: {query: {type: string}, limit: {type: integer, default: 7}}
      required: [query, limit]
    executor: {kind: mock, template: '{"query": {{ query }}, "limit": {{ limit }}}'}
    cache: {ttl: 1h}
    idempotent: true
    read_only: true
  approved:
    description: Searches when somebody approves.
    input_schema: *schema
    executor: {kind: mock, template: '{"query": {{ query }}, "limit": {{ limit }}}'}
    approval: required
  off:
    description: Searches.
    input_schema: *schema
    fill_defaults: false
    executor: {kind: mock, result: 1}
  strict:
    description: Searches.
    input_schema: *schema
    arguments: strict
    executor: {kind: mock, result: 1}
  alone:
    description: Searches.
    input_schema: *schema
    arguments: strict
    fill_defaults: true
    executor: {kind: mock, template: '{"query": {{ query }}, "limit": {{ limit }}}'}
"#;

async fn call(plane: &Toolplane, tool: &str, arguments: &Value) -> Result<Reply, ToolError> {
    let request = CallRequest::new(tool).json(arguments.to_string())?;
    match plane.call(request).await? {
        Outcome::Reply(reply) => Ok(reply),
        outcome => panic!("no reply: {outcome:?}"),
    }
}

#[tokio::test]
async fn the_nearest_setting_decides_whether_defaults_are_filled_in() {
    let plane = Toolplane::from_yaml(CONFIGURATION).expect("usable");
    for (tool, is_filled) in [
        ("search", true),
        ("off", false),
        ("strict", false),
        ("alone", true),
    ] {
        match call(&plane, tool, &json!({"query": "a"})).await {
            Ok(reply) if is_filled => {
                let value: Value = reply.raw().to().expect("JSON");
                assert_eq!(value, json!({"query": "a", "limit": 7}), "{tool}");
            }
            Err(error) if !is_filled => assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{tool}"),
            came => panic!("{tool}: {came:?}"),
        }
    }
}

#[tokio::test]
async fn a_call_with_the_default_is_the_same_call() {
    let plane = Toolplane::from_yaml(CONFIGURATION).expect("usable");
    let status = |reply: &Reply| {
        let told = reply.meta().iter().find(|(key, _)| *key == "dev.toolplane/cache");
        told.map(|(_, value)| value.to::<Value>().expect("JSON")["status"].clone())
    };
    let first = call(&plane, "search", &json!({"query": "a"}))
        .await
        .expect("answers");
    assert_eq!(status(&first), None);
    let again = call(&plane, "search", &json!({"query": "a", "limit": 7}))
        .await
        .expect("answers");
    assert_eq!(status(&again), Some(json!("hit")));
}

#[tokio::test]
async fn the_arguments_with_their_defaults_are_approved() {
    let plane = Toolplane::from_yaml(CONFIGURATION).expect("usable");
    let request = CallRequest::new("approved")
        .json(r#"{"query":"a"}"#)
        .expect("usable");
    let Ok(Outcome::Pending(pending)) = plane.call(request.clone()).await else {
        panic!("it waits for approval")
    };
    let asked: Value = pending.detail.expect("a detail").to().expect("JSON");
    assert_eq!(asked["arguments"], json!({"query": "a", "limit": 7}));
    let decided = plane
        .approvals()
        .decide(&pending.handle, ApprovalVerdict::Approve, "operator");
    decided.await.expect("can be decided");
    let Ok(Outcome::Reply(reply)) = plane.call(request.approval(&pending.handle)).await else {
        panic!("it was approved")
    };
    assert_eq!(
        reply.raw().to::<Value>().expect("JSON"),
        json!({"query": "a", "limit": 7})
    );
}
