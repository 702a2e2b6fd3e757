//! Lists that a server has for some clients only.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolplane::{
    Toolplane,
    core::{Caller, ClientCapabilities, ClientGroup, ClientIdentity, Feature, Pattern, Update},
    manifest::Configuration,
};
use toolplane_gateway::{Gateway, GatewayOptions};

use crate::support::{BehaviorExecutor, ChangingSource, Client, Http, modern, raw};

const ASKABLE: &str = r#"{"elicitation":{}}"#;
const CHANGED: &str = "notifications/tools/list_changed";

fn gateway(source: &Arc<ChangingSource>) -> Gateway {
    let mut configuration = Configuration::default();
    configuration.policy.blocklist = vec![Pattern::new("secret*")];
    let builder = Toolplane::builder()
        .configuration(configuration)
        .executor(Arc::new(BehaviorExecutor::default()))
        .source(source.clone());
    Gateway::new(
        builder.build().expect("it can be set up"),
        GatewayOptions::default(),
    )
}

/// Returns the group of a principal's clients that declare these capabilities.
fn group(principal: &str, declared: &str) -> ClientGroup {
    let capabilities = ClientCapabilities::from_json(&raw(declared));
    ClientGroup::new(
        ClientIdentity::new(None, None, capabilities, &Caller::new(principal)),
        true,
    )
}

fn names(list: &Value) -> Vec<&str> {
    let tools = list["result"]["tools"].as_array().expect("a list");
    tools
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name"))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn only_clients_whose_lists_changed_are_notified_and_see_the_change() {
    let source = ChangingSource::new(&["shared"]);
    let gateway = gateway(&source);
    let [mut own, mut other] = [(); 2].map(|()| Client::on(gateway.clone()));
    own.initialize(ASKABLE).await;
    other.initialize("{}").await;
    for client in [&mut own, &mut other] {
        assert_eq!(names(&client.value("tools/list", "").await), ["shared"]);
    }
    let clients = group("local", ASKABLE);
    source.set_own(&clients, &["grown", "secret", "shared"]);
    assert!(own.receive().await.contains(CHANGED));
    assert_eq!(names(&own.value("tools/list", "").await), ["grown", "shared"]);
    assert!(own.result("prompts/list", "").await.contains("own_prompt"));
    let call = |name: &str| format!(r#""name":"{name}","arguments":{{}}"#);
    assert!(own.value("tools/call", &call("grown")).await["result"].is_object());
    // Policy applies to these lists as well.
    let refused = own.value("tools/call", &call("secret")).await;
    assert_eq!(refused["result"]["isError"], json!(true), "{refused}");
    // The other client was not notified: the next message is the answer.
    assert_eq!(names(&other.value("tools/list", "").await), ["shared"]);
    assert_eq!(
        other.value("tools/call", &call("grown")).await["error"]["code"],
        json!(-32602)
    );
    // A tool that was removed from the client's list cannot be called.
    source.set_own(&clients, &["grown"]);
    assert!(own.receive().await.contains(CHANGED));
    assert_eq!(
        own.value("tools/call", &call("shared")).await["error"]["code"],
        json!(-32602)
    );
    assert!(other.value("tools/call", &call("shared")).await["result"].is_object());
    // Without a list of its own, the client sees the shared list again.
    source.set_own(&clients, &[]);
    assert!(own.receive().await.contains(CHANGED));
    assert_eq!(names(&own.value("tools/list", "").await), ["shared"]);
    assert_eq!(
        own.value("tools/call", &call("grown")).await["error"]["code"],
        json!(-32602)
    );
}

#[tokio::test(start_paused = true)]
async fn a_subscription_receives_changes_of_the_lists_of_its_client() {
    let source = ChangingSource::new(&["shared"]);
    let gateway = gateway(&source);
    let listen = |declared: &str| {
        format!(
            r#""notifications":{{"toolsListChanged":true}},{}"#,
            modern(declared)
        )
    };
    let [mut own, mut other] = [(); 2].map(|()| Client::on(gateway.clone()));
    for (client, declared) in [(&mut own, ASKABLE), (&mut other, "{}")] {
        let answer = client.ask("subscriptions/listen", &listen(declared)).await;
        assert!(answer.contains("acknowledged"), "{answer}");
    }
    source.set_own(&group("local", ASKABLE), &["grown"]);
    assert!(own.receive().await.contains(CHANGED));
    let list = format!(
        r#"{{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{{{}}}}}"#,
        modern("{}")
    );
    other.send(&list).await;
    assert!(
        other.receive().await.contains("shared"),
        "the answer, and nothing before it"
    );
}

#[tokio::test]
async fn nobody_sees_the_lists_of_another_principal() {
    let source = ChangingSource::new(&["shared"]);
    let http = Http::on(&gateway(&source));
    source.set_own(&group("anna", ASKABLE), &["grown"]);
    for (principal, declared, expected) in [
        ("anna", ASKABLE, "grown"),
        ("anna", "{}", "shared"),
        ("otto", ASKABLE, "shared"),
    ] {
        let headers = [("x-principal", principal)];
        let meta = modern(declared);
        let list = http.ask(&headers, "tools/list", "", &meta).await;
        assert_eq!(names(&list), [expected], "{principal} {declared}");
        for tool in ["grown", "shared"] {
            let call = format!(r#""name":"{tool}",{meta}"#);
            let answer = http.ask(&headers, "tools/call", tool, &call).await;
            assert_eq!(
                answer.get("result").is_some(),
                tool == expected,
                "{principal} {tool}: {answer}"
            );
        }
    }
}

#[tokio::test]
async fn all_clients_share_the_state_of_a_tool_by_its_name() {
    let source = ChangingSource::new(&["shared"]);
    let gateway = gateway(&source);
    let plane = gateway.plane();
    let tool = |name: &str, client: &ClientIdentity| {
        plane
            .known_tool_for(name, || client.clone())
            .expect("the client has it")
    };
    let (anna, otto) = (group("anna", ASKABLE), group("otto", ASKABLE));
    let shared = plane.known_tool("shared").expect("it is there");
    source.set_own(&anna, &["grown", "shared"]);
    let of_anna = tool("grown", &anna.identity);
    assert!(Arc::ptr_eq(
        tool("shared", &anna.identity).state(),
        shared.state()
    ));
    // The state is kept while the lists change, and shared with another client.
    source.set_own(&anna, &["grown"]);
    assert!(Arc::ptr_eq(
        tool("grown", &anna.identity).state(),
        of_anna.state()
    ));
    source.set_own(&otto, &["grown"]);
    assert!(Arc::ptr_eq(
        tool("grown", &otto.identity).state(),
        of_anna.state()
    ));
    // The state is also kept once the tool is on the shared list.
    source.set(&["grown"]);
    plane.view(&Caller::local()).await;
    let everyones = plane.known_tool("grown").expect("it is there");
    assert!(Arc::ptr_eq(everyones.state(), of_anna.state()));
}

/// A client subscribes to resources of its own lists, and is notified through the connection that serves it.
#[tokio::test(start_paused = true)]
async fn resource_updates_come_from_the_connection_of_the_client() {
    let source = ChangingSource::new(&["shared"]);
    source.set_others(&[(Feature::Resource, "test://both")]);
    let gateway = gateway(&source);
    let notices = gateway.clone();
    let [mut own, mut other] = [(); 2].map(|()| Client::on(notices.clone()));
    own.initialize(ASKABLE).await;
    other.initialize("{}").await;
    let clients = group("local", ASKABLE);
    source.set_own(&clients, &["grown"]);
    assert!(own.receive().await.contains(CHANGED));
    let uri = |uri: &str| format!(r#""uri":"{uri}""#);
    for resource in ["own://note", "test://both"] {
        assert_eq!(own.result("resources/subscribe", &uri(resource)).await, "{}");
    }
    assert_eq!(source.own_subscribed(), ["own://note", "test://both"]);
    assert!(
        source.subscribed().is_empty(),
        "nobody has asked the shared connection"
    );
    let refused = other.value("resources/subscribe", &uri("own://note")).await;
    assert_eq!(refused["error"]["code"], json!(-32002), "{refused}");
    assert_eq!(
        other.result("resources/subscribe", &uri("test://both")).await,
        "{}"
    );
    assert_eq!(source.subscribed(), ["test://both"]);
    for resource in ["own://note", "test://both"] {
        source.tell(&Update::ClientResource {
            clients: clients.clone(),
            params: raw(&format!("{{{}}}", uri(resource))),
        });
        let told = own.receive().await;
        assert!(
            told.contains("notifications/resources/updated") && told.contains(&uri(resource)),
            "{told}"
        );
    }
    // The other client was not notified: the next message is the answer.
    assert_eq!(names(&other.value("tools/list", "").await), ["shared"]);
    // Subscriptions without clients end soon, others continue.
    for resource in ["own://note", "test://both"] {
        own.result("resources/unsubscribe", &uri(resource)).await;
    }
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert!(source.own_subscribed().is_empty());
    assert_eq!(source.subscribed(), ["test://both"]);
}
