//! Notifications of changes over HTTP, to clients of both eras.

use mcp_server::{HttpServerOptions, Notifier};

use crate::support::{Connection, EVERYTHING, Head, META, Served, raw};

fn listen(filter: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{{"notifications":{filter},{META}}}}}"#
    )
}

/// `_meta` of a client that supports tasks.
fn following(filter: &str) -> String {
    let declared =
        r#""io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    listen(filter).replace(r#""io.modelcontextprotocol/clientCapabilities":{}"#, declared)
}

fn head() -> Head<'static> {
    Head::modern("subscriptions/listen")
}

async fn start() -> (Served, Notifier) {
    let notices = Notifier::default();
    let served = Served::start(HttpServerOptions::default().notifier(notices.clone())).await;
    served.log.offer(EVERYTHING);
    (served, notices)
}

/// Opens a subscription. Returns its stream and the acknowledged filter.
async fn subscribed(served: &Served, filter: &str) -> (Connection, String) {
    let mut stream = served.connect().await;
    stream.send(&head(), &listen(filter)).await;
    let answer = stream.head().await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("text/event-stream"))
    );
    let acknowledged = stream.event().await.unwrap();
    (stream, acknowledged)
}

const MARK: &str = r#""_meta":{"io.modelcontextprotocol/subscriptionId":"s"}"#;

fn updated(uri: &str) -> raw_json::RawJson {
    raw(&format!(r#"{{"uri":"{uri}"}}"#))
}

#[tokio::test]
async fn a_subscription_brings_what_it_asked_for_and_nothing_else() {
    let (served, notices) = start().await;
    let filter = r#"{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["test:a","test:dir"],"unknown":1}"#;
    let (mut stream, acknowledged) = subscribed(&served, filter).await;
    // Changes of prompts are not offered.
    assert_eq!(
        acknowledged,
        format!(
            "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{{\"notifications\":{{\"toolsListChanged\":true,\"resourceSubscriptions\":[\"test:a\",\"test:dir\"]}},{MARK}}}}}\n\n"
        )
    );
    assert_eq!(notices.subscribed_uris(), ["test:a", "test:dir"]);
    notices.send("notifications/prompts/list_changed", None);
    notices.send("notifications/resources/list_changed", None);
    notices.send("notifications/other", None);
    for uri in ["test:b", "test:ab", "test:directory"] {
        notices.send("notifications/resources/updated", Some(&updated(uri)));
    }
    notices.send("notifications/tools/list_changed", None);
    notices.send("notifications/resources/updated", Some(&updated("test:dir/file")));
    for expected in [
        format!(r#""method":"notifications/tools/list_changed","params":{{{MARK}}}"#),
        format!(r#""method":"notifications/resources/updated","params":{{"uri":"test:dir/file",{MARK}}}"#),
    ] {
        let event = stream.event().await.unwrap();
        assert!(event.contains(&expected), "{event}");
    }
}

#[tokio::test]
async fn of_each_resource_and_task_the_latest_is_told_however_many_change_at_once() {
    let (served, notices) = start().await;
    let uris: Vec<_> = (0..200).map(|number| format!("\"test:{number}\"")).collect();
    let filter = format!(
        r#"{{"toolsListChanged":true,"resourceSubscriptions":[{},"test:last"],"taskIds":["a"]}}"#,
        uris.join(",")
    );
    served.log.offer(
        r#"{"tools":{"listChanged":true},"resources":{"subscribe":true},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
    );
    let mut stream = served.connect().await;
    stream.send(&head(), &following(&filter)).await;
    assert_eq!(stream.head().await.status, 200);
    assert!(stream.event().await.unwrap().contains("acknowledged"));
    let task = |status: &str| raw(&format!(r#"{{"taskId":"a","status":"{status}"}}"#));
    let change = |uri: &str| notices.send("notifications/resources/updated", Some(&updated(uri)));
    // The client does not read meanwhile.
    for status in ["working", "completed"] {
        (0..200).for_each(|number| change(&format!("test:{number}")));
        notices.send("notifications/tasks", Some(&task(status)));
        notices.send("notifications/tools/list_changed", None);
    }
    change("test:last");
    let mut told: Vec<String> = Vec::new();
    while !told.last().is_some_and(|event| event.contains("test:last")) {
        told.push(stream.event().await.unwrap());
    }
    let n_told = |part: &str| told.iter().filter(|event| event.contains(part)).count();
    for uri in &uris {
        assert!(n_told(uri) > 0, "{uri}");
    }
    assert_eq!((n_told("working"), n_told("completed")), (0, 1));
    assert_eq!(n_told("tools/list_changed"), 1);
    // From then on, notifications are sent as before.
    notices.send("notifications/tools/list_changed", None);
    assert!(stream.event().await.unwrap().contains("tools/list_changed"));
}

#[tokio::test]
async fn a_subscription_ends_with_its_answer() {
    let (mut served, _) = start().await;
    let (mut stream, _) = subscribed(&served, "{}").await;
    served.stop();
    let end = format!(
        "data: {{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"result\":{{\"resultType\":\"complete\",{MARK}}}}}\n\n"
    );
    assert_eq!(stream.event().await.unwrap(), end);
    assert_eq!(stream.event().await, None);
    served.stopped().await;
}

#[tokio::test]
async fn a_lost_subscription_watches_nothing() {
    let (served, notices) = start().await;
    let (stream, _) = subscribed(&served, r#"{"resourceSubscriptions":["test:a"]}"#).await;
    drop(stream);
    crate::support::soon(async {
        while !notices.subscribed_uris().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_subscribed_to_is_refused() {
    let (served, _) = start().await;
    let many = format!("[{}\"test:b\"]", "\"test:a\",".repeat(2000));
    let distinct: String = (0..1025).map(|number| format!("\"test:{number}\",")).collect();
    let distinct = format!("{{\"resourceSubscriptions\":[{distinct}\"test:\"]}}");
    for (filter, status, expected) in [
        ("7", 200, "-32602"),
        (r#"{"resourceSubscriptions":7}"#, 200, "-32602"),
        (r#"{"resourceSubscriptions":[7]}"#, 200, "-32602"),
        (&*distinct, 200, "-32602"),
    ] {
        let answer = served.once(&head(), &listen(filter)).await;
        assert_eq!(answer.status, status, "{filter}");
        assert!(answer.body.contains(expected), "{filter}: {}", answer.body);
    }
    // A resource counts once.
    let (_stream, acknowledged) =
        subscribed(&served, &format!(r#"{{"resourceSubscriptions":{many}}}"#)).await;
    assert!(acknowledged.contains(r#"["test:a","test:b"]"#), "{acknowledged}");
    let json = head().with("Accept", "application/json");
    assert_eq!(served.once(&json, &listen("{}")).await.status, 406);
    served.log.offer(r#"{"tools":{}}"#);
    let answer = served.once(&head(), &listen("{}")).await;
    assert_eq!(answer.status, 404);
    assert!(answer.body.contains("-32601"), "{}", answer.body);
}

#[tokio::test]
async fn a_session_hears_of_the_resources_that_it_watches() {
    let (served, notices) = start().await;
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t"}}}"#;
    let opened = served.once(&Head::post(), initialize).await;
    let session = Head::post().with("Mcp-Session-Id", opened.header("mcp-session-id").unwrap());
    let mut stream = served.connect().await;
    stream.send(&session.clone().method("GET"), "").await;
    assert_eq!(stream.head().await.status, 200);
    let request = |method: &str, uri: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"resources/{method}","params":{{"uri":"{uri}"}}}}"#)
    };
    for uri in ["test:a", "test:b"] {
        let answer = served.once(&session, &request("subscribe", uri)).await;
        assert!(answer.body.contains(r#""result":{}"#), "{}", answer.body);
    }
    // Resources that the service refuses are not subscribed to.
    let refused = served.once(&session, &request("subscribe", "bad:c")).await;
    assert!(refused.body.contains("-32002"), "{}", refused.body);
    served.once(&session, &request("unsubscribe", "test:a")).await;
    assert_eq!(notices.subscribed_uris(), ["test:b"]);
    for uri in ["bad:c", "test:a", "test:b"] {
        notices.send("notifications/resources/updated", Some(&updated(uri)));
    }
    let event = stream.event().await.unwrap();
    assert!(event.contains(r#""params":{"uri":"test:b"}"#), "{event}");
}

#[tokio::test]
async fn the_service_says_what_may_be_watched() {
    let (served, notices) = start().await;
    let filter = r#"{"resourceSubscriptions":["test:a","test:secret"]}"#;
    let (mut stream, acknowledged) = subscribed(&served, filter).await;
    assert!(
        acknowledged.contains(r#""notifications":{"resourceSubscriptions":["test:a"]}"#),
        "{acknowledged}"
    );
    notices.send("notifications/resources/updated", Some(&updated("test:secret")));
    notices.send("notifications/resources/updated", Some(&updated("test:a")));
    assert!(stream.event().await.unwrap().contains("test:a"));
}

#[tokio::test]
async fn tasks_are_watched_as_far_as_the_service_agrees() {
    let (served, notices) = start().await;
    let filter = r#"{"taskIds":["t1","other","t2"]}"#;
    // Parts that the server does not offer are left out.
    let (_stream, acknowledged) = subscribed(&served, filter).await;
    assert!(acknowledged.contains(r#""notifications":{}"#), "{acknowledged}");
    served
        .log
        .offer(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#);
    let refused = served.once(&head(), &listen(filter)).await;
    assert_eq!(refused.status, 400, "{}", refused.body);
    assert!(
        refused.body.contains(r#""code":-32021"#)
            && refused
                .body
                .contains(r#"{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#),
        "{}",
        refused.body
    );
    let invalid = served.once(&head(), &following(r#"{"taskIds":["t1",2]}"#)).await;
    assert!(invalid.body.contains("-32602"), "{}", invalid.body);
    let mut stream = served.connect().await;
    stream.send(&head(), &following(filter)).await;
    assert_eq!(stream.head().await.status, 200);
    let acknowledged = stream.event().await.unwrap();
    assert!(
        acknowledged.contains(r#""notifications":{"taskIds":["t1","t2"]}"#),
        "{acknowledged}"
    );
    assert!(notices.has_task_subscriber("t1") && !notices.has_task_subscriber("other"));
    for id in ["other", "t2"] {
        let task = raw(&format!(r#"{{"taskId":"{id}","n":1e2}}"#));
        notices.send("notifications/tasks", Some(&task));
    }
    let event = stream.event().await.unwrap();
    let expected = format!(r#""method":"notifications/tasks","params":{{"taskId":"t2","n":1e2,{MARK}}}"#);
    assert!(event.contains(&expected), "{event}");
    drop(stream);
}
