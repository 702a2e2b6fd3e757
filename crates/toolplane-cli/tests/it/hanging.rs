//! A server that never completes its start, next to a healthy one.

use serde_json::{Value, json};

use crate::{
    binary::{BINARY, Place, eventually},
    serve::{Served, call},
};

fn place(more: &str) -> Place {
    let place = Place::with(&format!(
        "servers:
  hang: {{command: sleep, args: ['600'], start_timeout_ms: 300000}}
  inner: {{command: {BINARY}, args: [-c, inner.yaml, serve, --stdio]}}
{more}"
    ));
    place.write(
        "inner.yaml",
        "tools: {one: {description: The first, executor: {kind: mock, result: 1}}}",
    );
    place
}

fn list(served: &Served) -> Value {
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let answer = served.post(&served.address, &list);
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str::<Value>(body).unwrap()["result"].take()
}

/// Only `start_timeout` ends the start of the hanging server, which is longer than any test.
#[test]
fn a_server_that_hangs_holds_up_no_other() {
    let place = place("gateway: {list_wait: 1ms}");
    let hanging = json!({"server": "hang", "state": "starting"});
    let missing = |result: &Value| result["_meta"]["dev.toolplane/missing"].clone();
    let served = Served::start(&place);
    eventually("the healthy server is listed", || {
        let result = list(&served);
        assert!(
            missing(&result).as_array().unwrap().contains(&hanging),
            "{result}"
        );
        result["tools"][0]["name"] == "inner__one"
    });
    assert_eq!(missing(&list(&served)), json!([hanging]));
    let answer = served.post(&served.address, &call(2, "inner__one", &json!({})));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    drop(served);

    // The next run has the list of the healthy server at once.
    let served = Served::start(&place);
    let result = list(&served);
    assert_eq!(
        (&result["tools"][0]["name"], missing(&result)),
        (&json!("inner__one"), json!([hanging]))
    );
}
