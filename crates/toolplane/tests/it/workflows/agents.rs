//! Workflows that agents make: with tools that their author may call.

use std::sync::Arc;

use serde_json::{Value, json};
use tool_testkit::{ScriptStep, executor};
use toolplane::{
    CallRequest, Toolplane,
    core::{Caller, ErrorKind, Outcome, ToolError},
    manifest::{LoadOptions, Syntax, load},
    registry::MemoryStore,
};

use super::World;

const CONFIGURATION: &str = "
authoring: {enabled: true}
tools:
  greet: {description: Greets., executor: {kind: world}}
  fire: {description: Fires somebody., required_permissions: [staff], executor: {kind: world}}
workflows:
  exact: {description: Calls one version., steps: [{tool: welcome@1.0.0}]}
";

fn plane(world: &World) -> Toolplane {
    let loaded = load(&LoadOptions::new().text("test", Syntax::Yaml, CONFIGURATION)).expect("usable");
    Toolplane::builder()
        .loaded(&loaded)
        .store(Arc::new(MemoryStore::new()))
        .executor(executor("world", world.clone()))
        .build()
        .expect("it can be built")
}

fn caller(permissions: &[&str]) -> Caller {
    let mut caller = Caller::new("ada");
    let permissions = permissions.iter().map(|name| Arc::from(*name));
    caller.permissions.extend(permissions);
    caller
}

async fn call(plane: &Toolplane, by: &Caller, tool: &str, arguments: &Value) -> Result<Outcome, ToolError> {
    let request = CallRequest::new(tool).caller(Arc::new(by.clone()));
    plane.call(request.args(arguments).expect("an object")).await
}

/// A draft of a workflow with these steps.
fn draft(steps: &Value) -> Value {
    json!({"manifest": {
        "apiVersion": "toolplane.dev/v1", "kind": "Workflow", "metadata": {"name": "welcome"},
        "spec": {"description": "Greets somebody twice.", "steps": steps},
    }})
}

#[tokio::test]
async fn a_workflow_is_made_published_and_called() {
    let world = World::default();
    world.script(
        "greet",
        [ScriptStep::Fail(ToolError::new(ErrorKind::Unavailable, "busy"))],
    );
    let plane = plane(&world);
    let ada = caller(&["tools.create", "tools.publish"]);
    let again =
        json!([{"tool": "greet", "retry": {"max_attempts": 5, "initial_delay": "1ms"}, "optional": true}]);
    call(&plane, &ada, "tool_create", &draft(&again))
        .await
        .expect("a draft");
    call(&plane, &ada, "tool_publish", &json!({"name": "welcome"}))
        .await
        .expect("a version");
    let mut changes = plane.changes();
    while plane.tool("welcome", &ada).await.is_err() {
        changes.changed().await.expect("the toolplane lives");
    }
    call(&plane, &ada, "welcome", &json!({}))
        .await
        .expect("it completes");
    call(&plane, &ada, "exact", &json!({}))
        .await
        .expect("the version is there");
    // That a call may be repeated is a declaration, which counts once an operator accepted it.
    assert_eq!(world.called(), ["greet", "greet"]);
}

#[tokio::test]
async fn a_workflow_calls_nothing_that_its_author_may_not_call() {
    let world = World::default();
    let plane = plane(&world);
    let steps = json!([{"tool": "greet"}, {"tool": "fire"}, {"tool": "graet"}]);
    let refused = call(&plane, &caller(&["tools.create"]), "tool_create", &draft(&steps)).await;
    let reply = refused.expect("an answer").into_reply().expect("a reply");
    assert!(reply.is_error);
    let text = reply.text();
    for part in [
        "there is no tool `fire`",
        "there is no tool `graet`",
        "did you mean `greet`?",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let created = call(
        &plane,
        &caller(&["tools.create", "staff"]),
        "tool_create",
        &draft(&json!(["fire"])),
    )
    .await;
    assert!(
        !created
            .expect("an answer")
            .into_reply()
            .expect("a reply")
            .is_error
    );
}
