//! Workflows that wait: for input, or for a decision, without a repeated call.

use serde_json::{Value, json};
use tool_testkit::ScriptStep;
use toolplane::{
    CallRequest, RawJson, Toolplane,
    core::{ErrorKind, InputRequest, Outcome, Resume},
    policy::ApprovalVerdict,
};

use super::{World, request, statuses, summary};

const PAY: &str = "
policy: {approval: {required: [pay]}}
workflows:
  order:
    description: A.
    steps:
      - {tool: reserve, input: {item: $input.item}}
      - {tool: pay, input: {of: $results.reserve.item}}
      - {tool: ship, input: {paid: $results.pay.of}}
";

async fn approve(plane: &Toolplane, handle: &str) {
    let desk = plane.approvals();
    desk.decide(handle, ApprovalVerdict::Approve, "operator")
        .await
        .expect("it can be decided");
}

async fn pending(plane: &Toolplane, arguments: &Value) -> String {
    match plane.call(request("order", arguments)).await {
        Ok(Outcome::Pending(pending)) => {
            assert!(pending.reason.starts_with("step `pay`: "), "{}", pending.reason);
            assert!(
                pending
                    .advice()
                    .starts_with("a part was done and will not be done again")
            );
            pending.handle.to_string()
        }
        other => panic!("expected to wait: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_approval_in_the_middle_repeats_no_call() {
    let world = World::default();
    let plane = world.plane(&["reserve", "pay", "ship"], PAY);
    let (one, other) = (json!({"item": 1}), json!({"item": 2}));
    let handle = pending(&plane, &one).await;
    assert_eq!(world.called(), ["reserve"]);
    // Not decided yet: it waits on, and makes no call again.
    assert_eq!(pending(&plane, &one).await, handle);
    assert_eq!(world.called(), ["reserve"]);
    // Another call of the same workflow is another run.
    let handle_of_other = pending(&plane, &other).await;
    assert_ne!(handle_of_other, handle);
    assert_eq!(world.called(), ["reserve", "reserve"]);
    approve(&plane, &handle).await;
    let reply = plane
        .call(request("order", &one))
        .await
        .unwrap()
        .into_reply()
        .unwrap();
    assert_eq!(reply.raw().as_str(), r#"{"paid":1}"#);
    assert_eq!(world.called(), ["reserve", "reserve", "pay", "ship"]);
    let status = |step: &str, status: &str| (step.to_owned(), status.to_owned());
    assert_eq!(
        statuses(&summary(&reply)),
        [
            status("reserve", "resumed"),
            status("pay", "success"),
            status("ship", "success")
        ]
    );
    // It has ended: the same call begins anew.
    pending(&plane, &one).await;
    assert_eq!(world.called().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_refused_approval_fails_the_workflow() {
    let world = World::default();
    let plane = world.plane(&["reserve", "pay", "ship"], PAY);
    let handle = pending(&plane, &json!({"item": 1})).await;
    let desk = plane.approvals();
    desk.decide(
        &handle,
        ApprovalVerdict::Deny {
            reason: Some("too much".to_owned()),
        },
        "operator",
    )
    .await
    .unwrap();
    let error = plane
        .call(request("order", &json!({"item": 1})))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert_eq!(world.called(), ["reserve"]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_asks_is_answered_in_the_next_round() {
    let world = World::default();
    let asks = InputRequest::new(RawJson::from(json!({"name": {"method": "elicitation/create"}})));
    let asks = asks.with_state(Some(RawJson::from("inner state")));
    world.script(
        "ask",
        [
            ScriptStep::Outcome(Outcome::NeedsInput(Box::new(asks))),
            ScriptStep::Value(json!({"name": "Ada"})),
        ],
    );
    let plane = world.plane(
        &["first", "ask", "last"],
        "
workflows:
  greet:
    description: A.
    steps: [{tool: first}, {tool: ask, depends_on: [first]}, {tool: last, input: {to: $results.ask.name}}]
",
    );
    let Ok(Outcome::NeedsInput(input)) = plane.call(CallRequest::new("greet")).await else {
        panic!("it asks");
    };
    assert_eq!(
        input.requests.as_str(),
        r#"{"name":{"method":"elicitation/create"}}"#
    );
    let state = input.state.expect("it has a state");
    let resume = Resume::new(RawJson::from(json!({"name": {"action": "accept"}}))).with_state(Some(state));
    let again = CallRequest::new("greet").resume(resume.clone());
    let reply = plane.call(again).await.unwrap().into_reply().unwrap();
    assert_eq!(reply.raw().as_str(), r#"{"to":"Ada"}"#);
    assert_eq!(world.called(), ["first", "ask", "ask", "last"]);
    // A state of something else is refused.
    let foreign = Resume::new(RawJson::object()).with_state(Some(RawJson::from("x")));
    let error = plane
        .call(CallRequest::new("greet").resume(foreign))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    assert_eq!(world.called().len(), 4);
}
