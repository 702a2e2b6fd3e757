//! Servers whose lists change while they run: each client sees the lists of its own server process, is notified of
//! their changes, and can call the new tools.

use std::path::Path;

use serde_json::json;
use tool_testkit::{PeerCommand, Peers, Skip};

use crate::support::{
    Client as _, Configuration, Era, Gateway, HttpClient, HttpGateway, List, Notifications, Offer,
    eventually, installed, members,
};

/// Isolation of each server, by name.
const SERVERS: [(&str, &str); 4] = [
    ("a", "auto"),
    ("h", "shared"),
    ("s", "session"),
    ("p", "principal"),
];
const EVERY_LIST: &str = r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}"#;
const NOTIFICATIONS: [&str; 3] = [
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
];

/// A client of the gateway with its notifications.
struct Listener {
    client: HttpClient,
    told: Notifications,
    era: Era,
    elicits: bool,
}

/// Returns the clients of a test. Clients with the same era and capabilities cannot be told apart without a session.
fn clients(gateway: &HttpGateway) -> Vec<Listener> {
    let kinds = [
        (Era::Legacy, false),
        (Era::Legacy, true),
        (Era::Legacy, true),
        (Era::Modern, false),
        (Era::Modern, true),
    ];
    let clients = kinds.into_iter().map(|(era, elicits)| {
        let capabilities = if elicits { r#"{"elicitation":{}}"# } else { "{}" };
        let mut client = gateway.client_offering(era, Offer::new(capabilities, |_, _| None));
        let told = client.listen(EVERY_LIST);
        Listener {
            client,
            told,
            era,
            elicits,
        }
    });
    clients.collect()
}

/// Returns `true` if the two clients share a server process.
fn shares(isolation: &str, one: (usize, &Listener), other: (usize, &Listener)) -> bool {
    match isolation {
        "shared" => true,
        "principal" => one.1.elicits == other.1.elicits,
        "auto" if !one.1.elicits && !other.1.elicits => true,
        _ => one.0 == other.0,
    }
}

fn texts(client: &mut HttpClient, list: List) -> Vec<String> {
    client.list(list).into_iter().map(|(key, _)| key).collect()
}

/// Adds features for each client, and checks the lists of all clients.
fn each_client_has_the_lists_of_its_process(peer: &PeerCommand) {
    let configuration = SERVERS
        .iter()
        .fold(Configuration::default(), |all, (name, isolation)| {
            all.peer_with(name, peer, &json!({"isolation": isolation, "era": "legacy"}))
        });
    let gateway = Gateway::http(&configuration);
    let mut clients = clients(&gateway);
    for (server, isolation) in SERVERS {
        for (n, listener) in clients.iter_mut().enumerate() {
            grows(listener, server, &format!("{server}grown{n}"), isolation);
        }
    }
    for (server, isolation) in SERVERS {
        for other in 0..clients.len() {
            let listed = texts(&mut clients[other].client, List::Tools);
            for n in 0..clients.len() {
                let is_shared = shares(isolation, (n, &clients[n]), (other, &clients[other]));
                let name = format!("{server}__{server}grown{n}");
                let who = format!("{isolation}: what client {n} made, for client {other}");
                assert_eq!(listed.contains(&name), is_shared, "{who}: {listed:?}");
                if !is_shared {
                    let refused = clients[other].client.call(&name, "{}");
                    assert_eq!(refused.error_code(), -32602, "{who}");
                }
            }
        }
    }
    // A feature that is removed is gone for this client.
    for (server, isolation) in SERVERS {
        let listener = &mut clients[1];
        let client = &mut listener.client;
        listener.told.clear();
        let name = format!("{server}grown1");
        client
            .call(&format!("{server}__shrink"), &json!({"name": name}).to_string())
            .result();
        listener.told.wait_for(NOTIFICATIONS[0]);
        let name = format!("{server}__{name}");
        eventually("the tool is gone", || !texts(client, List::Tools).contains(&name));
        assert_eq!(client.call(&name, "{}").error_code(), -32602, "{isolation}");
    }
    assert_eq!(gateway.terminate().code(), Some(0));
}

/// Adds features for a client, which is notified, and finds and uses all of them.
fn grows(listener: &mut Listener, server: &str, name: &str, isolation: &str) {
    let who = format!(
        "{isolation}, {}, elicits: {}",
        listener.era.name(),
        listener.elicits
    );
    let client = &mut listener.client;
    let tool = format!("{server}__{name}");
    listener.told.clear();
    client
        .call(&format!("{server}__grow"), &json!({"name": name}).to_string())
        .result();
    let mut missing = NOTIFICATIONS.to_vec();
    while !missing.is_empty() {
        let (told, _) = listener.told.next();
        missing.retain(|notification| *notification != told);
    }
    eventually(&format!("{who}: the tool is listed"), || {
        texts(client, List::Tools).contains(&tool)
    });
    let called = members(&client.call(&tool, "{}").result());
    assert!(called["content"].contains(name), "{who}: {called:?}");
    // The resources of all servers have the same URIs, and the first server with a URI wins.
    let uri = format!("grown://{name}");
    assert!(texts(client, List::Resources).contains(&uri), "{who}");
    let read = client.request("resources/read", &json!({"uri": uri}).to_string());
    assert!(members(&read.result())["contents"].contains(name), "{who}");
    assert!(texts(client, List::Prompts).contains(&tool), "{who}");
    let prompt = json!({"name": tool, "arguments": {"word": "word"}}).to_string();
    let prompt = members(&client.request("prompts/get", &prompt).result());
    assert!(
        prompt["messages"].contains(&format!("{name} word")),
        "{who}: {prompt:?}"
    );
    let complete = json!({
        "ref": {"type": "ref/prompt", "name": tool}, "argument": {"name": "word", "value": "w"},
    });
    let completed = members(
        &client
            .request("completion/complete", &complete.to_string())
            .result(),
    );
    assert!(
        completed["completion"].contains(&format!("{name} w")),
        "{who}: {completed:?}"
    );
}

/// Concurrent calls of a client that can be asked share its process.
#[test]
fn fifty_calls_at_once_take_two_processes() {
    let Some(peer) = installed(Peers::time) else {
        return;
    };
    let configuration = Configuration::default()
        .peer_with("peer", &peer, &json!({"era": "legacy"}))
        // A list waits for the server, so that slow machines pass.
        .gateway(json!({"list_wait": "60s"}));
    let folder = tempfile::tempdir().unwrap();
    let log_level = ("TOOLPLANE_LOG", "info".to_owned());
    let gateway = HttpGateway::of_file(&configuration.write(folder.path()), &[log_level]);
    let offer = || Offer::new(r#"{"elicitation":{}}"#, |_, _| None);
    let mut client = gateway.client_offering(Era::Modern, offer());
    assert!(!texts(&mut client, List::Tools).is_empty());
    for _round in 0..2 {
        std::thread::scope(|scope| {
            for _ in 0..50 {
                scope.spawn(|| {
                    let mut client = gateway.client_offering(Era::Modern, offer());
                    let called = client.call("peer__get_current_time", r#"{"timezone":"UTC"}"#);
                    assert!(members(&called.result())["content"].contains("UTC"));
                });
            }
        });
        let servers = gateway.process.descendants().len();
        assert!(servers <= 2, "{servers} processes");
    }
    let log = gateway.process.stderr();
    let opened = log.matches("opening a dedicated connection: the client has none");
    assert_eq!(opened.count(), 1, "{log}");
    assert_eq!(gateway.terminate().code(), Some(0));
}

fn script(find: impl FnOnce(&Peers, &Path) -> Result<PeerCommand, Skip>) -> Option<PeerCommand> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/dynamic.py");
    installed(|peers| find(peers, &script))
}

#[test]
fn lists_of_a_fastmcp_server() {
    if let Some(peer) = script(Peers::fastmcp) {
        each_client_has_the_lists_of_its_process(&peer);
    }
}

#[test]
fn lists_of_an_mcp_2_server() {
    if let Some(peer) = script(Peers::python_script) {
        each_client_has_the_lists_of_its_process(&peer);
    }
}
