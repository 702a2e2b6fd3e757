//! `toolplane health`, and fault injection.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    binary::{BINARY, Place, children, eventually, signal},
    serve::{Served, call},
};

const TOOLS: &str = "
tools:
  greet:
    description: Greets
    executor: {kind: mock, result: hello}
";

/// Returns a gateway with a healthy and a failing server.
fn place(required: &str) -> Place {
    let place = Place::with(&format!(
        "{TOOLS}
servers:
  inner: {{command: {BINARY}, args: [-c, inner.yaml, serve, --stdio], required: true}}
  broken: {{command: sh, args: ['-c', 'exit 3'], {required}}}
"
    ));
    place.write("inner.yaml", TOOLS);
    place
}

/// Returns the answer of a server's tool, called over HTTP.
fn answer(served: &Served, tool: &str) -> Value {
    let answer = served.post("localhost", &call(1, tool, &json!({})));
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

#[test]
fn a_running_gateway_tells_how_its_tools_and_servers_are() {
    let place = place("required: false");
    let served = Served::start(&place);
    let ask = ["health", "--address", &served.address, "-o", "json"];
    eventually("that it is ready", || place.run(&ask).code == 0);
    for _ in 0..3 {
        let answer = answer(&served, "greet");
        assert_eq!(answer["result"]["content"][0]["text"], "hello", "{answer}");
    }
    let page = place.run(&ask).json();
    assert_eq!((&page["status"], &page["reasons"]), (&json!("ready"), &json!([])));
    let servers: Vec<_> = page["servers"].as_array().unwrap().iter().collect();
    let states: Vec<_> = servers
        .iter()
        .map(|server| (&server["name"], &server["state"]))
        .collect();
    assert_eq!(
        states,
        [
            (&json!("inner"), &json!("ready")),
            (&json!("broken"), &json!("failed"))
        ]
    );
    let tool = &page["tools"][0];
    assert_eq!(
        (&tool["name"], &tool["calls"], &tool["status"]),
        (&json!("greet"), &json!(3), &json!("healthy"))
    );
    assert!(tool["p95_ms"].is_number(), "{tool}");
    let table = place.run(&["health", "--address", &served.address]);
    assert!(table.data().starts_with("ready\n"), "{table:?}");
    assert!(
        table
            .stdout
            .lines()
            .any(|line| line.contains("greet") && line.contains("100.0%")),
        "{table:?}"
    );
    let yaml = place.run(&["health", "--address", &served.address, "-o", "yaml"]);
    assert!(yaml.data().starts_with("status: ready\n"), "{yaml:?}");
}

#[test]
fn a_gateway_is_not_ready_without_what_it_requires() {
    let place = place("required: true");
    let served = Served::start(&place);
    let mut run = place.run(&["health", "--address", &served.address]);
    eventually("that the server has failed", || {
        run = place.run(&["health", "--address", &served.address]);
        run.stdout.contains("`broken` is required and failed")
    });
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stdout.starts_with("not ready\n"), "{run:?}");
}

/// A gateway that is not ready receives no calls.
#[test]
fn a_required_server_comes_back_without_a_call() {
    let with = |settings: &str| {
        format!(
            "servers: {{inner: {{command: {BINARY}, args: [-c, inner.yaml, serve, --stdio], required: true{settings}}}}}\n"
        )
    };
    let place = Place::with(&with(""));
    place.write("inner.yaml", TOOLS);
    let served = Served::start_with(&place, &["--no-reload"]);
    let comes_after = |before: &[u32]| {
        let mut now = Vec::new();
        eventually("that it is ready with another process", || {
            now = children(served.child.id());
            now.len() == 1 && now != before && served.get("/readyz").0 == 200
        });
        now
    };
    let first = comes_after(&[]);
    signal(first[0], Signal::KILL);
    let second = comes_after(&first);
    place.write("toolplane.yaml", with(", timeout_ms: 5000"));
    signal(served.child.id(), Signal::HUP);
    comes_after(&second);
}

#[test]
fn without_a_gateway_there_is_no_answer_and_everything_can_be_checked_all_the_same() {
    let place = place("required: false");
    let run = place.run(&["health", "--address", "127.0.0.1:1"]);
    assert_eq!((run.code, run.stdout.as_str()), (6, ""), "{run:?}");
    assert!(
        run.stderr.contains("cannot be reached") && run.stderr.contains("--direct"),
        "{run:?}"
    );
    let run = place.run(&["health", "--direct", "-o", "json"]);
    assert_eq!(run.code, 1, "{run:?}");
    let page = run.json();
    let statuses: Vec<_> = page["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|server| server["status"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(statuses, ["healthy", "degraded"]);
    assert!(run.stderr.contains("upstream `broken`"), "{run:?}");
    assert_eq!(page["status"], "not_ready");
    let run = place.run(&["health", "--direct"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stdout.starts_with("not ready\n"), "{run:?}");
    assert!(run.stdout.contains("the server `broken` failed"), "{run:?}");
}

#[test]
fn faults_on_purpose_are_told_loudly() {
    let place = Place::with(TOOLS);
    place.write(
        "chaos.yaml",
        "seed: 42\nrules: [{failure_rate: 100%, errors: [network]}]\n",
    );
    let served = Served::start_with(&place, &["--chaos", "chaos.yaml"]);
    assert!(
        served.said.contains("CHAOS") && served.said.contains("seed 42"),
        "{}",
        served.said
    );
    let answer = answer(&served, "greet");
    let text = answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default();
    assert!(
        text.contains("injected fault: the network is unreachable"),
        "{answer}"
    );
    let run = place.run(&["health", "--address", &served.address]);
    assert!(
        run.stdout
            .contains("CHAOS: faults are injected on purpose, with seed 42"),
        "{run:?}"
    );
}

#[test]
fn a_chaos_file_that_cannot_be_used_is_refused_with_its_line() {
    let place = Place::with(TOOLS);
    place.write("chaos.yaml", "seed: 42\nrules:\n  - failure_rte: 20%\n");
    let run = place.run(&["serve", "--http", "127.0.0.1:0", "--chaos", "chaos.yaml"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(
        run.stderr.contains("chaos.yaml:3") && run.stderr.contains("failure_rate"),
        "{run:?}"
    );
    let schema = place.run(&["schema", "chaos"]);
    assert!(schema.data().contains("\"unknown_outcome\""), "{schema:?}");
}
