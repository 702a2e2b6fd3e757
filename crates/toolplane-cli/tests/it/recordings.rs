//! `serve --record` and `serve --replay`: a session is recorded with a server, and answered without it.

use std::fs;

use serde_json::{Value, json};

use crate::binary::{BINARY, Place};

const SCENARIO: &str = "tools: {search: {replies: [{structured: {found: 7}}]}}";

/// A tool of the configuration, and one of a server that is `program`.
fn place(program: &str) -> Place {
    let configuration = json!({
        "servers": {"peer": {"command": program, "args": ["mock-server", "--stdio", "--scenario", "scenario.yaml"]}},
        "tools": {"weather": {"description": "The weather.", "executor": {"kind": "mock", "template": "{\"city\": {{ city }}}"}}},
    });
    let place = Place::with(&configuration.to_string());
    place.write("scenario.yaml", SCENARIO);
    place
}

/// Serves these calls on stdio with these options. Returns the results, as JSON.
fn serve(place: &Place, options: &[&str], calls: &[(&str, Value)]) -> Vec<Value> {
    let mut input = vec![
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
        }}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
    ];
    let calls = calls.iter().enumerate().map(|(index, (tool, arguments))| {
        json!({"jsonrpc": "2.0", "id": index + 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
    });
    input.extend(calls);
    let input: String = input.iter().map(|line| format!("{line}\n")).collect();
    let run = place.run_with(&[&["serve", "--stdio"], options].concat(), &input);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let mut answers: Vec<Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    answers.retain(|answer| answer["id"].is_u64());
    answers.sort_by_key(|answer| answer["id"].as_u64());
    answers
        .into_iter()
        .skip(1)
        .map(|answer| answer["result"].clone())
        .collect()
}

/// Returns the names of a list of tools.
fn names(list: &Value) -> Vec<&str> {
    list["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[test]
fn a_session_is_recorded_and_answered_offline() {
    let place = place(BINARY);
    let calls = [("weather", json!({"city": "Oslo"})), ("peer__search", json!({}))];
    let recorded = serve(&place, &["--record", "session"], &calls);
    assert_eq!(names(&recorded[0]), ["peer__search", "weather"]);
    assert_eq!(recorded[1]["structuredContent"], json!({"city": "Oslo"}));
    assert_eq!(recorded[2]["structuredContent"], json!({"found": 7}));
    assert_eq!(
        fs::read_dir(place.path().join("session/calls")).unwrap().count(),
        2
    );

    // The server is gone.
    let offline = self::place("/nowhere/there-is-no-such-program");
    fs::rename(place.path().join("session"), offline.path().join("session")).unwrap();
    let calls = [
        calls[1].clone(),
        calls[0].clone(),
        ("weather", json!({"city": "Bergen"})),
    ];
    let replayed = serve(&offline, &["--replay", "session"], &calls);
    assert_eq!(replayed[0], recorded[0]);
    assert_eq!(replayed[1]["structuredContent"], json!({"found": 7}));
    assert_eq!(replayed[2]["structuredContent"], json!({"city": "Oslo"}));
    let text = replayed[3]["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("the recording has no further call of `weather`"),
        "{text}"
    );
    assert_eq!(replayed[3]["isError"], true);
    let by_position = ["--replay", "session", "--replay-match", "position"];
    let other = serve(&offline, &by_position, &[("weather", json!({"city": "Bergen"}))]);
    assert_eq!(other[1]["structuredContent"], json!({"city": "Oslo"}));

    let again = offline.run(&["serve", "--stdio", "--record", "session"]);
    assert_eq!(again.code, 2);
    assert!(
        again.stderr.contains("there is a recording already"),
        "{}",
        again.stderr
    );
    let none = offline.run(&["serve", "--stdio", "--replay", "nothing"]);
    assert_eq!(none.code, 2, "{}", none.stderr);
}

#[test]
fn a_changed_schema_is_a_clear_failure() {
    let place = place(BINARY);
    serve(
        &place,
        &["--record", "session"],
        &[("weather", json!({"city": "Oslo"}))],
    );
    let changed = fs::read_to_string(place.path().join("toolplane.yaml")).unwrap();
    place.write(
        "toolplane.yaml",
        changed.replace("The weather.", "The weather in a city."),
    );
    let replayed = serve(
        &place,
        &["--replay", "session"],
        &[("weather", json!({"city": "Oslo"}))],
    );
    let text = replayed[1]["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("the definition of `weather` is not the one of the recording"),
        "{text}"
    );
}
