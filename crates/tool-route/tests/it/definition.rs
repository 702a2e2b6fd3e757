//! Settings of routes.

use serde_json::{Value, json};
use tool_route::{RouteDefinition, RouteExecutor};

#[track_caller]
fn problems(settings: &Value) -> Vec<(String, String)> {
    let problems = RouteDefinition::read(settings).expect_err("it is not usable");
    let problems = problems.into_iter();
    problems
        .map(|problem| (problem.pointer, problem.message))
        .collect()
}

#[test]
fn a_definition_is_read_strictly() {
    for (settings, at, message) in [
        (json!({}), "", "the route has no `capability`"),
        (json!([]), "", "expected a map, found a list"),
        (
            json!({"capability": ""}),
            "/capability",
            "the name of the capability is empty",
        ),
        (
            json!({"capability": "a", "priorty": "speed"}),
            "/priorty",
            "unknown setting `priorty`",
        ),
        (
            json!({"capability": "a", "priority": "fast"}),
            "/priority",
            "there is no priority `fast`",
        ),
        (
            json!({"capability": "a", "priority": ["speed", 1]}),
            "/priority/1",
            "expected `speed`, `cost` or `reliability`, found a number",
        ),
        (
            json!({"capability": "a", "constraints": {"max_cost": -1}}),
            "/constraints/max_cost",
            "expected a number that is not negative",
        ),
        (
            json!({"capability": "a", "constraints": {"max_latency": 3}}),
            "/constraints/max_latency",
            "expected a time such as `30s`, found a number",
        ),
        (
            json!({"capability": "a", "weights": {"fast_below": "2s"}}),
            "/weights/fast_below",
            "a tool would be fast and slow at once",
        ),
        (
            json!({"capability": "a", "max_attempts": 0}),
            "/max_attempts",
            "expected a whole number from 1 to 10",
        ),
        (
            json!({"capability": "a", "arguments": {"b": 1}}),
            "/arguments/b",
            "expected a map of arguments, found a number",
        ),
        (
            json!({"capability": "a", "arguments": {"b": {"q": "$results.x"}}}),
            "/arguments/b/q",
            "there is no `$results.x` in a route",
        ),
        (
            json!({"capability": "a", "arguments": {"b": {"q": {"$cel": "item + 1"}}}}),
            "/arguments/b/q/$cel",
            "there is no `item` in a route",
        ),
        (
            json!({"capability": "a", "tags": [1]}),
            "/tags",
            "expected a list of texts, found a number",
        ),
    ] {
        let found = problems(&settings);
        assert_eq!(found.len(), 1, "{settings}: {found:?}");
        assert_eq!(found[0].0, at, "{settings}");
        assert!(found[0].1.starts_with(message), "{settings}: {}", found[0].1);
    }
}

#[test]
fn the_spelling_of_the_algorithm_is_read() {
    let route = RouteDefinition::read(&json!({
        "capability": "search",
        "requirements": ["realtime-data"],
        "prioritizeSpeed": true,
        "minimizeCost": true,
    }));
    let route = route.expect("it is usable");
    assert!(route.priority.speed && route.priority.cost && !route.priority.reliability);
    assert_eq!(route.requirements, ["realtime-data"]);
}

#[test]
fn every_setting_of_the_schema_is_read_and_no_other() {
    let settings = json!({
        "capability": "search",
        "tags": ["production-ready"],
        "tools": ["exa__*"],
        "requirements": ["realtime-data"],
        "constraints": {"max_latency": "2s", "max_cost": 0.01, "min_sla": "99.5%"},
        "priority": ["speed", "reliability"],
        "weights": {
            "degraded": 1, "slow": 2, "fast": 3, "slow_above": "4s", "fast_below": "5ms", "cost": 6,
            "failures": 7, "requirement": 8,
        },
        "hysteresis": 9,
        "max_attempts": 10,
        "arguments": {"exa__search": {"q": "$input.query"}},
    });
    let route = RouteDefinition::read(&settings).expect("it is usable");
    assert_eq!(route.weights.requirement, 8.0);
    assert_eq!(route.named_candidates().collect::<Vec<_>>(), ["exa__search"]);
    let plane = crate::plane::Plane::new();
    let schema: Value = tool_core::Executor::config_schema(&plane.executor())
        .to()
        .expect("it is JSON");
    let keys = |value: &Value| {
        let mut keys: Vec<String> = value.as_object().expect("a map").keys().cloned().collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(&schema["properties"]), keys(&settings));
    assert_eq!(
        keys(&schema["$defs"]["Weights"]["properties"]),
        keys(&settings["weights"])
    );
    assert_eq!(
        keys(&schema["$defs"]["Constraints"]["properties"]),
        keys(&settings["constraints"])
    );
    assert_eq!(RouteExecutor::KIND, "route");
}
