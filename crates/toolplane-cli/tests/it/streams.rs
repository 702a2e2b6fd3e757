//! Tools that report while they run, as clients see it.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    thread,
};

use serde_json::{Value, json};

use crate::{
    binary::Place,
    operations::{ended, legacy, modern},
    serve::Served,
};

/// Answers each request on a new connection with two events.
fn events() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = BufReader::new(stream.try_clone().unwrap()).lines();
            while head
                .next()
                .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
            {}
            let response = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n\
                            data: {\"step\":1}\n\ndata: done\n\n";
            // The client may be gone.
            let _ = stream.write_all(response.as_bytes());
        }
    });
    url
}

/// Requests of a client in each era: the call of a tool with a token for its progress.
fn requests(era: &str, tool: &str) -> String {
    let mut call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": {}, "_meta": {"progressToken": "p"}}});
    if era == "modern" {
        let meta = json!({
            "progressToken": "p",
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        call["params"]["_meta"] = meta;
        return format!("{call}\n");
    }
    let opening = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    format!("{opening}\n{initialized}\n{call}\n")
}

/// Returns the messages of the progress, and the result, which follows them.
fn called(place: &Place, era: &str, tool: &str) -> (Vec<String>, Value) {
    let run = place.run_with(&["serve", "--stdio"], &requests(era, tool));
    let mut messages = Vec::new();
    for line in run.stdout.lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        if message["method"] == "notifications/progress" {
            assert_eq!(message["params"]["progressToken"], "p");
            assert_eq!(message["params"]["progress"], messages.len() + 1, "{message}");
            messages.push(message["params"]["message"].as_str().unwrap().to_owned());
        }
        if message["id"] == 1 {
            return (messages, message["result"].clone());
        }
    }
    panic!("no answer: {run:?}")
}

#[test]
fn events_of_an_api_are_progress_and_then_the_result() {
    let place = Place::with(&format!(
        "tools:\n  watch:\n    description: Watches.\n    output_schema: {{type: array}}\n    executor: {{kind: http, url: '{}', \
         stream: sse, allow_private: true}}\n",
        events()
    ));
    for era in ["legacy", "modern"] {
        let (messages, result) = called(&place, era, "watch");
        assert_eq!(messages, ["{\"step\":1}", "done"], "{era}");
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let result: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {result}"));
        assert_eq!(result, json!([{"step": 1}, "done"]), "{era}");
    }
}

#[test]
fn lines_of_a_script_are_progress_and_then_the_result() {
    let place = Place::with(
        "tools:
  watch:
    description: Watches.
    output_schema: {type: array}
    executor: {kind: bash, stream: ndjson, code: 'echo \"{\\\"step\\\":1}\"; echo 2'}
",
    );
    for era in ["legacy", "modern"] {
        let (messages, result) = called(&place, era, "watch");
        assert_eq!(messages, ["{\"step\":1}", "2"], "{era}: {result}");
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let result: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {result}"));
        assert_eq!(result, json!([{"step": 1}, 2]), "{era}");
    }
}

/// Returns the state of a task that has reported something.
fn reported(look: impl Fn() -> Value) -> Value {
    for _ in 0..400 {
        let state = look();
        assert_eq!(state["status"], "working", "{state}");
        if state.get("_meta").is_some_and(|meta| meta.get(PARTIAL).is_some()) {
            return state;
        }
        thread::sleep(std::time::Duration::from_millis(25));
    }
    panic!("nothing is reported");
}

const PARTIAL: &str = "dev.toolplane/partial";

/// The state of a task has what the tool has reported until then; its end has the result, which passed the layers of a call.
#[test]
fn a_task_has_partial_results_in_both_eras() {
    let place = Place::with("");
    place.write(
        "toolplane.yaml",
        format!(
            "tools:
  count:
    description: Counts.
    output_schema: {{type: object, required: [n]}}
    parameters: [{{name: until, type: string, required: true}}]
    executor:
      kind: bash
      stream: text
      output: json
      reads: ['{}']
      code: |
        echo '{{\"n\":'
        until [ -e \"$until\" ]; do sleep 0.05; done
        echo '2}}'
",
            place.path().display()
        ),
    );
    let served = Served::start(&place);
    let marks = ["modern-may-end", "legacy-may-end"];
    let arguments = |mark: &str| json!({"until": place.path().join(mark)});

    let made = modern(
        &served,
        "tools/call",
        json!({"name": "count", "arguments": arguments(marks[0])}),
    );
    assert_eq!(made["resultType"], "task", "{made}");
    let look = || modern(&served, "tasks/get", json!({"taskId": made["taskId"]}));
    let state = reported(look);
    assert_eq!(
        state["_meta"][PARTIAL],
        json!({"n": 1, "pieces": ["{\"n\":"]}),
        "{state}"
    );
    place.write(marks[0], "");
    let done = ended(look);
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(done["result"]["structuredContent"], json!({"n": 2}), "{done}");
    assert_eq!(
        done["result"]["_meta"]["dev.toolplane/sandbox"]["network"], "off",
        "{done}"
    );

    let params = json!({"name": "count", "arguments": arguments(marks[1]), "task": {}});
    let made = legacy(&served, "tools/call", &params);
    let id = json!({"taskId": made["task"]["taskId"]});
    let look = || legacy(&served, "tasks/get", &id);
    let state = reported(look);
    assert_eq!(state["statusMessage"], "{\"n\":", "{state}");
    place.write(marks[1], "");
    assert_eq!(ended(look)["status"], "completed");
    let done = legacy(&served, "tasks/result", &id);
    assert_eq!(done["structuredContent"], json!({"n": 2}), "{done}");
}
