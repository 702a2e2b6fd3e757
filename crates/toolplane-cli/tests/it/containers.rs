//! Tools in containers, called over MCP in both eras, with podman.

use std::{fs, path::Path};

use serde_json::{Value, json};
use tool_testkit::skip;
use tp_containers::{EngineKind, TestEngine};

use crate::{
    binary::{Place, end_of, eventually, signal},
    serve::Served,
    versions::{ERAS, Era, ask},
};

/// Value of a variable of the gateway that no container gets.
const CANARY: &str = "canary-5f1c29d0";

/// Starts an engine, or reports that this machine cannot.
fn start(kind: EngineKind) -> Option<TestEngine> {
    TestEngine::start(kind)
        .map_err(|reason| skip(reason.to_string()))
        .ok()
}

fn call(served: &Served, era: Era, name: &str, arguments: Value) -> Value {
    let mut params = json!({"name": name});
    params["arguments"] = arguments;
    ask(served, era, "tools/call", params)
}

fn text(result: &Value) -> &str {
    let text = result["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{result}"))
}

fn configuration(engine: &TestEngine) -> String {
    format!(
        r#"
store: {{sqlite: data/tools.db}}
defaults: {{container: {{socket: {socket}}}}}
tools:
  greet:
    description: Greets from a container.
    parameters: [{{name: name, type: string, required: true}}]
    executor:
      kind: docker
      image: {image}
      command: [sh, -c, 'echo "Hello, $name"; env; cat /proc/1/environ; cat']
  add:
    description: Adds.
    parameters: [{{name: a, type: integer, required: true}}, {{name: b, type: integer, required: true}}]
    output_schema: {{type: object, properties: {{sum: {{type: integer}}}}, required: [sum]}}
    executor:
      kind: docker
      image: {image}
      command: [sh, -c, '[ $b != 0 ] || {{ echo "b is nothing" >&2; exit 65; }}; echo "{{\"sum\": $((a + b))}}"']
      output: json
  stay:
    description: Stays.
    executor: {{kind: docker, image: '{image}', command: [sleep, '500'], limits: {{wall_time: 20s}}}}
"#,
        socket = engine.socket().display(),
        image = engine.image(),
    )
}

/// The example has a public image. Here it is called with the image of the tests, which has the same programs.
#[test]
fn the_tools_of_the_example_are_called_in_both_eras() {
    let Some(engine) = start(EngineKind::Podman) else {
        return;
    };
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/code");
    let text_of = |file: &str| fs::read_to_string(example.join(file)).unwrap();
    let written = text_of("toolplane.yaml");
    let public = "image: busybox@sha256:73aaf090f3d85aa34ee199857f03fa3a95c8ede2ffd4cc2cdb5b94e566b11662";
    assert_eq!(written.matches(public).count(), 1, "{written}");
    let place = Place::with(&format!(
        "defaults: {{container: {{socket: {}}}}}\n{}",
        engine.socket().display(),
        written.replace(public, &format!("image: {}", engine.image()))
    ));
    for file in ["word_count.py", "lib/words.py", "ago.requirements.lock"] {
        place.write(file, text_of(file));
    }
    let served = Served::start(&place);
    for era in ERAS {
        let shouted = call(&served, era, "shout", json!({"text": "hello"}));
        assert_eq!(text(&shouted), "HELLO!", "{era:?}: {shouted}");
        let counted = call(&served, era, "word_count", json!({"text": "one two Two"}));
        let counts = json!({"one": 1, "two": 2});
        assert_eq!(counted["structuredContent"], counts, "{era:?}: {counted}");
        let told = call(&served, era, "ago", json!({"seconds": 3600}));
        assert_eq!(text(&told), "an hour ago", "{era:?}: {told}");
        let sorted = call(&served, era, "sort_lines", json!({"text": "b\nc\na"}));
        assert_eq!(text(&sorted), "a\nb\nc", "{era:?}: {sorted}");
    }
}

#[test]
fn container_tools_of_a_file_are_called_in_both_eras() {
    let Some(engine) = start(EngineKind::Podman) else {
        return;
    };
    let place = Place::with(&configuration(&engine)).variable("TP_SECRET", CANARY);
    let served = Served::start(&place);
    for era in ERAS {
        let greeted = call(&served, era, "greet", json!({"name": "$(id) \"Ada\""}));
        let said = text(&greeted);
        assert!(said.starts_with("Hello, $(id) \"Ada\"\n"), "{era:?}: {greeted}");
        assert!(
            said.ends_with(r#"{"name":"$(id) \"Ada\""}"#),
            "{era:?}: {greeted}"
        );
        assert!(!greeted.to_string().contains(CANARY), "{greeted}");
        let sandbox = &greeted["_meta"]["dev.toolplane/sandbox"];
        assert_eq!(
            sandbox,
            &json!({"level": "container", "network": "off"}),
            "{greeted}"
        );
        let added = call(&served, era, "add", json!({"a": 40, "b": 2}));
        assert_eq!(added["structuredContent"], json!({"sum": 42}), "{era:?}: {added}");
        let failed = call(&served, era, "add", json!({"a": 1, "b": 0}));
        assert_eq!(failed["isError"], true, "{failed}");
        let error = &failed["_meta"]["dev.toolplane/error"];
        assert_eq!(error["kind"], "invalid_arguments", "{failed}");
        assert_eq!(error["detail"]["sandbox"], "container", "{failed}");
        assert_eq!(error["detail"]["exit_code"], 65, "{failed}");
        assert!(text(&failed).contains("b is nothing"), "{failed}");
    }
    eventually("the removal of all containers", || engine.containers().is_empty());
    let doctor = place.run(&["doctor", "-o", "json"]).json();
    let found = doctor
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["name"] == "containers");
    let found = found.unwrap_or_else(|| panic!("{doctor}"));
    assert_eq!(found["status"], "ok", "{found}");
    let message = found["message"].as_str().unwrap();
    assert!(
        message.starts_with("podman ") && message.contains("api.sock"),
        "{found}"
    );
}

/// Seed of tools as data: a manifest of Kiwi, published while the gateway runs.
#[test]
fn a_container_tool_is_published_and_called_while_the_gateway_runs() {
    let Some(engine) = start(EngineKind::Podman) else {
        return;
    };
    let socket = format!("unix://{}", engine.socket().display());
    let place = Place::with("store: {sqlite: data/tools.db}\n").variable("DOCKER_HOST", &socket);
    let served = Served::start(&place);
    let manifest = |name: &str, options: &str| {
        format!(
            "tool_id: {name}\ntool_type: docker\nversion: 1.0.0\ndescription: Sorts lines.\n\
             executor_config: {{image: '{}', command: [sh, -c, 'echo \"$text\" | sort']{options}}}\n\
             parameters: [{{name: text, type: string, required: true}}]\n",
            engine.image()
        )
    };
    // One that asks for the host is refused.
    place.write("unsafe.yaml", manifest("unsafe", ", privileged: true"));
    let refused = place.run(&["tools", "publish", "unsafe.yaml"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(
        refused.stderr.contains("all capabilities are dropped"),
        "{refused:?}"
    );
    assert!(engine.containers().is_empty());
    place.write("tool.yaml", manifest("sort_lines", ""));
    let published = place.run(&["tools", "publish", "tool.yaml"]);
    assert_eq!(published.code, 0, "{published:?}");
    for era in ERAS {
        eventually("the published tool", || {
            let result = call(&served, era, "sort_lines", json!({"text": "b\na"}));
            result["content"][0]["text"] == "a\nb"
        });
    }
}

#[test]
fn containers_of_a_killed_gateway_are_removed_by_the_next_one() {
    let Some(engine) = start(EngineKind::Podman) else {
        return;
    };
    let place = Place::with(&configuration(&engine));
    let mut killed = Served::start(&place);
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "stay", "arguments": {}}});
    let waiting = killed.begin(&killed.address, "", &request);
    let running = || {
        let listed = engine.run(["ps", "--quiet"]).unwrap();
        !listed.stdout.is_empty()
    };
    eventually("the container", running);
    signal(killed.child.id(), rustix::process::Signal::KILL);
    end_of(&mut killed.child);
    drop(waiting);
    assert!(running(), "a gateway that is killed removes nothing");
    // A gateway that runs keeps its containers while another one starts.
    let _next = Served::start(&place);
    eventually("the removal", || engine.containers().is_empty());
}

#[test]
fn problems_show_the_line_and_why() {
    let image = format!("alpine@sha256:{}", "0".repeat(64));
    for (line, said) in [
        ("image: 'alpine:3'", "write `alpine@sha256:…`"),
        ("privileged: true", "all capabilities are dropped"),
        ("volumes: ['/:/host']", "no path of the host"),
        ("command: rm -rf /", "no shell splits a command"),
        ("limits: {memry: 1GiB}", "did you mean `memory`?"),
    ] {
        let image = if line.starts_with("image") {
            String::new()
        } else {
            format!("      image: {image}\n")
        };
        let place = Place::with(&format!(
            "tools:\n  greet:\n    description: Greets.\n    executor:\n      kind: docker\n      {line}\n{image}"
        ));
        let run = place.run(&["check"]);
        assert_eq!(run.code, 2, "{run:?}");
        let shown = format!("{}{}", run.stdout, run.stderr);
        assert!(
            shown.contains("toolplane.yaml:6:") && shown.contains(said),
            "{line}: {shown}"
        );
    }
    let place = Place::with("defaults: {container: {socket: docker.sock}}\n");
    let run = place.run(&["check"]);
    let shown = format!("{}{}", run.stdout, run.stderr);
    assert!(
        shown.contains("toolplane.yaml:1:") && shown.contains("an absolute path"),
        "{shown}"
    );
}

#[test]
fn without_an_engine_a_call_says_so_and_the_doctor_too() {
    let image = format!("alpine@sha256:{}", "0".repeat(64));
    let tool = format!("tools: {{t: {{description: T., executor: {{kind: docker, image: '{image}'}}}}}}\n");
    let place = Place::with(&tool).variable("DOCKER_HOST", "tcp://127.0.0.1:1");
    let run = place.run(&["call", "t"]);
    assert_ne!(run.code, 0, "{run:?}");
    assert!(
        run.stderr
            .contains("no container engine can be reached: `tcp://127.0.0.1:1`, which DOCKER_HOST names"),
        "{run:?}"
    );
    let doctor = place.run(&["doctor", "-o", "json"]).json();
    let found = doctor
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["name"] == "containers");
    assert_eq!(found.unwrap()["status"], "fail", "{doctor}");
}
