//! `toolplane endpoint`: a toolplane as a command endpoint.

use std::fs;

use serde_json::{Value, json};

use super::names;
use crate::{
    binary::{BINARY, Place, eventually},
    serve::Served,
    versions::{Era, ask},
};

/// Runs `toolplane endpoint` with requests, and returns its answers.
#[track_caller]
fn answers(place: &Place, options: &[&str], requests: &str) -> Vec<Value> {
    let run = place.run_with(&[options, &["endpoint"]].concat(), requests);
    assert_eq!(run.code, 0, "{run:?}");
    let lines = run.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {run:?}")))
        .collect()
}

#[track_caller]
fn answer(place: &Place, request: impl Into<Value>) -> Value {
    let mut answers = answers(place, &[], &request.into().to_string());
    assert_eq!(answers.len(), 1, "{answers:?}");
    answers.remove(0)
}

const INNER: &str = r#"
tools:
  greet:
    description: Greets somebody.
    input_schema: {type: object, properties: {name: {type: string}, loud: {type: boolean}}, required: [name]}
    output_schema: {type: object, properties: {greeting: {type: string}}}
    read_only: true
    executor: {kind: mock, template: '{"greeting": "Hello, {{ name }}!"}'}
  count:
    description: Returns a number.
    output_schema: {type: integer}
    executor: {kind: mock, result: 7}
  hidden:
    description: Nobody may call it.
    executor: {kind: mock, result: 1}
  fails:
    description: Fails.
    executor: {kind: bash, code: 'echo broken >&2; exit 3', sandbox: none}
policy: {blocklist: [hidden]}
"#;

fn request(tool: &str, arguments: Value) -> Value {
    let mut request = json!({"action": "call_tool", "tool": tool});
    request["arguments"] = arguments;
    request
}

#[test]
fn all_tools_are_an_endpoint() {
    let place = Place::with(INNER);
    let listed = answer(&place, json!({"action": "list_tools"}));
    assert_eq!(names(&listed), ["count", "fails", "greet"]);
    let expected = json!({
        "name": "greet",
        "description": "Greets somebody.",
        "command": "toolplane call greet name=STRING [loud=BOOLEAN]",
        "origin": "local",
        "safety": "read-only",
        "input_schema": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "loud": {"type": "boolean"}},
            "required": ["name"]
        },
        "result_schema": {"type": "object", "properties": {"greeting": {"type": "string"}}},
    });
    assert_eq!(listed["tools"][2], expected);
    let described = answer(&place, json!({"action": "describe_tool", "tool": "greet"}));
    assert_eq!(described, json!({"type": "result", "tool": expected}));
    let called = answer(&place, request("greet", json!({"name": "us"})));
    let result = json!({"type": "result", "tool": "greet", "result": {"greeting": "Hello, us!"}});
    assert_eq!(called, result);
    // A result that is no object is the member `value` of one, as its schema says.
    assert_eq!(
        answer(&place, request("count", json!({})))["result"],
        json!({"value": 7})
    );
    assert_eq!(
        listed["tools"][0]["result_schema"]["properties"],
        json!({"value": {"type": "integer"}})
    );
}

#[test]
fn errors_are_answers() {
    let place = Place::with(INNER);
    for (request, category, kind, said) in [
        (
            json!("list_tools"),
            "usage",
            "invalid_arguments",
            "no JSON object",
        ),
        (
            json!({"action": "list"}),
            "usage",
            "invalid_arguments",
            "unknown `action` `list`",
        ),
        (
            json!({"action": "call_tool"}),
            "usage",
            "invalid_arguments",
            "no text `tool`",
        ),
        (
            json!({"action": "call_tool", "tool": "greet", "arguments": []}),
            "usage",
            "invalid_arguments",
            "no JSON object",
        ),
        (
            request("greet", json!({"name": 7})),
            "usage",
            "invalid_arguments",
            "name",
        ),
        (request("none", json!({})), "usage", "not_found", "none"),
        (
            json!({"action": "describe_tool", "tool": "none"}),
            "usage",
            "not_found",
            "none",
        ),
        (request("hidden", json!({})), "usage", "denied", "hidden"),
        (
            request("fails", json!({})),
            "pipeline",
            "upstream_error",
            "broken",
        ),
    ] {
        let answer = answer(&place, request.clone());
        let error = &answer["error"];
        assert_eq!(
            (&answer["type"], &error["name"]),
            (&json!("error"), &json!("toolplane")),
            "{answer}"
        );
        assert_eq!(
            (&error["category"], &error["kind"]),
            (&json!(category), &json!(kind)),
            "{request}: {answer}"
        );
        assert!(
            error["message"].as_str().unwrap().contains(said),
            "{request}: {answer}"
        );
    }
    let broken = Place::with("tools: {greet: {descripton: x}}\n");
    let run = broken.run_with(&["endpoint"], r#"{"action": "list_tools"}"#);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(run.json()["error"]["category"], "fatal", "{run:?}");
    assert!(run.stderr.contains("did you mean `description`?"), "{run:?}");
}

#[test]
fn each_request_of_a_stream_has_one_answer() {
    let place = Place::with(INNER);
    let greet = |name: &str| request("greet", json!({"name": name})).to_string();
    let input = format!("{}{}\nnonsense\n\n{}", greet("a"), greet("b"), greet("c"));
    let answers = answers(&place, &[], &input);
    let greetings: Vec<_> = answers
        .iter()
        .map(|answer| &answer["result"]["greeting"])
        .collect();
    assert_eq!(
        greetings,
        [
            &json!("Hello, a!"),
            &json!("Hello, b!"),
            &Value::Null,
            &json!("Hello, c!")
        ]
    );
    assert!(
        answers[2]["error"]["message"]
            .as_str()
            .unwrap()
            .contains("no JSON"),
        "{answers:?}"
    );
    let none = self::answers(&place, &[], "");
    assert!(
        none[0]["error"]["message"]
            .as_str()
            .unwrap()
            .contains("no request"),
        "{none:?}"
    );
}

#[test]
fn tools_of_servers_are_tools_of_the_endpoint() {
    let place = Place::with(&format!(
        "servers: {{inner: {{command: {BINARY}, args: [-c, inner.yaml, serve, --stdio]}}}}\n"
    ));
    place.write("inner.yaml", INNER);
    let described = answer(&place, json!({"action": "describe_tool", "tool": "inner__greet"}));
    let tool = &described["tool"];
    assert_eq!(
        (&tool["origin"], &tool["safety"]),
        (&json!("remote"), &json!("read-only (as its server says)")),
        "{described}"
    );
    let called = answer(&place, request("inner__greet", json!({"name": "us"})));
    assert_eq!(called["result"], json!({"greeting": "Hello, us!"}), "{called}");
    let failed = answer(&place, request("inner__fails", json!({})));
    assert_eq!(failed["error"]["category"], "pipeline", "{failed}");
}

#[test]
fn a_key_in_a_request_makes_a_call_happen_once() {
    let place = Place::empty();
    let file = place.path().join("runs");
    let code = format!("echo run >> {}; echo done", file.display());
    let executor = json!({"kind": "bash", "code": code, "sandbox": "none"});
    place.write(
        "toolplane.yaml",
        json!({"tools": {"pay": {"description": "Pays.", "executor": executor}}}).to_string(),
    );
    let mut keyed = request("pay", json!({}));
    keyed["_meta"] = json!({"dev.toolplane/idempotency-key": "invoice-7"});
    let answers = answers(&place, &[], &format!("{keyed}{keyed}"));
    assert_eq!(answers[0]["result"], json!({"value": "done"}));
    assert_eq!(answers[1]["result"], json!({"value": "done"}));
    assert!(
        answers[1]["_meta"]["dev.toolplane/replayed"].is_string(),
        "{answers:?}"
    );
    assert_eq!(fs::read_to_string(file).unwrap(), "run\n");
}

/// A call starts the server that it needs, and no other.
#[test]
fn a_call_starts_only_what_it_needs() {
    let list = r#"{"type": "result", "tools": [{"name": "t", "description": "d"}]}"#;
    let result = r#"{"type": "result", "tool": "t", "result": {}}"#;
    let script = |name: &str| {
        format!(
            "touch {name}.started; case $(cat) in *list_tools*) echo '{list}';; *) echo '{result}';; esac"
        )
    };
    let endpoints = json!({"endpoints": {
        "a": {"command": "sh", "args": ["-c", script("a")]},
        "b": {"command": "sh", "args": ["-c", script("b")]},
    }});
    let place = Place::with(&endpoints.to_string());
    let called = answer(&place, request("b__t", json!({})));
    assert_eq!(called["result"], json!({}), "{called}");
    assert!(place.path().join("b.started").exists() && !place.path().join("a.started").exists());
}

/// A place whose `toolplane.yaml` is that of the inner toolplane; `outer.yaml` is empty.
fn round_trip() -> Place {
    let place = Place::with(INNER).variable("MCP_ENDPOINT", &format!("{BINARY} endpoint"));
    place.write("outer.yaml", "defaults: {call_timeout: 60s}\n");
    place
}

/// Calls the inner toolplane through the outer one.
fn through(place: &Place, tool: &str, arguments: &[&str]) -> crate::binary::Run {
    let tool = format!("endpoint__{tool}");
    place.run(&[&["-c", "outer.yaml", "call", &tool, "-o", "json"], arguments].concat())
}

#[test]
fn a_toolplane_is_the_endpoint_of_another_one() {
    let place = round_trip();
    assert_eq!(
        through(&place, "greet", &["name=us"]).json(),
        json!({"greeting": "Hello, us!"})
    );
    assert_eq!(through(&place, "count", &[]).json(), json!({"value": 7}));
    let denied = through(&place, "hidden", &[]);
    assert_eq!(denied.code, 3, "what may not be called is not listed: {denied:?}");
    let failed = through(&place, "fails", &[]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.stderr.contains("broken"), "{failed:?}");
    let shown = place.run(&["-c", "outer.yaml", "tools", "show", "endpoint__greet"]);
    for said in ["toolplane call greet name=STRING", "read-only", "local"] {
        assert!(shown.data().contains(said), "{said}: {shown:?}");
    }
}

#[test]
fn a_running_gateway_answers() {
    let place = round_trip();
    let served = Served::start(&place);
    // Only the gateway knows that the tool is disabled.
    assert_eq!(
        place
            .run(&["tools", "disable", "count", "--reason", "maintenance"])
            .code,
        0
    );
    let disabled = answer(&place, request("count", json!({})));
    assert_eq!(disabled["type"], "error", "{disabled}");
    assert!(
        disabled["error"]["message"]
            .as_str()
            .unwrap()
            .contains("switched off"),
        "{disabled}"
    );
    let own = self::answers(
        &place,
        &["-c", "toolplane.yaml"],
        &request("count", json!({})).to_string(),
    );
    assert_eq!(
        own[0]["result"],
        json!({"value": 7}),
        "a named configuration is not that of the gateway"
    );
    let run = place.run_with(
        &["endpoint", "--no-gateway"],
        &request("count", json!({})).to_string(),
    );
    assert_eq!(run.json()["result"], json!({"value": 7}));
    assert_eq!(
        answer(&place, request("greet", json!({"name": "us"})))["result"]["greeting"],
        "Hello, us!"
    );
    // Larger than other requests of operators.
    let long = "x".repeat(100_000);
    let greeted = answer(&place, request("greet", json!({"name": long})));
    assert_eq!(greeted["result"]["greeting"].as_str().unwrap().len(), 100_008);

    assert_eq!(
        through(&place, "greet", &["name=us"]).json(),
        json!({"greeting": "Hello, us!"})
    );
    let disabled = through(&place, "count", &[]);
    assert_eq!(disabled.code, 3, "the list of the gateway lacks it: {disabled:?}");

    // The gateway is started with the variable as well: its endpoint does not ask the gateway itself.
    eventually("the list of the gateway's endpoint", || {
        let listed = ask(&served, Era::Modern, "tools/list", json!({}));
        names(&listed).contains(&"endpoint__greet")
    });
    let listed = ask(&served, Era::Modern, "tools/list", json!({}));
    assert_eq!(
        names(&listed),
        [
            "endpoint__count",
            "endpoint__fails",
            "endpoint__greet",
            "fails",
            "greet"
        ]
    );
}

/// An endpoint that is the toolplane which uses it starts a few processes, and then stops.
#[test]
fn endpoints_that_start_one_another_end() {
    let place = Place::with(&format!(
        "endpoints: {{me: {{command: {BINARY}, args: [endpoint]}}}}\n\
         tools: {{greet: {{description: Greets., executor: {{kind: mock, result: hello}}}}}}\n"
    ));
    let listed = place.run(&["tools", "ls", "-o", "json"]).json();
    let names: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["greet", "me__greet", "me__me__greet", "me__me__me__greet"]
    );
}
