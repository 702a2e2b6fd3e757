//! Routes in the standard stack, with scripted tools.

use std::time::Duration;

use serde_json::{Value, json};
use tool_testkit::ScriptStep;
use toolplane::{
    RawJson, Toolplane,
    core::{Caller, ErrorKind, Outcome, Reply, ToolError},
    policy::ApprovalVerdict,
    route::{RouteDefinition, RouteExecutor},
};

use crate::world::{World, failed, failure, reply, request};

/// Tools `a`, which is the better one, and `b`, and a route between them.
fn tools(more: &str) -> String {
    format!(
        "
  a: {{description: A., capabilities: [search, news], executor: {{kind: world}}, read_only: true{more}}}
  b: {{description: B., capabilities: [search], executor: {{kind: world}}, read_only: true}}
  find: {{description: Finds., route: {{capability: search, requirements: [news]}}}}
"
    )
}

/// Returns what the reply says about the choice.
fn told(reply: &Reply) -> Value {
    let (_, route) = reply
        .meta()
        .iter()
        .find(|(key, _)| *key == RouteExecutor::META_KEY)
        .expect("a route says what it chose");
    route.to().expect("it is JSON")
}

async fn chosen(plane: &Toolplane) -> String {
    let told = told(&reply(plane, "find", &json!({"query": "rust"})).await);
    told["tool"].as_str().expect("it chose one").to_owned()
}

fn answered() -> ScriptStep {
    ScriptStep::Value(json!("done"))
}

fn unavailable() -> ScriptStep {
    ScriptStep::FailSent(ToolError::new(ErrorKind::Unavailable, "as scripted"))
}

#[tokio::test(start_paused = true)]
async fn a_caller_gets_a_tool_that_it_may_call_and_hears_of_no_other() {
    let world = World::default();
    let plane = world.plane(&[], &tools(", required_permissions: [network.external]"));
    let mut ada = Caller::new("ada");
    ada.permissions.insert("network.external".into());
    for (caller, wanted) in [(ada, "a"), (Caller::new("bob"), "b")] {
        let call = request("find", &json!({})).caller(caller.clone().into());
        let reply = plane
            .call(call)
            .await
            .expect("it answers")
            .into_reply()
            .expect("a reply");
        assert_eq!(told(&reply)["tool"], wanted);
        let hears_of_a = told(&reply)["candidates"].to_string().contains(r#""a""#);
        assert_eq!(hears_of_a, wanted == "a", "{}", told(&reply));
        // An operator sees all of them.
        let report = plane
            .route(RouteDefinition::for_capability("search"), &caller)
            .await;
        assert_eq!(report.candidates.len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_with_an_open_breaker_is_out() {
    let world = World::default();
    world.script("a", [unavailable()]);
    let breaker = "defaults: {breaker: {max_failures: 1, pause: 1s}, retry: {max_attempts: 1}}\n";
    let plane = world.plane(&[], &format!("{}{breaker}", tools("")));
    assert_eq!(chosen(&plane).await, "b");
    assert_eq!(world.called(), ["a", "b"]);
    let second = reply(&plane, "find", &json!({"query": "rust"})).await;
    let told = told(&second);
    assert_eq!(told["tool"], "b");
    assert_eq!(
        told["candidates"][1]["out"], "its circuit breaker is open",
        "{told}"
    );
    assert_eq!(world.called(), ["a", "b", "b"]);
    // It is tried again once the breaker lets a probe pass, and leads again once it works.
    world.script("a", [answered()]);
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(chosen(&plane).await, "a");
}

#[tokio::test(start_paused = true)]
async fn attempts_do_not_multiply() {
    let world = World::default();
    world.script("a", [unavailable()]);
    world.script("b", [unavailable()]);
    let retry = "defaults: {retry: {max_attempts: 3}, breaker: {disabled: true}}\n";
    let plane = world.plane(&[], &format!("{}{retry}", tools("")));
    let error = failure(&plane, "find", &json!({})).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    // Each tool has its own retries, and the route has none.
    assert_eq!(world.called(), ["a", "a", "a", "b", "b", "b"]);
}

#[tokio::test(start_paused = true)]
async fn after_an_unknown_outcome_nothing_else_is_called() {
    let world = World::default();
    world.script("pay", [unavailable()]);
    let plane = world.plane(
        &["pay", "other"],
        "  send: {description: Sends., route: {tools: [pay, other], max_attempts: 3}}\n",
    );
    let mut n_unknown = 0;
    for _ in 0..20 {
        if let Err(error) = plane.call(request("send", &json!({}))).await {
            assert!(error.may_have_run(), "{error:?}");
            n_unknown += 1;
        }
    }
    let called = world.called();
    assert_eq!(called.len(), 20, "{called:?}");
    assert_eq!(n_unknown, called.iter().filter(|name| *name == "pay").count());
}

#[tokio::test(start_paused = true)]
async fn a_decision_is_awaited_for_the_chosen_tool_alone() {
    let world = World::default();
    let plane = world.plane(&[], &tools(", approval: required"));
    let call = || request("find", &json!({"query": "rust"}));
    let Outcome::Pending(pending) = plane.call(call()).await.expect("it waits") else {
        panic!("it waits");
    };
    assert!(pending.reason.starts_with("`a`: "), "{}", pending.reason);
    let desk = plane.approvals();
    assert_eq!(desk.list().await.expect("they are there").len(), 1);
    desk.decide(&pending.handle, ApprovalVerdict::Approve, "operator")
        .await
        .expect("it can be decided");
    let reply = plane
        .call(call())
        .await
        .expect("it answers")
        .into_reply()
        .expect("a reply");
    assert_eq!(told(&reply)["tool"], "a");
    assert_eq!(world.called(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_workflow_and_a_route_call_each_other_and_never_themselves() {
    let world = World::default();
    world.script("a", [failed(ErrorKind::Unavailable)]);
    let more = "
workflows:
  deep: {description: Deep., capabilities: [deep], steps: [{tool: down, input: {}}]}
  through: {description: Through., steps: [{tool: find, input: {query: rust}}]}
";
    let down = "  down: {description: Down., route: {capability: deep}}\n";
    let plane = world.plane(&[], &format!("{}{down}{more}", tools("")));
    let through = reply(&plane, "through", &json!({})).await;
    assert_eq!(
        through.raw(),
        &RawJson::parse(r#"{"query":"rust"}"#).expect("JSON")
    );
    let error = failure(&plane, "down", &json!({})).await;
    assert!(error.message().contains("would call itself"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_a_route_names_and_nothing_has_is_told() {
    let world = World::default();
    let plane = world.plane(
        &["a"],
        "  find: {description: Finds., route: {capability: serch, tools: [b]}}\n",
    );
    let problems = plane.route_problems();
    let problems: Vec<_> = problems
        .iter()
        .map(|(route, problem)| (&**route, &*problem.pointer, &*problem.message))
        .collect();
    assert_eq!(
        problems,
        [
            ("find", "/capability", "no tool has the capability `serch`"),
            ("find", "/tools", "no tool is called `b`"),
        ]
    );
}
