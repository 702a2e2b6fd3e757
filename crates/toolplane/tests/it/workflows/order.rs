//! Order of steps: dependencies, branches, loops, limits.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use tool_testkit::ScriptStep;
use toolplane::core::ErrorKind;

use super::{World, failure, reply, request, statuses, summary, value};

fn after(milliseconds: u64) -> ScriptStep {
    ScriptStep::After(Duration::from_millis(milliseconds), json!({"took": milliseconds}))
}

#[tokio::test(start_paused = true)]
async fn steps_begin_once_what_they_need_has_ended() {
    let world = World::default();
    world
        .script("a", [after(100)])
        .script("b", [after(50)])
        .script("c", [after(10)])
        .script("d", [after(10)]);
    let plane = world.plane(
        &["a", "b", "c", "d"],
        "
workflows:
  dag:
    description: A.
    steps:
      - {tool: d, input: {from: [$results.a, $results.c]}}
      - {tool: c, depends_on: [b]}
      - {tool: b}
      - {tool: a}
",
    );
    let start = Instant::now();
    value(&plane, "dag", &json!({})).await;
    assert_eq!(start.elapsed(), Duration::from_millis(110));
    assert_eq!(world.called(), ["b", "a", "c", "d"]);
    assert_eq!(world.most_running(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_window_bounds_concurrent_calls() {
    let world = World::default();
    world.script("slow", [after(10)]);
    let tools = ["slow"; 7].join(", ");
    let plane = world.plane(
        &["slow"],
        &format!(
            "
workflows:
  five: {{description: A., steps: [{{name: all, tools: [{tools}]}}]}}
  two: {{description: A., window: 2, steps: [{{name: all, tools: [{tools}]}}]}}
"
        ),
    );
    value(&plane, "five", &json!({})).await;
    assert_eq!(world.most_running(), 5);
    let world_of_two = World::default();
    world_of_two.script("slow", [after(10)]);
    let plane = world_of_two.plane(
        &["slow"],
        &format!(
            "workflows: {{two: {{description: A., window: 2, steps: [{{name: all, tools: [{tools}]}}]}}}}"
        ),
    );
    let result = value(&plane, "two", &json!({})).await;
    assert_eq!(world_of_two.most_running(), 2);
    assert_eq!(result.as_object().unwrap().len(), 7);
}

#[tokio::test(start_paused = true)]
async fn one_branch_is_taken() {
    let world = World::default();
    let plane = world.plane(
        &["yes", "no", "echo"],
        "
workflows:
  choose:
    description: A.
    steps:
      - {name: choice, if: input.n > 1, then: [{tool: yes, input: {n: $input.n}}], else: no}
  maybe:
    description: A.
    steps:
      - {name: choice, if: input.n > 1, then: yes}
      - tool: echo
        input: {got: {$cel: 'has(results.choice) ? results.choice : null'}}
  seed:
    description: The spellings of the seed.
    steps:
      - {id: choice, type: conditional, condition: input.n > 1, trueBranch: yes, falseBranch: no}
",
    );
    assert_eq!(value(&plane, "choose", &json!({"n": 2})).await, json!({"n": 2}));
    assert_eq!(
        value(&plane, "choose", &json!({"n": 1, "m": 0})).await,
        json!({"n": 1, "m": 0})
    );
    assert_eq!(world.called(), ["yes", "no"]);
    assert_eq!(value(&plane, "seed", &json!({"n": 2})).await, json!({"n": 2}));
    assert_eq!(
        value(&plane, "maybe", &json!({"n": 3})).await,
        json!({"got": {"n": 3}})
    );
    let skipped = reply(&plane, "maybe", &json!({"n": 1})).await;
    assert_eq!(skipped.raw().as_str(), r#"{"got":null}"#);
    let status = |step: &str, status: &str| (step.to_owned(), status.to_owned());
    assert_eq!(
        statuses(&summary(&skipped)),
        [status("choice", "skipped"), status("echo", "success")]
    );
    let error = failure(&plane, "choose", &json!({})).await;
    assert_eq!(error.kind(), ErrorKind::InvalidArguments);
    assert_eq!(error.message(), "step `choice`: `input.n > 1`: No such key: n");
}

#[tokio::test(start_paused = true)]
async fn a_loop_works_on_each_item() {
    let world = World::default();
    let plane = world.plane(
        &["double", "echo"],
        "
workflows:
  each:
    description: A.
    steps:
      - name: pages
        for_each: $input.urls
        as: url
        max_items: 3
        do:
          - {tool: double, input: {url: $url, at: $index}}
          - {tool: echo, input: {page: $results.double.url, of: $input.urls}}
",
    );
    assert_eq!(
        value(&plane, "each", &json!({"urls": ["a", "b"]})).await,
        json!([{"page": "a", "of": ["a", "b"]}, {"page": "b", "of": ["a", "b"]}])
    );
    assert_eq!(value(&plane, "each", &json!({"urls": []})).await, json!([]));
    for (urls, message) in [
        (
            json!([1, 2, 3, 4]),
            "step `pages`: there are 4 items; `max_items` allows 3",
        ),
        (
            json!({}),
            "step `pages`: `for_each` needs a list, and the value is a map",
        ),
    ] {
        let error = failure(&plane, "each", &json!({"urls": urls})).await;
        assert_eq!(error.kind(), ErrorKind::InvalidArguments);
        assert_eq!(error.message(), message);
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_the_call_is_that_of_all_steps() {
    let world = World::default();
    world.script("slow", [after(100)]);
    let plane = world.plane(
        &["slow"],
        "
workflows:
  three:
    description: A.
    steps: [{name: a, tool: slow}, {name: b, tool: slow, depends_on: [a]}, {name: c, tool: slow, depends_on: [b]}]
  short:
    description: A.
    steps: [{name: a, tool: slow, timeout: 50ms}]
",
    );
    let call = request("three", &json!({})).deadline(Duration::from_millis(250));
    let start = Instant::now();
    let error = plane.call(call).await.unwrap_err();
    assert_eq!(start.elapsed(), Duration::from_millis(250));
    // The tools may have had their effect.
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    assert_eq!(world.called().len(), 3);
    let error = failure(&plane, "short", &json!({})).await;
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    assert!(
        error
            .message()
            .starts_with("step `a`: no answer before the call's deadline"),
        "{error}"
    );
}
