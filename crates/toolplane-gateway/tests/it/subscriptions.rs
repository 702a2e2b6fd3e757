//! Subscriptions of clients to resources.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::time::sleep;
use toolplane::{Toolplane, core::Feature, manifest::Configuration};
use toolplane_gateway::{Gateway, GatewayOptions};

use crate::support::{BehaviorExecutor, ChangingSource, Client, MODERN};

fn source() -> Arc<ChangingSource> {
    let source = ChangingSource::new(&[]);
    source.set_others(&[
        (Feature::Resource, "test://a"),
        (Feature::Resource, "test://quiet"),
        (Feature::Resource, "test://secret"),
        (Feature::ResourceTemplate, "test://t/{id}"),
    ]);
    source
}

fn client(source: &Arc<ChangingSource>) -> Client {
    let mut configuration = Configuration::default();
    configuration.policy.blocklist = vec![toolplane::core::Pattern::new("*secret")];
    configuration.policy.approval.required = vec![toolplane::core::Pattern::new("*asked")];
    let builder = Toolplane::builder()
        .configuration(configuration)
        .executor(Arc::new(BehaviorExecutor::default()))
        .source(source.clone());
    Client::new(builder.build().expect("it can be set up"))
}

const CHANGED: &str = r#"{ "uri":"test://a", "n":1e2 }"#;

#[tokio::test(start_paused = true)]
async fn a_legacy_client_subscribes_resource_by_resource() {
    let source = source();
    let mut client = client(&source);
    client.initialize("{}").await;
    for uri in ["test://a", "test://t/1"] {
        let result = client
            .result("resources/subscribe", &format!(r#""uri":"{uri}""#))
            .await;
        assert_eq!(result, "{}");
    }
    assert_eq!(source.subscribed(), ["test://a", "test://t/1"]);
    source.update(r#"{"uri":"test://t/2"}"#);
    source.update(CHANGED);
    assert_eq!(
        client.receive().await,
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{CHANGED}}}"#)
    );
    // A subscription continues while a client has it, and ends soon after.
    client
        .result("resources/unsubscribe", r#""uri":"test://t/1""#)
        .await;
    sleep(Duration::from_secs(61)).await;
    assert_eq!(source.subscribed(), ["test://a"]);
    client
        .result("resources/unsubscribe", r#""uri":"test://a""#)
        .await;
    sleep(Duration::from_secs(61)).await;
    assert!(source.subscribed().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_subscription_ends_also_when_its_resource_has_left_the_list() {
    let source = source();
    let mut client = client(&source);
    client.initialize("{}").await;
    let uri = r#""uri":"test://a""#;
    client.result("resources/list", "").await;
    client.result("resources/subscribe", uri).await;
    source.set_others(&[]);
    assert!(client.receive().await.contains("list_changed"));
    assert_eq!(source.subscribed(), ["test://a"]);
    client.result("resources/unsubscribe", uri).await;
    sleep(Duration::from_secs(61)).await;
    assert!(source.subscribed().is_empty());
}

#[tokio::test]
async fn subscribing_needs_permission_to_read() {
    let source = source();
    let mut client = client(&source);
    client.initialize("{}").await;
    for (uri, code, kind) in [
        ("test://secret", -32602, "denied"),
        ("test://t/secret", -32602, "denied"),
        // Reading it needs an approval.
        ("test://t/asked", -32602, "denied"),
        ("other://a", -32002, "not_found"),
        ("test://quiet", -32603, "upstream_error"),
    ] {
        let answer = client
            .value("resources/subscribe", &format!(r#""uri":"{uri}""#))
            .await;
        assert_eq!(answer["error"]["code"], json!(code), "{uri}: {answer}");
        let why = &answer["error"]["data"]["dev.toolplane/error"]["kind"];
        assert_eq!(why, kind, "{uri}: {answer}");
    }
    let answer = client.value("resources/subscribe", "").await;
    assert_eq!(answer["error"]["code"], json!(-32602), "{answer}");
    assert!(source.subscribed().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_modern_subscription_holds_only_resources_that_can_be_watched() {
    let source = source();
    let mut client = client(&source);
    let filter = r#""notifications":{"resourceSubscriptions":["other://a","test://a","test://quiet","test://secret"]}"#;
    let acknowledged = client
        .ask("subscriptions/listen", &format!("{filter},{MODERN}"))
        .await;
    assert!(
        acknowledged.contains(r#""notifications":{"resourceSubscriptions":["test://a"]}"#),
        "{acknowledged}"
    );
    assert_eq!(source.subscribed(), ["test://a"]);
    source.update(CHANGED);
    let news = client.receive().await;
    assert!(
        news.contains(r#""params":{ "uri":"test://a", "n":1e2 ,"_meta":"#),
        "{news}"
    );
    sleep(Duration::from_secs(120)).await;
    assert_eq!(source.subscribed(), ["test://a"]);
    client
        .send(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":1,{MODERN}}}}}"#
        ))
        .await;
    sleep(Duration::from_secs(61)).await;
    assert!(source.subscribed().is_empty());
}

#[tokio::test]
async fn subscribing_needs_a_connection() {
    let source = source();
    let builder = Toolplane::builder().executor(Arc::new(BehaviorExecutor::default()));
    let plane = builder.source(source.clone()).build().expect("it can be set up");
    let http = crate::support::Http::new(plane);
    let answer = http.legacy("resources/subscribe", r#""uri":"test://a""#).await;
    assert_eq!(answer["error"]["code"], json!(-32600), "{answer}");
    assert!(source.subscribed().is_empty());
}

#[tokio::test]
async fn the_number_of_subscribed_resources_is_limited() {
    let source = source();
    // Each client may watch up to 1,024 resources; the number of clients is unlimited.
    let builder = Toolplane::builder().executor(Arc::new(BehaviorExecutor::default()));
    let plane = builder.source(source.clone()).build().expect("it can be set up");
    let gateway = Gateway::new(plane, GatewayOptions::default());
    let mut clients = Vec::new();
    for number in 0..5 {
        let mut client = Client::on(gateway.clone());
        let uris: Vec<String> = (0..1000)
            .map(|index| format!(r#""test://t/{number}-{index}""#))
            .collect();
        let filter = format!(
            r#""notifications":{{"resourceSubscriptions":[{}]}}"#,
            uris.join(",")
        );
        client
            .ask("subscriptions/listen", &format!("{filter},{MODERN}"))
            .await;
        clients.push(client);
    }
    assert_eq!(source.subscribed().len(), 4096);
}
