//! Promises to clients in addition to results: progress, errors, a regular end.

use std::{thread, time::Duration};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Client, Configuration, Era, Gateway, Stopwatch, eventually, installed};

const LONG: &str = "everything__trigger-long-running-operation";

/// Returns the parameters of a call that takes this long and reports progress.
fn long_call(seconds: f64, steps: u32) -> String {
    json!({
        "name": LONG,
        "arguments": {"duration": seconds, "steps": steps},
        "_meta": {"progressToken": "the client's own"},
    })
    .to_string()
}

fn assert_progress(notifications: &[(String, String)], steps: u64) {
    let reports: Vec<(Value, u64)> = notifications
        .iter()
        .filter(|(method, _)| method == "notifications/progress")
        .map(|(_, params)| serde_json::from_str::<Value>(params).unwrap())
        .map(|report| {
            (
                report["progressToken"].clone(),
                report["progress"].as_u64().unwrap(),
            )
        })
        .collect();
    let expected: Vec<_> = (1..=steps)
        .map(|step| (json!("the client's own"), step))
        .collect();
    assert_eq!(reports, expected);
}

#[test]
fn progress_is_forwarded_in_order_before_the_answer() {
    let Some(peer) = installed(|peers| peers.everything("stdio")) else {
        return;
    };
    let configuration = Configuration::default().peer("everything", &peer);
    let mut stdio = Gateway::stdio(&configuration);
    let http = Gateway::http(&configuration);
    stdio.client.request("tools/call", &long_call(0.5, 5)).result();
    assert_progress(&stdio.client.notifications, 5);
    // Notifications after the answer would be useless.
    stdio.client.request("ping", "{}").result();
    assert_progress(&stdio.client.notifications, 5);
    for era in [Era::Legacy, Era::Modern] {
        let mut client = http.client(era);
        client.request("tools/call", &long_call(0.5, 5)).result();
        assert_progress(&client.notifications, 5);
    }
    assert_eq!(stdio.end().code(), Some(0));
    assert_eq!(http.terminate().code(), Some(0));
}

#[test]
fn a_signal_to_end_lets_calls_finish_and_reaps_every_server() {
    let peers = installed(|peers| Ok([peers.everything("stdio")?, peers.time()?]));
    let Some([everything, time]) = peers else { return };
    let configuration = Configuration::default()
        .peer("everything", &everything)
        .peer("time", &time);
    let mut gateway = Gateway::stdio(&configuration);
    let tools = gateway.client.tools();
    assert!(
        tools.iter().any(|(name, _)| name == "time__convert_time"),
        "both servers run"
    );
    assert!(gateway.client.process.descendants().len() >= 2);
    let call = gateway.client.begin("tools/call", &long_call(1.0, 2));
    let reports = |gateway: &Gateway| gateway.client.notifications.len();
    let before = reports(&gateway);
    eventually("the call is under way", || {
        gateway.client.drain(Duration::from_millis(50));
        reports(&gateway) > before
    });
    let family = gateway.client.process.descendants();
    gateway.client.process.signal(Signal::TERM);
    gateway.client.wait(call).result();
    // Also checks that the servers have ended.
    assert_eq!(gateway.end_of(&family).code(), Some(0));
}

#[test]
fn a_second_signal_ends_at_once() {
    let server = json!({"command": env!("CARGO_BIN_EXE_toolplane-hostile-server"), "args": ["stdio", "legacy", "never-answers"]});
    let mut gateway = Gateway::stdio(&Configuration::default().server("slow", server));
    gateway.client.tools();
    gateway.client.begin_call("slow__act", "{}");
    let family = gateway.client.process.descendants();
    assert_eq!(family.len(), 1);
    // Until the process has ended, so that no signal before it listens is lost on a slow machine.
    let watch = Stopwatch::start();
    eventually("the gateway ends", || {
        gateway.client.process.has_ended() || {
            gateway.client.process.signal(Signal::TERM);
            thread::sleep(Duration::from_millis(50));
            false
        }
    });
    assert!(watch.elapsed() < Duration::from_secs(20), "{:?}", watch.elapsed());
    gateway.end_of(&family);
}

#[test]
fn a_tool_that_there_is_not_is_an_error_of_the_protocol() {
    let fixed = json!({
        "description": "Always the same.", "input_schema": {"type": "object"},
        "executor": {"kind": "mock", "result": {"a": 1}},
    });
    let configuration = Configuration::default().tool("fixed", fixed);
    let (mut stdio, http) = (Gateway::stdio(&configuration), Gateway::http(&configuration));
    let mut client = http.client(Era::Legacy);
    let clients: [&mut dyn Client; 2] = [&mut stdio.client, &mut client];
    for client in clients {
        assert_eq!(client.call("fixd", "{}").error_code(), -32602);
        assert_eq!(client.request("tools/cal", "{}").error_code(), -32601);
        // Two parsers of a duplicate key could see two values.
        assert_eq!(
            client.call("fixed", r#"{"x":{"a":1,"a":2}}"#).error_code(),
            -32600
        );
        client.call("fixed", "{}").result();
    }
    assert_eq!(stdio.end().code(), Some(0));
    assert_eq!(http.terminate().code(), Some(0));
}

#[test]
fn prompts_and_resources_that_there_are_not_are_errors_of_the_protocol() {
    let configuration = Configuration::default();
    let (mut stdio, http) = (Gateway::stdio(&configuration), Gateway::http(&configuration));
    let (mut legacy, mut modern) = (http.client(Era::Legacy), http.client(Era::Modern));
    let clients: [(&mut dyn Client, i64); 3] = [
        (&mut stdio.client, -32002),
        (&mut legacy, -32002),
        // The modern era has no code of its own for this.
        (&mut modern, -32602),
    ];
    for (client, no_resource) in clients {
        for (method, params, code) in [
            ("prompts/get", json!({"name": "none"}), -32602),
            ("resources/read", json!({"uri": "test:none"}), no_resource),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "none"}, "argument": {"name": "a", "value": ""}}),
                -32602,
            ),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/resource", "uri": "test:{a}"}, "argument": {"name": "a", "value": ""}}),
                -32602,
            ),
        ] {
            let answer = client.request(method, &params.to_string());
            assert_eq!(answer.error_code(), code, "{method} {params}: {answer:?}");
        }
    }
    assert_eq!(stdio.end().code(), Some(0));
    assert_eq!(http.terminate().code(), Some(0));
}
