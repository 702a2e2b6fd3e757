//! Workflows through the gateway: a question and an approval in the middle, and no call twice.

use std::{fs, time::Duration};

use mcp_mock::MockServer;
use serde_json::{Value, json};

use crate::support::{
    Client, Configuration, Era, Gateway, Net, Offer, Stopwatch, call_params, eventually, mock_server,
};

/// A server whose first tool fails if it is called twice, and whose second one asks.
const SERVER: &str = r#"
tools:
  reserve:
    replies:
      - structured: {seat: 7}
      - failure: it was called twice
  ask:
    replies:
      - template: '{"name": "{{ $answers.who.content.name }}"}'
        before:
          - elicit: {key: who, message: "Who goes?", schema: {type: object, properties: {name: {type: string}}}}
"#;

/// Returns an offer to answer forms: questions of the server by a name, requests for approval by consent.
fn offer() -> Offer {
    Offer::new(r#"{"elicitation":{"form":{}}}"#, |method, params| {
        let content = match params.contains("Who goes?") {
            true => json!({"name": "Zoë"}),
            false => consent(params),
        };
        let answer = json!({"action": "accept", "content": content});
        (method == "elicitation/create").then(|| answer.to_string())
    })
}

/// Fills in every field of a form for consent: `true`, or the first choice.
fn consent(params: &str) -> Value {
    let params: Value = serde_json::from_str(params).unwrap();
    let fields = params["requestedSchema"]["properties"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let filled = fields.into_iter().map(|(name, schema)| {
        let value = schema["enum"].get(0).cloned().unwrap_or(Value::Bool(true));
        (name, value)
    });
    Value::Object(filled.collect())
}

fn configuration(scenario: &std::path::Path) -> Configuration {
    let mock = json!({"kind": "mock", "template": r#"{"paid": {{ seat }}, "by": {{ name }}}"#});
    let steps = json!([
        {"name": "reserve", "tool": "peer__reserve", "input": {}},
        {"name": "who", "tool": "peer__ask", "input": {}, "depends_on": ["reserve"]},
        {"name": "pay", "tool": "pay", "input": {"seat": "$results.reserve.seat", "name": "$results.who.name"}},
    ]);
    let pay = json!({"description": "Pays.", "executor": mock, "approval": "required"});
    let order = json!({"description": "Orders.", "executor": {"kind": "workflow", "steps": steps}});
    Configuration::default()
        .server("peer", mock_server(scenario))
        .tool("pay", pay)
        .tool("order", order)
}

/// Calls the workflow, and answers what is asked.
fn assert_ordered(way: &str, client: &mut dyn Client) {
    let params = call_params("order", "{}");
    let result = client.converse("tools/call", &params).result();
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!(
        result["structuredContent"],
        json!({"paid": 7, "by": "Zoë"}),
        "{way}: {result}"
    );
    let steps = result["_meta"]["dev.toolplane/workflow"]["steps"]
        .as_array()
        .unwrap()
        .iter();
    let last: Vec<_> = steps
        .map(|step| step["step"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(last, ["reserve", "who", "pay"], "{way}");
    let asked = client.offer().asked.iter();
    assert_eq!(
        asked.filter(|(method, _)| method == "elicitation/create").count(),
        2,
        "{way}"
    );
}

#[test]
fn a_question_and_an_approval_in_the_middle_repeat_no_call() {
    for server in [Era::Modern, Era::Legacy] {
        let folder = tempfile::tempdir().unwrap();
        let scenario = folder.path().join("scenario.yaml");
        fs::write(&scenario, format!("era: {}{SERVER}", server.name())).unwrap();
        let configuration = configuration(&scenario);
        for era in [Era::Legacy, Era::Modern] {
            let way = format!("{} server, {} client", server.name(), era.name());
            let mut gateway = Gateway::stdio_offering(era, &configuration, offer());
            assert_ordered(&format!("over stdio, {way}"), &mut gateway.client);
            assert_eq!(gateway.end().code(), Some(0));
            let gateway = Gateway::http(&configuration);
            assert_ordered(
                &format!("over HTTP, {way}"),
                &mut gateway.client_offering(era, offer()),
            );
            assert_eq!(gateway.terminate().code(), Some(0));
        }
    }
}

/// A server whose first tool fails if it is called twice, and whose second one answers its first call too late.
const SLOW_SERVER: &str = r#"
tools:
  reserve:
    replies:
      - structured: {seat: 7}
      - failure: it was called twice
  print:
    replies:
      - delay: 10m
        structured: {ticket: late}
      - structured: {ticket: printed}
"#;

/// The gateway is killed while the second step runs. Another one on the same store continues the same call, once the lease of the
/// first (30 seconds) has ended, and does not call the first step again.
#[test]
fn a_killed_gateway_is_continued_without_a_repeated_call() {
    let net = Net::new();
    let server = net.serve(&MockServer::from_yaml(SLOW_SERVER).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let steps = json!([
        {"name": "reserve", "tool": "peer__reserve", "input": {}},
        {"name": "print", "tool": "peer__print", "input": {}, "depends_on": ["reserve"], "repeatable": true},
    ]);
    let configuration = json!({
        "store": {"sqlite": folder.path().join("tools.db")},
        "servers": {"peer": {"url": server.url()}},
        "workflows": {"order": {"description": "Orders.", "steps": steps, "call_timeout": "20m"}},
    });
    let path = folder.path().join("toolplane.yaml");
    fs::write(&path, configuration.to_string()).unwrap();
    let params = r#"{"name":"order","arguments":{},"_meta":{"progressToken":"steps"}}"#;

    let mut first = Gateway::stdio_of_file(&path);
    first.client.begin("tools/call", params);
    eventually("the first step has ended", || {
        first.client.drain(Duration::from_millis(50));
        let mut notifications = first.client.notifications.iter();
        notifications.any(|(_, params)| params.contains("reserve: success"))
    });
    first.kill();

    let mut second = Gateway::stdio_of_file(&path);
    let watch = Stopwatch::start();
    let result = loop {
        let answer = second.client.request("tools/call", params);
        let result: Value = serde_json::from_str(&answer.result()).unwrap();
        if result["structuredContent"]["ticket"].is_string() {
            break result;
        }
        assert!(watch.elapsed() < LEASE * 2, "{result}");
        let reason = &result["_meta"]["dev.toolplane/pending"]["reason"];
        assert_eq!(
            *reason, "another gateway runs this workflow for the same call",
            "{result}"
        );
        second.client.drain(Duration::from_secs(1));
    };
    assert_eq!(result["structuredContent"], json!({"ticket": "printed"}));
    let steps = &result["_meta"]["dev.toolplane/workflow"]["steps"];
    assert_eq!(steps[0]["status"], "resumed", "{result}");
    assert_eq!(steps[1]["status"], "success", "{result}");
    assert_eq!(second.end().code(), Some(0));
}

/// Time for which the work of a gateway belongs to it after its last renewal.
const LEASE: Duration = Duration::from_secs(30);
