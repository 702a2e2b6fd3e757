//! The mock server as a process, with the shipped scenario.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::Value;

use crate::{
    binary::{BINARY, Place, end_of, signal, until_it_listens},
    serve::call,
};

const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/mock-server.yaml");

#[test]
fn the_shipped_scenario_answers_on_stdio() {
    let requests: String = [
        call(1, "forecast", &serde_json::json!({"city": "Riga"})),
        call(2, "flaky", &serde_json::json!({})),
    ]
    .iter()
    .map(|message| format!("{message}\n"))
    .collect();
    let run = Place::empty().run_with(&["mock-server", "--scenario", SCENARIO, "--stdio"], &requests);
    let mut answers: Vec<Value> = run
        .data()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(
        answers[0]["result"]["content"][0]["text"],
        "Sunny in Riga (call 1)"
    );
    assert_eq!(answers[1]["result"]["isError"], true);
}

#[test]
fn a_gateway_has_it_as_a_server() {
    let place = Place::with(&format!(
        "servers:\n  weather: {{command: {BINARY}, args: [mock-server, --stdio, --scenario, '{SCENARIO}']}}\n"
    ));
    let run = place.run(&["call", "weather__forecast", "city=Riga"]);
    assert_eq!(run.data(), "Sunny in Riga (call 1)\n");
    let names = place.run(&["tools", "ls"]);
    assert!(names.data().contains("weather__broken"), "{names:?}");
}

#[test]
fn it_listens_until_it_is_told_to_end() {
    let place = Place::empty();
    let mut child = place
        .command(&["mock-server", "--scenario", SCENARIO, "--http", "127.0.0.1:0"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    let url = line.strip_prefix("serving at ").unwrap().trim_end();
    place.write(
        "toolplane.yaml",
        format!("servers:\n  weather: {{url: '{url}'}}\n"),
    );
    let run = place.run(&["call", "weather__forecast", "city=Riga"]);
    assert_eq!(run.data(), "Sunny in Riga (call 1)\n");
    // Requests of all clients are counted together.
    let run = place.run(&["call", "weather__forecast", "city=Oslo"]);
    assert_eq!(run.data(), "Rain in Oslo (call 2)\n");
    until_it_listens(child.id());
    signal(child.id(), rustix::process::Signal::TERM);
    assert_eq!(end_of(&mut child), 0);
}

#[test]
fn a_scenario_that_cannot_be_used_is_refused_with_its_place() {
    let place = Place::empty();
    place.write("bad.yaml", "tools:\n  a:\n    replies:\n      - delai: 5s\n");
    let mut said = String::new();
    for file in ["bad.yaml", "missing.yaml"] {
        let arguments = ["mock-server", "--scenario", file, "--stdio"];
        let run = place.run(&arguments);
        assert_eq!(run.code, 2);
        said.push_str(&run.transcript(&arguments));
    }
    insta::assert_snapshot!(said);
}
