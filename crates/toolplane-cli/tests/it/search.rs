//! `tools search`, and the modes of `serve`.

use serde_json::{Value, json};

use crate::binary::{BINARY, Place};

const TOOLS: &str = "
tools:
  get_weather:
    description: The weather at a place. Slow.
    input_schema: {type: object, properties: {city: {type: string}, days: {type: integer}}, required: [city]}
    capabilities: [forecast]
    tags: [production-ready]
    aliases: [wetterbericht]
    sla: 99%
    executor: {kind: mock, template: '{\"city\": {{ city }}}'}
  past_weather:
    description: Past weather at a place.
    capabilities: [forecast]
    tags: [production-ready]
    sla: 99.9%
    executor: {kind: mock, result: 1}
";

fn place() -> Place {
    let place = Place::with(&format!(
        "{TOOLS}\nservers:\n  inner: {{command: {BINARY}, args: [-c, inner.yaml, serve, --stdio]}}\n"
    ));
    place.write(
        "inner.yaml",
        "tools: {send_mail: {description: Sends a mail to people., executor: {kind: mock, result: 1}}}",
    );
    place
}

#[test]
fn tools_of_files_and_servers_are_found() {
    let place = place();
    let found = place.run(&["tools", "search", "weather at a place", "mails to people"]);
    let lines: Vec<_> = found.data().lines().collect();
    assert_eq!(
        lines[..2],
        [
            "get_weather(city: string, days?: integer) - The weather at a place.",
            "inner__send_mail() - Sends a mail to people.",
        ]
    );
    let found = place
        .run(&["tools", "search", "Wetterbericht", "-o", "json"])
        .json();
    assert_eq!(found["tools"][0]["name"], "get_weather");
    assert_eq!(found["tools"][0]["queries"], json!(["Wetterbericht"]));
    let by_server = place
        .run(&["tools", "search", "--server", "inner", "-o", "json"])
        .json();
    assert_eq!(by_server["tools"].as_array().unwrap().len(), 1);
    assert_eq!(by_server["tools"][0]["server"], "inner");
}

#[test]
fn capabilities_are_found_in_the_order_of_their_sla() {
    let options = [
        "--capability",
        "forecast",
        "--tag",
        "production-ready",
        "--sort",
        "sla",
        "--limit",
        "5",
    ];
    let found = place().run(&[&["tools", "search"][..], &options].concat());
    let names: Vec<_> = found
        .data()
        .lines()
        .map(|line| line.split('(').next().unwrap())
        .collect();
    assert_eq!(names, ["past_weather", "get_weather"]);
}

#[test]
fn nothing_found_is_an_exit_of_its_own_with_the_nearest_categories() {
    let run = place().run(&["tools", "search", "knit a pullover"]);
    assert_eq!((run.code, run.stdout.as_str()), (3, ""));
    assert!(
        run.stderr.contains("no tool fits `knit a pullover`"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("server inner (1)") && run.stderr.contains("tag production-ready (2)"),
        "{}",
        run.stderr
    );
    let run = place().run(&["tools", "search", "--tag", "none"]);
    assert_eq!(run.code, 3);
    let run = place().run(&["tools", "search"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("nothing to search for"), "{}", run.stderr);
}

/// Returns the answers of a gateway on stdio to these requests.
fn served(place: &Place, options: &[&str], requests: &[Value]) -> Vec<Value> {
    let opening = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let lines = [opening, initialized].into_iter().chain(requests.iter().cloned());
    let input: String = lines.map(|line| format!("{line}\n")).collect();
    let run = place.run_with(&[&["serve", "--stdio"][..], options].concat(), &input);
    let answers = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut answers: Vec<_> = answers
        .filter(|answer| answer.get("id").is_some_and(|id| id != 0))
        .collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    answers
}

#[test]
fn a_gateway_in_search_mode_lists_meta_tools_and_calls_what_they_find() {
    let call = |id: u32, name: &str, arguments: Value| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}});
    let requests = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        call(2, "tool_search", json!({"query": "weather at a place"})),
        call(
            3,
            "tool_call",
            json!({"name": "get_weather", "arguments": {"city": "Oslo"}}),
        ),
    ];
    let configured = place();
    configured.write(
        "search.yaml",
        "include: [toolplane.yaml]\ngateway: {mode: search, pinned: [past_*]}",
    );
    for (options, expected) in [
        (
            &["--mode", "search"][..],
            vec!["tool_call", "tool_describe", "tool_search"],
        ),
        (
            &["-c", "search.yaml"][..],
            vec!["past_weather", "tool_call", "tool_describe", "tool_search"],
        ),
    ] {
        let answers = served(&configured, options, &requests);
        let tools = answers[0]["result"]["tools"].as_array().unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, expected);
        let text = answers[1]["result"]["content"][0]["text"].as_str().unwrap();
        assert!(
            text.starts_with("get_weather(city: string, days?: integer) - "),
            "{text}"
        );
        assert_eq!(answers[2]["result"]["structuredContent"], json!({"city": "Oslo"}));
    }
}

#[test]
fn a_tool_with_the_name_of_a_meta_tool_is_refused_with_advice() {
    let place = Place::with("tools: {tool_search: {description: Own., executor: {kind: mock, result: 1}}}");
    assert_eq!(place.run(&["check"]).code, 0);
    let run = place.run_with(&["serve", "--stdio", "--mode", "auto"], "");
    assert_eq!(run.code, 2, "{run:?}");
    for part in ["`tool_search`", "toolplane.yaml", "another name", "--mode list"] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
}

#[test]
fn check_reports_pinned_patterns_that_match_nothing_with_their_place() {
    let place = Place::with(&format!("gateway: {{pinned: [get_wether]}}\n{TOOLS}"));
    let run = place.run(&["check"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.stderr.contains("`gateway.pinned` has `get_wether`"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("toolplane.yaml:1:") && run.stderr.contains("get_weather"),
        "{}",
        run.stderr
    );
}
