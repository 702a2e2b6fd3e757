use serde_json::{Value, json};
use tool_flow::{RawJson, StepTool, check_workflow};

/// A tool that takes a text and a number and returns a list of texts, one that takes anything, and one that is not known yet.
fn tools(name: &str) -> StepTool {
    let schema = |schema: Value| RawJson::from(schema);
    match name {
        "search" => StepTool::known(
            schema(json!({
                "type": "object",
                "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
                "required": ["query"],
                "additionalProperties": false,
            })),
            Some(schema(json!({
                "type": "object",
                "properties": {"urls": {"type": "array", "items": {"type": "string"}}},
            }))),
        ),
        "any" => StepTool::known(RawJson::object(), None),
        "later" => StepTool::Unknown,
        _ => StepTool::Missing(vec!["search".to_owned(), "any".to_owned()]),
    }
}

/// Returns place and message of each problem. Warnings begin with `warning: `.
fn problems(settings: &Value) -> Vec<String> {
    let input =
        json!({"type": "object", "properties": {"topic": {"type": "string"}, "n": {"type": "integer"}}});
    let found = check_workflow(settings, &RawJson::from(input), &tools);
    let shown = found.into_iter().map(|found| {
        let severity = if found.is_warning { "warning: " } else { "" };
        format!("{severity}{}: {}", found.problem.pointer, found.problem.message)
    });
    shown.collect()
}

#[test]
fn what_fits_has_no_problems() {
    let settings = json!({"steps": [
        {"tool": "search", "input": {"query": "$input.topic", "limit": "$input.n"}},
        {"name": "each", "for_each": "$results.search.urls", "do": {"name": "one", "tool": "search", "input": {"query": "$item", "limit": "$index"}}},
        {"tool": "later", "input": {"a": "$results.each[0].b"}},
        {"tool": "any", "input": {"$cel": "{'a': input.n}"}},
    ], "output": "$results.search.urls[0]"});
    assert_eq!(problems(&settings), Vec::<String>::new());
}

#[test]
fn what_does_not_fit_is_told_with_its_place() {
    for (step, expected) in [
        (
            json!({"tool": "serach"}),
            "/steps/0/tool: there is no tool `serach`",
        ),
        (
            json!({"tool": "any", "fallback": "nothing"}),
            "/steps/0/fallback: there is no tool `nothing`",
        ),
        (
            json!({"tool": "search", "input": {}}),
            "/steps/0/input: `search` needs the argument `query`",
        ),
        (
            json!({"tool": "search", "input": {"limit": "$input.n"}}),
            "/steps/0/input: `search` needs the argument `query`",
        ),
        (
            json!({"tool": "search", "input": {"query": "a", "max": 1}}),
            "/steps/0/input/max: `search` has no parameter `max`",
        ),
        (
            json!({"tool": "search", "input": {"query": 1}}),
            "/steps/0/input/query: `search` takes string as `query`, and this is integer",
        ),
        (
            json!({"tool": "search", "input": {"query": "$input.n"}}),
            "/steps/0/input/query: `search` takes string as `query`, and this is integer",
        ),
        (
            json!({"tool": "search", "input": {"query": ["$input.topic"]}}),
            "/steps/0/input/query: `search` takes string as `query`, and this is array",
        ),
        (
            json!({"tool": "any", "input": {"a": "$input.topic.b"}}),
            "/steps/0/input/a: by the input schema of the workflow, there is no `$input.topic.b`",
        ),
        (
            json!({"tool": "any", "input": {"a": "$input.tpoic"}}),
            "warning: /steps/0/input/a: the input schema of the workflow does not list `$input.tpoic`",
        ),
        (
            json!({"name": "each", "for_each": "$input.topic", "do": "any"}),
            "/steps/0/for_each: `for_each` needs a list, and this is string",
        ),
        (
            json!("search"),
            "warning: /steps/0: `search` needs the argument `query`, and the input schema of the workflow does not list it",
        ),
    ] {
        assert_eq!(problems(&json!({ "steps": [step] })), [expected]);
    }
}

#[test]
fn results_of_steps_are_typed_by_their_tools() {
    let settings = json!({"steps": [
        {"tool": "search", "input": {"query": "a"}},
        {"name": "next", "tool": "search", "input": {"query": "$results.search.urls"}},
        {"name": "each", "for_each": "$results.search.urls", "as": "url", "do": {"name": "one", "tool": "search", "input": {"query": "$url.host"}}},
    ], "output": "$results.search.url"});
    assert_eq!(
        problems(&settings),
        [
            "/steps/1/input/query: `search` takes string as `query`, and this is array",
            "/steps/2/do/input/query: by the schema of `url`, there is no `$url.host`",
            "warning: /output: the output schema of `search` does not list `$results.search.url`",
        ]
    );
    // The result of a fallback has another schema.
    let fallback = json!({"steps": [
        {"tool": "search", "input": {"query": "a"}, "fallback": "later"},
        {"name": "next", "tool": "search", "input": {"query": "$results.search.urls"}},
    ]});
    assert_eq!(problems(&fallback), Vec::<String>::new());
}
