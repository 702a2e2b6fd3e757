//! Workflows that outlive their gateway, in a store.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tempfile::TempDir;
use tool_store_sqlite::{SqlStore, SqliteDatabase, SqliteOptions, sqlite_store};
use tool_testkit::{ScriptStep, executor};
use toolplane::{
    RawJson, Toolplane,
    core::{ErrorKind, InputRequest, Outcome, Resume, ToolError},
    manifest::{LoadOptions, Syntax, load},
    policy::ApprovalVerdict,
};

use super::{World, request, statuses, summary};

const ORDER: &str = "
policy: {approval: {required: [pay]}}
tools:
  reserve: {description: A., executor: {kind: world}}
  look: {description: A., read_only: true, executor: {kind: world}}
  pay: {description: A., executor: {kind: world}}
  ship: {description: A., executor: {kind: world}}
  ask: {description: A., executor: {kind: world}}
workflows:
  order:
    description: A.
    steps: [{tool: reserve}, {tool: pay, depends_on: [reserve]}, {tool: ship, depends_on: [pay]}]
  deliver:
    description: A.
    steps: [{tool: reserve}, {tool: look, depends_on: [reserve]}, {tool: ship, depends_on: [look]}]
  asks:
    description: A.
    steps: [{tool: reserve}, {tool: ask, depends_on: [reserve]}]
";

/// Opens a gateway of its own on the store, whose lease is short.
fn gateway(directory: &TempDir, world: &World) -> (Toolplane, Arc<SqlStore<SqliteDatabase>>) {
    let store = sqlite_store(SqliteOptions::new(directory.path().join("flows.db")));
    let store = Arc::new(store.with_lease(Duration::from_millis(300)));
    let loaded = load(&LoadOptions::new().text("test", Syntax::Yaml, ORDER)).expect("usable");
    let plane = Toolplane::builder()
        .loaded(&loaded)
        .executor(executor("world", world.clone()))
        .approvals(store.clone())
        .flows(store.clone())
        .build()
        .expect("it can be built");
    (plane, store)
}

async fn call(plane: &Toolplane, workflow: &str) -> Result<Outcome, ToolError> {
    plane.call(request(workflow, &json!({"item": 1}))).await
}

/// Makes the call until no other gateway is at it.
async fn call_once_free(plane: &Toolplane, workflow: &str) -> Result<Outcome, ToolError> {
    loop {
        match call(plane, workflow).await {
            Ok(Outcome::Pending(pending)) if pending.is_at_work() => {
                assert_eq!(
                    pending.reason,
                    "another gateway runs this workflow for the same call"
                );
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            ended => return ended,
        }
    }
}

/// Runs a call on a gateway that dies in the middle of it, when the tool `at` is called.
fn crash(directory: &TempDir, world: &World, workflow: &'static str, at: &'static str) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    world.script(at, [ScriptStep::Hang(true)]);
    runtime.block_on(async {
        let (plane, _store) = gateway(directory, world);
        let running = plane.clone();
        tokio::spawn(async move { call(&running, workflow).await });
        while world.called().last().map(String::as_str) != Some(at) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // Nothing that was running gets to write anything.
    });
    // Nothing that was running gets to write anything.
    runtime.shutdown_background();
    world.script(at, [ScriptStep::Echo]);
}

#[test]
fn a_workflow_goes_on_where_its_gateway_died_between_two_steps() {
    let (directory, world) = (tempfile::tempdir().unwrap(), World::default());
    crash(&directory, &world, "deliver", "look");
    assert_eq!(world.called(), ["reserve", "look"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (plane, _) = gateway(&directory, &world);
        let outcome = call_once_free(&plane, "deliver").await.unwrap();
        let reply = outcome.into_reply().unwrap();
        // Reading is no effect, so that it is done again.
        assert_eq!(world.called(), ["reserve", "look", "look", "ship"]);
        let status = |step: &str, status: &str| (step.to_owned(), status.to_owned());
        assert_eq!(
            statuses(&summary(&reply)),
            [
                status("reserve", "resumed"),
                status("look", "success"),
                status("ship", "success")
            ]
        );
        // It has ended: the same call begins anew.
        call(&plane, "deliver").await.unwrap();
        assert_eq!(world.called().len(), 7);
    });
}

#[test]
fn a_step_that_ran_when_its_gateway_died_has_an_unknown_outcome() {
    let (directory, world) = (tempfile::tempdir().unwrap(), World::default());
    crash(&directory, &world, "deliver", "ship");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (plane, _) = gateway(&directory, &world);
        let error = call_once_free(&plane, "deliver").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
        assert_eq!(
            error.message(),
            "step `ship`: the gateway ended while the tool ran; whether it had its effect is not known"
        );
        assert_eq!(world.called(), ["reserve", "look", "ship"]);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_outlives_the_gateway_that_asked_for_it() {
    let (directory, world) = (tempfile::tempdir().unwrap(), World::default());
    let handle = {
        let (plane, _) = gateway(&directory, &world);
        match call(&plane, "order").await {
            Ok(Outcome::Pending(pending)) => pending.handle,
            other => panic!("expected to wait: {other:?}"),
        }
    };
    let (plane, _) = gateway(&directory, &world);
    let desk = plane.approvals();
    desk.decide(&handle, ApprovalVerdict::Approve, "operator")
        .await
        .unwrap();
    call(&plane, "order").await.unwrap().into_reply().unwrap();
    assert_eq!(world.called(), ["reserve", "pay", "ship"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_comes_to_another_gateway_and_counts_once() {
    let (directory, world) = (tempfile::tempdir().unwrap(), World::default());
    let asks = InputRequest::new(RawJson::from(json!({"q": {"method": "elicitation/create"}})));
    world.script(
        "ask",
        [
            ScriptStep::Outcome(Outcome::NeedsInput(Box::new(asks))),
            ScriptStep::Echo,
        ],
    );
    let (one, _) = gateway(&directory, &world);
    let Ok(Outcome::NeedsInput(input)) = call(&one, "asks").await else {
        panic!("it asks");
    };
    let state = input.state.expect("it has a state");
    // The results of steps are in the store and not in the state.
    assert!(state.get("steps").is_none());
    let resume = Resume::new(RawJson::from(json!({"q": {}}))).with_state(Some(state));
    let again = || request("asks", &json!({"item": 1})).resume(resume.clone());
    let (other, _) = gateway(&directory, &world);
    let reply = other.call(again()).await.unwrap().into_reply().unwrap();
    let value: Value = reply.raw().to().unwrap();
    assert_eq!(value, json!({"item": 1}));
    assert_eq!(world.called(), ["reserve", "ask", "ask"]);
    let error = one.call(again()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(world.called().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_time_is_continued_by_the_same_call() {
    let (directory, world) = (tempfile::tempdir().unwrap(), World::default());
    let (plane, _) = gateway(&directory, &world);
    world.script("look", [ScriptStep::Hang(true), ScriptStep::Echo]);
    let hurried = request("deliver", &json!({"item": 1})).deadline(Duration::from_millis(300));
    plane.call(hurried).await.unwrap_err();
    assert_eq!(world.called(), ["reserve", "look"]);
    call(&plane, "deliver").await.unwrap().into_reply().unwrap();
    assert_eq!(world.called(), ["reserve", "look", "look", "ship"]);
}
