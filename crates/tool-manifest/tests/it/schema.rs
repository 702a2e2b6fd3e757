//! The JSON Schema of a configuration says the same as the loader.

use raw_json::RawJson;
use serde_json::{Value, json};
use toolplane::manifest::{LoadOptions, Syntax, config_schema, load};

fn schema() -> Value {
    let mock = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"result": true, "error": {"$ref": "#/$defs/Error"}},
        "additionalProperties": false,
        "$defs": {"Error": {"type": "object", "properties": {"kind": {"type": "string"}}}},
    });
    let http = json!({"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]});
    let executors = [("mock", RawJson::from(&mock)), ("http", RawJson::from(&http))];
    config_schema(&executors, toolplane::sections()).to().unwrap()
}

#[test]
fn it_agrees_with_the_loader() {
    let validator = jsonschema::draft202012::new(&schema()).unwrap();
    let tool = |executor: Value| json!({"tools": {"a": {"description": "x", "executor": executor}}});
    for (document, fits) in [
        (json!({}), true),
        (
            tool(json!({"kind": "mock", "result": 1, "error": {"kind": "x"}})),
            true,
        ),
        (tool(json!({"kind": "http", "url": "http://x"})), true),
        (
            json!({"servers": {"a": {"command": "x", "args": ["y", 1], "env": {"A": 1}, "type": "stdio"}}}),
            true,
        ),
        (
            json!({"mcpServers": {"a": {"url": "http://x", "era": "modern"}}}),
            true,
        ),
        (
            json!({"defaults": {"call_timeout": "30s", "max_result_bytes": "1MiB"}, "gateway": {"listen": "[::1]:1"}}),
            true,
        ),
        (
            json!({"apiVersion": "toolplane.dev/v1", "kind": "McpServer", "metadata": {"name": "a"}, "spec": {"command": "x"}}),
            true,
        ),
        (
            json!({"apiVersion": "toolplane.dev/v1", "kind": "Policy", "metadata": {"name": "a"}, "spec": {"blocklist": ["x"]}}),
            true,
        ),
        (
            json!({"tools": {"a": {
                "description": "x", "executor": {"kind": "mock"}, "inputSchema": {}, "outputSchema": {},
                "estimatedLatency": "fast", "rateLimit": {"requests": 1, "period": "1s"}, "costPerCall": 1,
                "readOnly": true, "requiredPermissions": ["x"], "dataClassification": "public",
                "piiHandling": "none", "healthCheckEndpoint": "http://x",
            }}}),
            true,
        ),
        (
            json!({"tools": {"a": {"description": "x", "executor": {"kind": "mock"}, "estimated_latency": "slow"}}}),
            true,
        ),
        (
            json!({"servers": {"a": {"serverUrl": "http://x", "transport": "http", "includeTools": ["a"], "excludeTools": ["b"]}}}),
            true,
        ),
        (
            json!({"servers": {"a": {"httpUrl": "http://x", "disabledTools": ["b"]}}}),
            true,
        ),
        (
            json!({
                "defaults": {"retry": {}, "breaker": {"disabled": true}},
                "servers": {"a": {"command": "x", "retry": {"max_attempts": 5, "initial_delay": "1s", "max_delay": "1m"}}},
                "tools": {"a": {"description": "x", "executor": {"kind": "mock"}, "breaker": {
                    "max_failures": 3, "failure_share": "40%", "min_calls": 5, "window": "1m", "pause": "2s", "max_pause": "2m",
                }}},
            }),
            true,
        ),
        (
            json!({"tools": {"a": {"description": "x", "executor": {"kind": "mock"}, "idempotent": true, "hedge": {
                "after": "p95", "at_first": "300ms", "max": 2,
            }}}}),
            true,
        ),
        (json!({"defaults": {"retry": {"attempts": 3}}}), false),
        (json!({"defaults": {"hedge": {}}}), false),
        (json!({"toolz": {}}), false),
        (json!({"servers": {"a": {"comand": "x"}}}), false),
        (json!({"defaults": {"call_timeout": "soon"}}), false),
        (json!({"tools": {"a": {"description": "x"}}}), false),
        (tool(json!({"result": 1})), false),
        (
            json!({"apiVersion": "toolplane.dev/v2", "kind": "Tool", "metadata": {"name": "a"}, "spec": {}}),
            false,
        ),
        (
            json!({"apiVersion": "toolplane.dev/v1", "kind": "McpServer", "metadata": {"name": "a"}, "spec": {"tools": 1}}),
            false,
        ),
    ] {
        assert_eq!(validator.is_valid(&document), fits, "{document}");
        let loads = load(&LoadOptions::new().text("a.json", Syntax::Json, document.to_string())).is_ok();
        assert_eq!(loads, fits, "{document}");
    }
    // Only the schema knows the settings of executors.
    assert!(!validator.is_valid(&tool(json!({"kind": "mock", "reslt": 1}))));
    assert!(!validator.is_valid(&tool(json!({"kind": "http"}))));
    assert!(!validator.is_valid(&tool(json!({"kind": "teleport"}))));
    assert!(!validator.is_valid(&tool(json!({"kind": "mock", "error": {"kind": 1}}))));
}

#[test]
fn every_key_is_described() {
    fn walk(value: &Value, path: &str, bare: &mut Vec<String>) {
        let Some(properties) = value.get("properties").and_then(Value::as_object) else {
            return;
        };
        for (key, property) in properties {
            if property.get("description").is_none() && property.get("const").is_none() {
                bare.push(format!("{path}.{key}"));
            }
        }
    }
    let schema = schema();
    let mut bare = Vec::new();
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        let is_ours = !name.starts_with("executor.")
            && !name.contains("mock.")
            && name != "Parameters"
            && name != "Executor";
        if is_ours {
            walk(definition, name, &mut bare);
        }
    }
    assert_eq!(bare, Vec::<String>::new());
}
