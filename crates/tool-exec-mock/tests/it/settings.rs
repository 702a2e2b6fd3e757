use serde_json::{Value, json};
use tool_core::Executor;

use crate::{executor, prepare};

/// Returns the problems of these settings, each as `pointer: message`.
fn problems(config: Value) -> Vec<String> {
    let problems = prepare(config).err().unwrap_or_default();
    problems
        .iter()
        .map(|problem| format!("{}: {}", problem.pointer, problem.message))
        .collect()
}

#[test]
fn every_problem_is_named_with_its_place() {
    let cases = [
        (json!({"result": null}), vec![]),
        (json!({"result": {"a": 1}, "latency_ms": 5}), vec![]),
        (json!({}), vec![": a mock needs an answer"]),
        (json!(5), vec![": must be a mapping"]),
        (
            json!({"reslt": 1, "result": 1}),
            vec!["/reslt: unknown setting `reslt`"],
        ),
        (
            json!({"a/b": 1, "result": 1}),
            vec!["/a~1b: unknown setting `a/b`"],
        ),
        (
            json!({"result": 1, "template": "1"}),
            vec!["/template: `template` and `result` exclude each other"],
        ),
        (
            json!({"template": 5, "latency_ms": -1, "error": {"kind": "nope", "extra": 1}}),
            vec![
                "/template: must be a text",
                "/latency_ms: must be a whole number of milliseconds",
                "/error/extra: unknown setting `extra`",
                "/error/kind: unknown kind of error `nope`",
                "/error: `error` and `template` exclude each other",
            ],
        ),
        (json!({"error": {}}), vec!["/error: `kind` is missing"]),
        (json!({"error": "timeout"}), vec!["/error: must be a mapping"]),
        (json!({"error": {"kind": 5}}), vec!["/error/kind: must be a text"]),
        (
            json!({"template": "{\n {{ city }\n"}),
            vec!["/template: `{{` without `}}` (line 2)"],
        ),
    ];
    for (config, expected) in cases {
        assert_eq!(problems(config.clone()), expected, "{config}");
    }
}

#[test]
fn an_unknown_kind_is_answered_with_the_known_ones() {
    let problems = prepare(json!({"error": {"kind": "nope"}})).err().unwrap();
    assert!(problems[0].hint.as_ref().unwrap().contains("`rate_limited`"));
}

#[test]
fn the_schema_names_the_settings() {
    let schema: Value = executor().config_schema().to().unwrap();
    let properties = schema["properties"].as_object().unwrap();
    let mut names: Vec<&str> = properties.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["error", "latency_ms", "result", "result_file", "template"]
    );
    assert_eq!(schema["additionalProperties"], false);
}
