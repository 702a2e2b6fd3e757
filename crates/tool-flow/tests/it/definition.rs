use proptest::prelude::*;
use serde_json::{Value, json};
use tool_flow::{GraphFormat, workflow_graph};

/// Returns place and message of each problem.
fn problems(settings: &Value) -> Vec<(String, String)> {
    let problems = workflow_graph(settings, GraphFormat::Dot)
        .err()
        .unwrap_or_default();
    problems
        .into_iter()
        .map(|problem| (problem.pointer, problem.message))
        .collect()
}

#[track_caller]
fn assert_refused(settings: &Value, expected: &[(&str, &str)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(at, message)| ((*at).to_owned(), (*message).to_owned()))
        .collect();
    assert_eq!(problems(settings), expected, "{settings}");
}

#[test]
fn a_definition_is_read_strictly() {
    for (settings, at, message) in [
        (json!([]), "", "expected a map, found a list"),
        (json!({}), "", "the workflow has no `steps`"),
        (json!({"steps": []}), "/steps", "there are no steps"),
        (
            json!({"steps": [1]}),
            "/steps/0",
            "expected a map, found a number",
        ),
        (
            json!({"steps": [{"name": "a"}]}),
            "/steps/0",
            "the step does nothing",
        ),
        (
            json!({"steps": [{"tool": "a", "if": "true"}]}),
            "/steps/0",
            "the step has both `tool` and `if`",
        ),
        (
            json!({"steps": [{"tool": 1}]}),
            "/steps/0/tool",
            "expected a text, found a number",
        ),
        (
            json!({"steps": [{"tool": "a", "input": 1}]}),
            "/steps/0/input",
            "expected a map, found a number",
        ),
        (
            json!({"steps": [{"tool": "a", "inputs": {}}]}),
            "/steps/0/inputs",
            "unknown setting `inputs`",
        ),
        (
            json!({"steps": [{"tool": "a", "optional": 1}]}),
            "/steps/0/optional",
            "expected `true` or `false`, found a number",
        ),
        (
            json!({"steps": [{"tool": "a", "timeout": "0s"}]}),
            "/steps/0/timeout",
            "must be longer than 0",
        ),
        (
            json!({"steps": [{"tool": "a", "timeout": "soon"}]}),
            "/steps/0/timeout",
            "`soon` is no time with its unit",
        ),
        (
            json!({"steps": [{"tool": "a", "retry": {"max_attempts": 0}}]}),
            "/steps/0/retry/max_attempts",
            "expected a whole number from 1 to 100",
        ),
        (
            json!({"steps": [{"tool": "a", "name": "a b"}]}),
            "/steps/0/name",
            "`a b` is no name of a step",
        ),
        (
            json!({"steps": [{"tool": "a", "fallback": {}}]}),
            "/steps/0/fallback",
            "the name of a `tool` is missing",
        ),
        (
            json!({"steps": [{"tool": "a", "type": "parallel"}]}),
            "/steps/0/type",
            "the step has the `type` `parallel`, and its keys are those of `call`",
        ),
        (
            json!({"steps": [{"if": "true"}]}),
            "/steps/0",
            "the step has `if` and no `then`",
        ),
        (
            json!({"steps": [{"for_each": []}]}),
            "/steps/0",
            "the step has `for_each` and no `do`",
        ),
        (
            json!({"steps": [{"for_each": [], "do": "a", "as": "input"}]}),
            "/steps/0/as",
            "`input` is no name of a variable",
        ),
        (
            json!({"steps": [{"for_each": [], "do": "a", "retry": {}}]}),
            "/steps/0/retry",
            "unknown setting `retry`",
        ),
        (
            json!({"steps": ["a"], "window": 101}),
            "/window",
            "expected a whole number from 1 to 100",
        ),
        (
            json!({"steps": ["a"], "on_error": "ignore"}),
            "/on_error",
            "unknown value `ignore`",
        ),
        (
            json!({"steps": [{"tool": "a", "input": {"b": "${TOKEN}"}}]}),
            "/steps/0/input/b",
            "no secrets and no environment variables are known here",
        ),
        (
            json!({"steps": [{"tool": "a", "input": {"b": ["$input."]}}]}),
            "/steps/0/input/b/0",
            "this is no reference: a name is missing at its end",
        ),
        (
            json!({"steps": [{"tool": "a", "input": {"b": {"$cel": 1}}}]}),
            "/steps/0/input/b/$cel",
            "an expression is a text",
        ),
    ] {
        assert_refused(&settings, &[(at, message)]);
    }
}

#[test]
fn names_are_unique_and_are_made_if_they_are_missing() {
    let twice = json!({"steps": [{"tool": "a", "name": "x"}, {"parallel": [{"tool": "b", "name": "x"}]}]});
    assert_refused(
        &twice,
        &[(
            "/steps/1/parallel/0/name",
            "another step, at `/steps/0/name`, has the name `x`",
        )],
    );
    let made = json!({"steps": ["a", "a", {"tool": "srv.b"}], "output": {"$cel": "results.a_2 == results['srv_b']"}});
    assert_eq!(problems(&made), []);
}

#[test]
fn references_lead_to_steps_that_have_ended() {
    let call = |name: &str, input: &str| json!({"tool": name, "input": {"of": input}});
    for (steps, at, message) in [
        (
            json!([call("a", "$results.b")]),
            "/steps/0/input/of",
            "there is no step `b` here",
        ),
        (
            json!([call("a", "$results.a")]),
            "/steps/0/input/of",
            "the step `a` uses its own result",
        ),
        (
            json!([call("a", "$other.b")]),
            "/steps/0/input/of",
            "there is no value `other` here",
        ),
        (
            json!([{"name": "all", "parallel": ["b"]}, call("a", "$results.b")]),
            "/steps/1/input/of",
            "the step `b` is inside `all`, and only the result of `all` is there",
        ),
        (
            json!([{"name": "all", "parallel": [call("a", "$results.all")]}]),
            "/steps/0/parallel/0/input/of",
            "the step is inside `all`, which has no result before this one",
        ),
        (
            json!([{"tool": "a", "optional": true}, call("b", "$results.a")]),
            "/steps/1/input/of",
            "the result of `a` is used, and it is optional, so that it may have none",
        ),
        (
            json!([{"name": "c", "if": "input.x", "then": "a"}, call("b", "$results.c.d")]),
            "/steps/1/input/of",
            "the result of `c` is used, and it has no `else`, so that it may have none",
        ),
        (
            json!([{"tool": "a", "depends_on": ["z"]}]),
            "/steps/0/depends_on/0",
            "there is no step `z` here",
        ),
        (
            json!([{"tool": "a", "depends_on": ["a"]}]),
            "/steps/0/depends_on/0",
            "the step `a` depends on itself",
        ),
    ] {
        assert_refused(&json!({ "steps": steps }), &[(at, message)]);
    }
    let output = json!({"steps": [{"tool": "a", "optional": true}], "output": "$results.a"});
    assert_refused(
        &output,
        &[(
            "/output",
            "the result of `a` is used, and it is optional, so that it may have none",
        )],
    );
}

#[test]
fn steps_do_not_wait_for_each_other() {
    // Threat S65: a cycle, also one through a step inside of another.
    let direct = json!({"steps": [
        {"tool": "a", "input": {"of": "$results.c"}}, {"tool": "b", "depends_on": ["a"]}, {"tool": "c", "depends_on": ["b"]},
    ]});
    assert_refused(
        &direct,
        &[("/steps/0", "the steps `a`, `c`, `b` wait for each other")],
    );
    let inside = json!({"steps": [
        {"name": "all", "parallel": [{"tool": "x", "input": {"of": "$results.b"}}]},
        {"tool": "b", "input": {"of": "$results.all"}},
    ]});
    assert_refused(
        &inside,
        &[("/steps/0", "the steps `all`, `b` wait for each other")],
    );
}

#[test]
fn sizes_are_bounded() {
    let many: Vec<_> = (0..201).map(|_| json!("a")).collect();
    assert_refused(
        &json!({ "steps": many }),
        &[("/steps/200", "there are more than 200 steps")],
    );
    let mut deep = json!("a");
    for _ in 0..9 {
        deep = json!([{"parallel": deep}]);
    }
    let problems = problems(&json!({ "steps": deep }));
    assert!(
        problems[0].1.contains("nested deeper than 8 levels"),
        "{problems:?}"
    );
}

/// JSON with keys and texts that workflows have.
fn settings() -> impl Strategy<Value = Value> {
    let words = [
        "steps",
        "tool",
        "input",
        "parallel",
        "if",
        "then",
        "else",
        "for_each",
        "do",
        "as",
        "output",
        "name",
        "depends_on",
        "$input",
        "$results.a",
        "$cel",
        "$literal",
        "results.a[0] + 1",
        "a",
        "${X}",
        "$",
        "$$",
    ];
    let word = prop::sample::select(words.to_vec());
    let leaf = prop_oneof![
        word.clone().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(word.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_settings_are_read_or_refused_at_a_place_that_is_there(steps in settings(), output in settings()) {
        let settings = json!({"steps": steps, "output": output});
        for (at, _) in problems(&settings) {
            prop_assert!(settings.pointer(&at).is_some(), "{at} in {settings}");
        }
    }
}
