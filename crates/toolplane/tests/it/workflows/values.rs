//! Values of steps: references, expressions, results.

use serde_json::json;
use tool_testkit::ScriptStep;
use toolplane::{
    RawJson,
    core::{ErrorKind, Reply},
};

use super::{World, failure, reply, statuses, summary, value};

/// The example of the text that workflows are built from, with the names of tools.
const RESEARCH: &str = "
workflows:
  research:
    description: Searches, extracts and summarizes.
    steps:
      - {name: search, tool: search_tool, inputMapping: {query: $input.topic}}
      - {name: extract, tool: extract_tool, inputMapping: {urls: $results.search.urls}}
      - {name: synthesize, tool: llm_tool, inputMapping: {documents: $results.extract.documents}}
";

#[tokio::test(start_paused = true)]
async fn the_seeds_workflow_runs() {
    let world = World::default();
    world
        .script("search_tool", [ScriptStep::Value(json!({"urls": ["a", "b"]}))])
        .script("extract_tool", [ScriptStep::Value(json!({"documents": [1, 2]}))])
        .script("llm_tool", [ScriptStep::Value(json!({"text": "a summary"}))]);
    let plane = world.plane(&["search_tool", "extract_tool", "llm_tool"], RESEARCH);
    let reply = reply(&plane, "research", &json!({"topic": "rust"})).await;
    assert_eq!(reply.raw().as_str(), r#"{"text":"a summary"}"#);
    assert_eq!(
        world.calls(),
        [
            ("search_tool".to_owned(), json!({"query": "rust"})),
            ("extract_tool".to_owned(), json!({"urls": ["a", "b"]})),
            ("llm_tool".to_owned(), json!({"documents": [1, 2]})),
        ]
    );
    let summary = summary(&reply);
    assert_eq!(summary["status"], "completed");
    let success = |step: &str| (step.to_owned(), "success".to_owned());
    assert_eq!(
        statuses(&summary),
        [success("search"), success("extract"), success("synthesize")]
    );
    assert_eq!(summary["steps"][0]["tool"], "search_tool");
    assert_eq!(summary["steps"][0]["attempts"], 1);
}

#[tokio::test(start_paused = true)]
async fn values_are_made_of_references_expressions_and_literals() {
    let world = World::default();
    let workflow = r#"
workflows:
  make:
    description: Makes values.
    steps:
      - tool: echo
        input:
          all: $input
          deep: [{item: "$input.list[1]", key: '$input["a key"]'}]
          sum: {$cel: "input.n + size(input.list)"}
          price: $$5
          raw: {$literal: {$cel: 1 + 1, b: $input}}
          number: 1
    output: {got: $results.echo, of: {$cel: "results.echo.sum * 2"}}
"#;
    let plane = world.plane(&["echo"], workflow);
    let input = json!({"n": 1, "list": ["x", "$input.n"], "a key": true});
    assert_eq!(
        value(&plane, "make", &input).await,
        json!({
            "got": {
                "all": input,
                "deep": [{"item": "$input.n", "key": true}],
                "sum": 3,
                "price": "$5",
                "raw": {"$cel": "1 + 1", "b": "$input"},
                "number": 1,
            },
            "of": 6,
        })
    );
}

#[tokio::test(start_paused = true)]
async fn numbers_keep_their_digits_on_the_way() {
    let world = World::default();
    let plane = world.plane(
        &["echo"],
        "workflows: {pass: {description: Passes., steps: [{tool: echo, input: {id: $input.id}}]}}",
    );
    let text = r#"{"id":123456789012345678901234567890}"#;
    let request = toolplane::CallRequest::new("pass").json(text).unwrap();
    let reply = plane.call(request).await.unwrap().into_reply().unwrap();
    assert_eq!(reply.raw().as_str(), text);
}

#[tokio::test(start_paused = true)]
async fn a_result_in_the_shape_of_mcp_is_used_by_its_content() {
    let world = World::default();
    let result =
        |text: &str| ScriptStep::Reply(Reply::result(RawJson::parse(text.to_owned()).unwrap(), false));
    let image = r#"{"content":[{"type":"image","data":"aa","mimeType":"image/png"}]}"#;
    world
        .script(
            "structured",
            [result(r#"{"content":[],"structuredContent":{"n":1}}"#)],
        )
        .script(
            "json",
            [result(r#"{"content":[{"type":"text","text":"{\"n\":2}"}]}"#)],
        )
        .script("text", [result(r#"{"content":[{"type":"text","text":"3"}]}"#)])
        .script("image", [result(image)]);
    let plane = world.plane(
        &["structured", "json", "text", "image", "echo"],
        "
workflows:
  read:
    description: Reads results.
    steps:
      - {tool: structured}
      - {tool: json}
      - {tool: text}
      - {tool: echo, input: {a: $results.structured.n, b: $results.json.n, c: $results.text}}
  draw: {description: Draws., steps: [{tool: image}]}
",
    );
    assert_eq!(
        value(&plane, "read", &json!({})).await,
        json!({"a": 1, "b": 2, "c": "3"})
    );
    // The reply of the last step is that of the workflow, images included.
    let drawn = reply(&plane, "draw", &json!({})).await;
    assert_eq!(drawn.raw().as_str(), image);
}

#[tokio::test(start_paused = true)]
async fn a_value_that_is_missing_is_told_with_the_reference() {
    let world = World::default();
    let plane = world.plane(
        &["echo"],
        "
workflows:
  input: {description: A., steps: [{tool: echo, input: {a: $input.b.c}}]}
  output: {description: A., steps: [{tool: echo}], output: $results.echo.a}
  text: {description: A., steps: [{tool: echo, input: $input.text}]}
",
    );
    for (workflow, input, message) in [
        (
            "input",
            json!({"b": {}}),
            "step `echo`: `$input.b.c` has no `c` there",
        ),
        (
            "output",
            json!({}),
            "the output cannot be made: `$results.echo.a` has no `a` there",
        ),
        (
            "text",
            json!({"text": "no map"}),
            "step `echo`: the arguments must be a JSON object",
        ),
    ] {
        let error = failure(&plane, workflow, &input).await;
        assert_eq!(error.kind(), ErrorKind::InvalidArguments);
        assert_eq!(
            error
                .message()
                .replace("step `output`: step `output`", "step `output`"),
            message
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_workflow_is_a_step_of_another() {
    let world = World::default();
    let plane = world.plane(
        &["echo"],
        "
workflows:
  inner: {description: A., steps: [{tool: echo, input: {n: {$cel: input.n + 1}}}]}
  outer: {description: A., steps: [{name: one, tool: inner}, {name: two, tool: inner, input: $results.one}]}
  endless: {description: A., steps: [{tool: again}]}
  again: {description: A., steps: [{tool: endless}]}
  many: {description: A., max_calls: 3, steps: [{name: all, tools: [inner, inner]}]}
",
    );
    assert_eq!(value(&plane, "outer", &json!({"n": 1})).await, json!({"n": 3}));
    let error = failure(&plane, "endless", &json!({})).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert_eq!(
        error.message(),
        "step `again`: step `endless`: `endless` would call itself"
    );
    // Two inner workflows and one step of them are three calls.
    let error = failure(&plane, "many", &json!({"n": 1})).await;
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.message().contains("more calls than `max_calls`"), "{error}");
}
