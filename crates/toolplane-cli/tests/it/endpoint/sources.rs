//! Command endpoints as sources of tools.

use std::{fs, path::PathBuf, process::Command};

use serde_json::{Value, json};

use super::names;
use crate::{
    binary::{Place, eventually},
    serve::Served,
    versions::{ERAS, Era, ask},
};

/// Directory of the example.
fn example() -> PathBuf {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/okso");
    fs::canonicalize(path).unwrap()
}

fn echo() -> String {
    let path = example().join("src/tools/external/mcp_echo.sh");
    path.to_str().unwrap().to_owned()
}

fn call(served: &Served, era: Era, name: &str, arguments: Value) -> Value {
    let mut params = json!({"name": name});
    params["arguments"] = arguments;
    ask(served, era, "tools/call", params)
}

/// The three lines of the specification, as the README has them.
#[test]
fn the_reference_endpoint_works_as_written() {
    let readme = fs::read_to_string(example().join("README.md")).unwrap();
    let lines = readme
        .lines()
        .filter(|line| line.ends_with("| ./src/tools/external/mcp_echo.sh"));
    let answers: Vec<Value> = lines
        .map(|line| {
            let run = Command::new("sh")
                .args(["-c", line])
                .current_dir(example())
                .output()
                .unwrap();
            assert!(run.status.success(), "{line}: {run:?}");
            serde_json::from_slice(&run.stdout).unwrap()
        })
        .collect();
    let [list, describe, call] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!(names(list), ["echo_external"]);
    assert_eq!(describe["tool"], list["tools"][0]);
    assert_eq!(
        *call,
        json!({"type": "result", "tool": "echo_external", "result": {"echo": "hi"}})
    );
}

#[test]
fn the_example_is_called_by_clients_of_both_eras() {
    let place = Place::with(&format!("include: [{}/toolplane.yaml]\n", example().display()));
    assert_eq!(place.run(&["check"]).code, 0, "{:?}", place.run(&["check"]));
    let served = Served::start(&place);
    for era in ERAS {
        let listed = ask(&served, era, "tools/list", json!({}));
        assert_eq!(names(&listed), ["echo__echo_external", "word_count"], "{era:?}");
        let tool = &listed["tools"][0];
        assert_eq!(tool["outputSchema"]["required"], json!(["echo"]));
        let meta = &tool["_meta"]["dev.toolplane/endpoint"];
        assert_eq!(meta["command"], "echo_external MESSAGE", "{tool}");
        let echoed = call(
            &served,
            era,
            "echo__echo_external",
            json!({"message": "$(id) \"hi\""}),
        );
        assert_eq!(
            echoed["structuredContent"],
            json!({"echo": "$(id) \"hi\""}),
            "{era:?}: {echoed}"
        );
        let counted = call(&served, era, "word_count", json!({"query": "one two; three"}));
        assert_eq!(
            counted["structuredContent"],
            json!({"stdout": "3\n", "exit_code": 0}),
            "{counted}"
        );
        let refused = call(&served, era, "echo__echo_external", json!({}));
        assert_eq!(
            refused["_meta"]["dev.toolplane/error"]["kind"], "invalid_arguments",
            "{refused}"
        );
    }
    let shown = place.run(&["tools", "show", "echo__echo_external"]);
    for said in [
        "safety",
        "Reads and changes nothing.",
        "remote",
        "the endpoint `echo`",
    ] {
        assert!(shown.data().contains(said), "{said}: {shown:?}");
    }
    let list = place.run(&["servers", "ls", "-o", "json"]).json();
    assert_eq!(
        (&list[0]["name"], &list[0]["transport"], &list[0]["state"]),
        (&json!("echo"), &json!("endpoint"), &json!("ready"))
    );
}

#[test]
fn the_variable_of_okso_is_an_endpoint() {
    let place = Place::empty().variable("MCP_ENDPOINT", &echo());
    let called = place.run(&["call", "endpoint__echo_external", "message=hi", "-o", "json"]);
    assert_eq!(called.json(), json!({"echo": "hi"}), "{called:?}");
    let place = Place::empty().variable("MCP_ENDPOINT", &format!("{} | cat", echo()));
    let refused = place.run(&["tools", "ls"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(
        refused.stderr.contains("`MCP_ENDPOINT`") && refused.stderr.contains("no shell reads it"),
        "{refused:?}"
    );
    let place = Place::with("servers: {endpoint: {command: sh}}").variable("MCP_ENDPOINT", "true");
    let clash = place.run(&["tools", "ls"]);
    assert!(
        clash.code == 2 && clash.stderr.contains("has a source of this name"),
        "{clash:?}"
    );
}

#[test]
fn an_endpoint_that_fails_leaves_the_other_tools() {
    let place = Place::with(
        "endpoints: {broken: {command: sh, args: ['-c', 'echo no luck >&2; exit 3']}}\n\
         tools: {greet: {description: Greets., executor: {kind: mock, result: hello}}}\n",
    );
    let listed = place.run(&["tools", "ls", "-o", "json"]);
    assert_eq!(listed.json()[0]["name"], "greet");
    assert!(
        listed.stderr.contains("`broken`") && listed.stderr.contains("no luck"),
        "{listed:?}"
    );
    let served = Served::start(&place);
    for era in ERAS {
        assert_eq!(names(&ask(&served, era, "tools/list", json!({}))), ["greet"]);
    }
    let doctor = place.run(&["doctor"]);
    assert!(
        doctor.stdout.contains("endpoint broken") && doctor.stdout.contains("exit status: 3"),
        "{doctor:?}"
    );
}

#[test]
fn a_result_is_validated_by_the_schema_of_its_descriptor() {
    let tool = json!({
        "name": "t", "description": "d", "result_schema": {"properties": {"n": {"type": "integer"}}, "required": ["n"]}
    });
    let list = json!({"type": "result", "tools": [tool]});
    for (result, code) in [
        (json!({"n": 7, "more": 1.50}), 0),
        (json!({"n": "seven"}), 1),
        (json!({}), 1),
    ] {
        let reply = json!({"type": "result", "tool": "t", "result": result});
        let script = format!("case $(cat) in *list_tools*) echo '{list}';; *) echo '{reply}';; esac");
        let endpoints = json!({"endpoints": {"e": {"command": "sh", "args": ["-c", script]}}});
        let run = Place::with(&endpoints.to_string()).run(&["call", "e__t", "-o", "json"]);
        assert_eq!(run.code, code, "{run:?}");
        match code {
            0 => assert_eq!(run.json(), result),
            _ => assert!(run.stderr.contains("result_invalid"), "{run:?}"),
        }
    }
}

/// The settings of servers apply: a definition that changes is withheld.
#[test]
fn a_changed_definition_is_withheld() {
    let place = Place::with("endpoints: {e: {command: cat, args: [list.json], pin: locked}}\n");
    let list = |description: &str| {
        let tool = json!({"name": "a", "description": description});
        json!({"type": "result", "tools": [tool]}).to_string()
    };
    place.write("list.json", list("first"));
    assert_eq!(place.run(&["lock"]).code, 0);
    assert_eq!(
        place.run(&["tools", "ls", "-o", "json"]).json()[0]["name"],
        "e__a"
    );
    place.write("list.json", list("second"));
    let listed = place.run(&["tools", "ls", "-o", "json"]);
    assert_eq!(listed.json(), json!([]), "{listed:?}");
    assert_eq!(place.run(&["lock", "--check"]).code, 7);
}

#[test]
fn problems_show_the_line_and_what_is_meant() {
    for (text, line, said) in [
        ("endpoints:\n  a:\n    comand: x\n", 3, "did you mean `command`?"),
        (
            "endpoints:\n  a: {args: [x]}\n",
            2,
            "the endpoint has no `command` to start",
        ),
        ("endpoints:\n  'a/b': {command: x}\n", 2, "is no endpoint name"),
        (
            "servers: {a: {command: x}}\nendpoints:\n  a: {command: x}\n",
            3,
            "has the name of a server",
        ),
        (
            "endpoints: {a: {command: x}, b: {command: x}}\ntools:\n  t:\n    description: d\n    executor: {kind: endpoint}\n",
            5,
            "does not say which endpoint runs it",
        ),
        (
            "tools:\n  t:\n    description: d\n    executor: {kind: endpoint, endpont: a}\n",
            4,
            "did you mean `endpoint`?",
        ),
    ] {
        let place = Place::with(text);
        let run = place.run(&["check"]);
        let all = format!("{}{}", run.stdout, run.stderr);
        assert_eq!(run.code, 2, "{text}: {run:?}");
        assert!(
            all.contains(&format!("toolplane.yaml:{line}:")) && all.contains(said),
            "{text}: {all}"
        );
    }
    let place = Place::with(
        "endpoints: {e: {command: x}}\ntools: {e__own: {description: d, executor: {kind: mock, result: 1}}}\n",
    );
    let run = place.run(&["check"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stderr.contains("the prefix of the endpoint `e`"), "{run:?}");
    assert!(run.stdout.contains("1 endpoint"), "{run:?}");
    // An unset variable makes the endpoint unusable, and nothing else.
    let place = Place::with("endpoints:\n  a: {command: '${env:NO_SUCH_VARIABLE}'}\n");
    let run = place.run(&["check"]);
    let said = "the endpoint `a` cannot be used now: `${NO_SUCH_VARIABLE}` is not set";
    assert!(run.code == 0 && run.stderr.contains(said), "{run:?}");
}

/// A saved answer to `describe_tool` is a manifest, in a file and in the store.
#[test]
fn a_descriptor_of_okso_is_a_tool_of_the_endpoint() {
    let place = Place::with(&format!(
        "store: {{sqlite: data/tools.db}}\nendpoints: {{echo: {{command: {}}}}}\n",
        echo()
    ));
    let served = Served::start(&place);
    let request = r#"{"action":"describe_tool","tool":"echo_external"}"#;
    let described = Command::new("sh")
        .args(["-c", &format!("echo '{request}' | {}", echo())])
        .output();
    let mut described: Value = serde_json::from_slice(&described.unwrap().stdout).unwrap();
    described["tool"]["version"] = json!("1.0.0");
    place.write("echo.json", described.to_string());
    let published = place.run(&["tools", "publish", "echo.json", "--version", "1.0.0"]);
    assert_eq!(published.code, 0, "{published:?}");
    for era in ERAS {
        eventually("the published tool", || {
            call(&served, era, "echo_external", json!({"message": "hi"}))["structuredContent"]
                == json!({"echo": "hi"})
        });
    }
}
