//! Notifications of servers reach the clients of the gateway: changes of lists and of resources.

use std::{fs, time::Duration};

use serde_json::json;

use crate::support::{
    Client, Configuration, Era, Gateway, List, call_params, end_both, eventually, everything_at_no_time,
    members, mock_server, text,
};

const LIST_CHANGED: &str = "notifications/resources/list_changed";

/// Returns the arguments of a call that adds a resource of this name to the server.
fn new_resource(name: &str) -> String {
    json!({"name": name, "data": "data:text/plain,hello"}).to_string()
}

/// Returns `true` if the resource is listed; checks its content.
fn has_resource(client: &mut dyn Client, name: &str) -> bool {
    let uri = format!("demo://resource/session/{name}");
    if !client.list(List::Resources).iter().any(|(key, _)| *key == uri) {
        return false;
    }
    let read = client.request("resources/read", &json!({"uri": uri}).to_string());
    assert!(members(&read.result())["contents"].contains("application/gzip"));
    true
}

#[test]
fn a_list_that_has_changed() {
    let Some((peer, _folder)) = everything_at_no_time("stdio") else {
        return;
    };
    let configuration = Configuration::default().peer("peer", &peer);
    let http = Gateway::http(&configuration);
    let mut stdio = Gateway::stdio(&configuration);
    let (mut legacy, mut modern) = (http.client(Era::Legacy), http.client(Era::Modern));
    assert!(!has_resource(&mut legacy, "new.gz"));
    let told = [
        legacy.listen(""),
        modern.listen(r#"{"resourcesListChanged":true}"#),
    ];
    legacy
        .call("peer__gzip-file-as-resource", &new_resource("new.gz"))
        .result();
    for stream in told {
        stream.wait_for(LIST_CHANGED);
    }
    // The notified client finds it in the list.
    assert!(has_resource(&mut legacy, "new.gz"));
    assert!(has_resource(&mut modern, "new.gz"));

    let client = &mut stdio.client;
    assert!(!has_resource(client, "other.gz"));
    client
        .call("peer__gzip-file-as-resource", &new_resource("other.gz"))
        .result();
    eventually("the client on stdio is told", || {
        client.drain(Duration::from_millis(20));
        client
            .notifications
            .iter()
            .any(|(method, _)| method == LIST_CHANGED)
    });
    assert!(has_resource(client, "other.gz"));
    end_both(stdio, http);
}

const UPDATED: &str = "notifications/resources/updated";

#[test]
fn a_resource_that_has_changed() {
    let Some((peer, _folder)) = everything_at_no_time("stdio") else {
        return;
    };
    let uri = "demo://resource/dynamic/text/1";
    let params = json!({"uri": uri}).to_string();
    let configuration = Configuration::default().peer("peer", &peer);
    let http = Gateway::http(&configuration);
    let mut stdio = Gateway::stdio(&configuration);
    let (mut legacy, mut modern) = (http.client(Era::Legacy), http.client(Era::Modern));
    let mut other = http.client(Era::Legacy);
    let told = [
        legacy.listen(""),
        modern.listen(&json!({"resourceSubscriptions": [uri]}).to_string()),
    ];
    let not_told = other.listen("");
    let client = &mut stdio.client;
    for client in [&mut legacy as &mut dyn Client, client] {
        client.request("resources/subscribe", &params).result();
        // The server sends updates from now on.
        client.call("peer__toggle-subscriber-updates", "{}").result();
    }
    for stream in told {
        assert_eq!(text(&members(&stream.wait_for(UPDATED))["uri"]), uri);
    }
    let is_update = |(method, params): &(String, String)| method == UPDATED && params.contains(uri);
    eventually("the client on stdio is told", || {
        client.drain(Duration::from_millis(20));
        client.notifications.iter().any(is_update)
    });
    // A client without this subscription receives other notifications only; one about a started server may be among
    // them.
    assert!(!has_resource(&mut other, "last.gz"));
    legacy
        .call("peer__gzip-file-as-resource", &new_resource("last.gz"))
        .result();
    loop {
        let (news, _) = not_told.next();
        assert_ne!(news, UPDATED);
        if news == LIST_CHANGED {
            break;
        }
    }

    for client in [&mut legacy as &mut dyn Client, client] {
        client.request("resources/unsubscribe", &params).result();
        let unknown = json!({"uri": "test:none"}).to_string();
        let answer = client.request("resources/subscribe", &unknown);
        assert_eq!(answer.error_code(), -32002, "{answer:?}");
    }
    end_both(stdio, http);
}

/// A server that sends progress and logs during a call.
const TALKATIVE: &str = r#"
tools:
  act:
    replies:
      - text: done
        before:
          - log: {level: debug, data: for nobody}
          - log: {level: warning, logger: station, data: {wind: 7, text: "é"}}
          - log: {level: error, data: [1, 2]}
"#;

#[test]
fn the_log_messages_of_a_call_that_its_client_wants() {
    let folder = tempfile::tempdir().unwrap();
    for era in [Era::Legacy, Era::Modern] {
        let scenario = folder.path().join(format!("{}.yaml", era.name()));
        fs::write(&scenario, format!("era: {}{TALKATIVE}", era.name())).unwrap();
        let configuration = Configuration::default().server("peer", mock_server(&scenario));
        let http = Gateway::http(&configuration);
        let mut stdio = Gateway::stdio(&configuration);
        let (mut legacy, mut modern) = (http.client(Era::Legacy), http.client(Era::Modern));
        let call = call_params("peer__act", "{}");
        let wanting =
            r#"{"name":"peer__act","arguments":{},"_meta":{"io.modelcontextprotocol/logLevel":"info"}}"#;

        // Unwanted notifications are not sent.
        modern.request("tools/call", &call).result();
        assert_eq!(modern.notifications, []);
        modern.request("tools/call", wanting).result();
        for client in [&mut stdio.client as &mut dyn Client, &mut legacy] {
            client.request("logging/setLevel", r#"{"level":"info"}"#).result();
            client.request("tools/call", &call).result();
        }
        for (way, notifications) in [
            ("over stdio", &stdio.client.notifications),
            ("over HTTP in the legacy era", &legacy.notifications),
            ("over HTTP in the modern era", &modern.notifications),
        ] {
            let messages: Vec<_> = notifications
                .iter()
                .map(|(method, params)| {
                    let mut params = members(params);
                    params.remove("_meta");
                    (method.as_str(), params)
                })
                .collect();
            let expected = [
                r#"{"level":"warning","logger":"station","data":{"wind":7,"text":"é"}}"#,
                r#"{"level":"error","data":[1,2]}"#,
            ];
            let expected = expected.map(|params| ("notifications/message", members(params)));
            assert_eq!(messages, expected, "{way} from a {} server", era.name());
        }
        end_both(stdio, http);
    }
}
