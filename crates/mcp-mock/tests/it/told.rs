//! Notifications in both directions.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
    time::Duration,
};

use mcp_client::{EraChoice, RequestOptions};
use mcp_mock::{MockReply, MockResource, MockServer, MockTool};
use mcp_wire::LogLevel;
use serde_json::json;

use crate::support::{Client, Transport, WAYS, raw, soon, speaking};

#[tokio::test]
async fn progress_comes_before_the_answer() {
    for (transport, era) in WAYS {
        let server = MockServer::builder()
            .tool(MockTool::new("work").reply(MockReply::text("done").progress(1, 2).progress(2, 2)))
            .build();
        let client = Client::open(&server, transport, speaking(era)).await.unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let seeing = Arc::clone(&seen);
        let options = RequestOptions::default().on_progress(move |report| {
            seeing
                .lock()
                .unwrap()
                .push(report.get("progress").unwrap().to_string());
        });
        let call = raw(r#"{"name":"work"}"#);
        soon(client.connection.request("tools/call", Some(call), options))
            .await
            .unwrap();
        assert_eq!(*seen.lock().unwrap(), ["1", "2"], "{transport:?} {era:?}");
    }
}

#[tokio::test]
async fn log_messages_come_to_those_who_want_them() {
    let server = MockServer::builder()
        .tool(
            MockTool::new("work").reply(
                MockReply::text("done")
                    .log(LogLevel::Debug, "unwanted")
                    .log(LogLevel::Error, "wanted"),
            ),
        )
        .build();
    let client = Client::open(&server, Transport::Stdio, speaking(mcp_client::EraChoice::Legacy))
        .await
        .unwrap();
    let mut events = client.connection.events();
    client
        .connection
        .set_log_level("warning", RequestOptions::default())
        .await
        .unwrap();
    client.call("work", json!({})).await.unwrap();
    let event = soon(events.next()).await.unwrap();
    let params = event.params.unwrap();
    assert_eq!(params.get("data").unwrap().as_str(), r#""wanted""#);
    assert_eq!(params.get("level").unwrap().as_str(), r#""error""#);
}

#[tokio::test]
async fn lists_change_in_the_middle_of_a_call_and_from_outside() {
    for (transport, era) in WAYS {
        let server = MockServer::builder()
            .tool(
                MockTool::new("grow").reply(
                    MockReply::text("grown")
                        .add_tool(MockTool::new("new").reply(MockReply::text("I am new")))
                        .remove_tool("old"),
                ),
            )
            .tool(MockTool::new("old"))
            .build();
        let client = Client::open(&server, transport, speaking(era)).await.unwrap();
        let mut changes = client.connection.changes();
        changes.mark_unchanged();
        // Over HTTP the stream of a client opens a moment later.
        soon(async {
            while !changes.has_changed().unwrap() {
                client.call("grow", json!({})).await.unwrap();
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert_eq!(client.says("new", json!({})).await, "I am new");
        assert!(client.call("old", json!({})).await.is_err());
        changes.mark_unchanged();
        server.add_tool(MockTool::new("newer"));
        soon(changes.changed()).await.unwrap();
        let names = client.connection.list_tools().await.unwrap();
        assert_eq!(names.len(), 3, "{transport:?} {era:?}");
        server.remove_tool("newer");
        assert!(client.call("newer", json!({})).await.is_err());
    }
}

#[tokio::test]
async fn those_who_watch_a_resource_hear_of_it() {
    for (transport, era) in WAYS {
        let server = MockServer::builder()
            .resource(MockResource::new("mock://watched"))
            .tool(MockTool::new("touch").reply(MockReply::text("done").update_resource("mock://watched")))
            .build();
        let client = Client::open(&server, transport, speaking(era)).await.unwrap();
        let mut events = client.connection.events();
        client
            .connection
            .subscribe("mock://watched", RequestOptions::default())
            .await
            .unwrap();
        let updated = async {
            loop {
                client.call("touch", json!({})).await.unwrap();
                let event = tokio::select! {
                    event = events.next() => event.unwrap(),
                    () = tokio::task::yield_now() => continue,
                };
                if event.method == "notifications/resources/updated" {
                    return event;
                }
            }
        };
        let event = soon(updated).await;
        assert_eq!(
            event.params.unwrap().get("uri").unwrap().as_str(),
            r#""mock://watched""#
        );
    }
}

#[tokio::test]
async fn tests_wait_for_what_comes() {
    let server = MockServer::builder()
        .tool(MockTool::new("hang").reply(MockReply::never()))
        .build();
    let client = Client::open(&server, Transport::Stdio, speaking(Default::default()))
        .await
        .unwrap();
    let connection = client.connection.clone();
    let call = tokio::spawn(async move {
        connection
            .request(
                "tools/call",
                Some(raw(r#"{"name":"hang","arguments":{"n":1}}"#)),
                RequestOptions::default(),
            )
            .await
    });
    let calls = soon(server.wait_for_calls("hang", 1)).await;
    assert_eq!(calls[0].arguments().as_str(), r#"{"n":1}"#);
    call.abort();
    let cancelled = soon(server.wait_for_requests("notifications/cancelled", 1)).await;
    let cancelled = cancelled[0].params.as_ref().unwrap().get("requestId");
    assert_eq!(cancelled, calls[0].id);
}

#[tokio::test]
async fn a_test_that_waits_in_vain_is_told_what_came() {
    let server = MockServer::builder()
        .tool(MockTool::new("forecast"))
        .tool(MockTool::new("report"))
        .build();
    let client = Client::open(&server, Transport::Stdio, speaking(EraChoice::Legacy))
        .await
        .unwrap();
    let call = |params| {
        let connection = &client.connection;
        async move {
            let options = RequestOptions::default();
            connection
                .request("tools/call", Some(raw(params)), options)
                .await
                .unwrap()
        }
    };
    soon(server.wait_for_requests("notifications/initialized", 1)).await;
    server.clear();
    call(r#"{"name":"forecast","arguments":{"city":"Riga"}}"#).await;
    call(r#"{"name":"report"}"#).await;
    let limit = Duration::from_millis(5);
    let calls = soon(server.wait_for_calls_within("forecast", 1, limit))
        .await
        .unwrap();
    assert_eq!(calls.len(), 1);
    let late = soon(server.wait_for_calls_within("forecast", 2, limit))
        .await
        .unwrap_err();
    assert_eq!(late.n_calls(), 1);
    let received = "\n  tools/call forecast {\"city\":\"Riga\"}\n  tools/call report {}";
    assert_eq!(
        late.to_string(),
        format!("`forecast` was called once within 5ms, not 2; received: {received}")
    );
    server.assert_called("forecast", 1);
    server.assert_called("missing", 0);
    let failed =
        std::panic::catch_unwind(AssertUnwindSafe(|| server.assert_called("report", 2))).unwrap_err();
    let message = failed.downcast_ref::<String>().unwrap();
    assert_eq!(
        *message,
        format!("`report` was called once, not 2; received: {received}")
    );
}
