//! A client that follows a task of a third-party server through the gateway.

use serde_json::{Value, json};

use crate::support::{Client as _, Configuration, Era, Gateway, Offer, everything_at_no_time};

#[test]
fn a_client_follows_a_task_that_asks() {
    let Some((peer, _folder)) = everything_at_no_time("stdio") else {
        return;
    };
    let offer = Offer::new(r#"{"elicitation":{"form":{}}}"#, |method, _| {
        let answer = r#"{"action":"accept","content":{"interpretation":"snake"}}"#;
        (method == "elicitation/create").then(|| answer.to_owned())
    });
    let configuration = Configuration::default().peer("peer", &peer);
    let mut gateway = Gateway::stdio_offering(Era::Legacy, &configuration, offer);
    let mut ask = |method: &str, params: &Value| {
        let id = gateway.client.begin(method, &params.to_string());
        gateway.client.wait(id)
    };
    let call = json!({
        "name": "peer__simulate-research-query",
        "arguments": {"topic": "python", "ambiguous": true},
        "task": {"ttl": 60_000},
    });
    let made: Value = serde_json::from_str(&ask("tools/call", &call).result()).unwrap();
    let about = json!({"taskId": made["task"]["taskId"]});
    assert_eq!(made["task"]["status"], "working", "{made}");
    let result: Value = serde_json::from_str(&ask("tasks/result", &about).result()).unwrap();
    assert!(
        result["content"][0]["text"].as_str().unwrap().contains("snake"),
        "{result}"
    );
    assert_eq!(result["_meta"]["io.modelcontextprotocol/related-task"], about);
    let list: Value = serde_json::from_str(&ask("tasks/list", &json!({})).result()).unwrap();
    assert_eq!(list["tasks"][0]["taskId"], about["taskId"], "{list}");
    assert_eq!(list["tasks"][0]["status"], "completed", "{list}");
    // The task is over.
    assert_eq!(ask("tasks/cancel", &about).error_code(), -32602);
    let questions = gateway.client.offer().asked.iter();
    let params: Vec<Value> = questions
        .filter(|(method, _)| method == "elicitation/create")
        .map(|(_, params)| serde_json::from_str(params).unwrap())
        .collect();
    assert_eq!(params.len(), 1);
    assert_eq!(params[0]["_meta"]["io.modelcontextprotocol/related-task"], about);
    assert!(gateway.end().success());
}
