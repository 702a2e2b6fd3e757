//! Tests of events, changes and subscriptions.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mcp_client::{
    Connection, ConnectionOptions, Endpoint, EraChoice, Handlers, HttpEndpoint, RequestOptions, Upstream,
    UpstreamOptions,
};
use serde_json::json;
use tokio::time::timeout;

use crate::{
    support::http_server::{Reply, Server, json as json_reply, opening, status, stream},
    support::peer::{DISCOVERED, Peer, call, connect, connect_modern, connect_with, pair, within, works},
};

const PATIENCE: Duration = Duration::from_secs(60);

fn log(n: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":{n}}}}}"#)
}

#[tokio::test(start_paused = true)]
async fn events_come_in_order_to_all_who_listen() {
    let (connection, mut peer) = connect().await;
    peer.send(log(0)).await;
    works(&connection, &mut peer).await;
    assert_eq!(connection.stats().notifications, 1, "nobody listened");
    let mut listening = [connection.events(), connection.events()];
    for n in 1..=3 {
        peer.send(log(n)).await;
    }
    peer.send(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#)
        .await;
    works(&connection, &mut peer).await;
    drop((connection, peer));
    for events in &mut listening {
        let mut seen = Vec::new();
        while let Some(event) = timeout(PATIENCE, events.next()).await.unwrap() {
            seen.push(
                event
                    .params
                    .map_or(event.method, |params| params.get("data").unwrap().to_string()),
            );
        }
        assert_eq!(seen, ["1", "2", "3", "notifications/tools/list_changed"]);
        assert_eq!(events.lost(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_before_an_answer_is_handed_over_before_it() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&seen);
    let options =
        ConnectionOptions::default()
            .era(EraChoice::Legacy)
            .handlers(Handlers::new().notifications(move |event| {
                let mut told = told.lock().unwrap();
                told.push(event.method);
                let n = told.len();
                drop(told);
                assert_eq!(n, 1, "a fault on purpose");
            }));
    let (connection, mut peer) = connect_with(options, 64 * 1024).await;
    for n in 1..=2 {
        let calling = call(&connection, within(5));
        let id = peer.request("tools/call").await;
        peer.send(log(n)).await;
        peer.answer(id, "{}").await;
        calling.await.unwrap().unwrap();
        assert_eq!(seen.lock().unwrap().len(), n);
    }
    assert_eq!(connection.stats().notifications, 0, "they were taken");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_talks_faster_than_anyone_reads() {
    let (connection, mut peer) = connect().await;
    let mut events = connection.events();
    for n in 0..1500 {
        peer.send(log(n)).await;
    }
    works(&connection, &mut peer).await;
    assert_eq!(events.lost(), 1500 - 1024);
    assert_eq!(
        events
            .next()
            .await
            .unwrap()
            .params
            .unwrap()
            .get("data")
            .unwrap()
            .as_str(),
        "0"
    );
    // Large events are bounded by their size.
    let mut events = connection.events();
    let large = log(7).replace("info", &"x".repeat(1024 * 1024));
    for _ in 0..6 {
        peer.send(&large).await;
    }
    works(&connection, &mut peer).await;
    assert_eq!(events.lost(), 3);
    assert!(events.next().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_is_asked_for_news_and_levels() {
    let (connection, mut peer) = connect().await;
    let asking = tokio::spawn(async move {
        connection.subscribe("file:///a", within(20)).await.unwrap();
        connection.unsubscribe("file:///a", within(20)).await.unwrap();
        connection.set_log_level("warning", within(20)).await.unwrap();
        connection.list_resource_templates().await.unwrap().len()
    });
    for (method, params, result) in [
        ("resources/subscribe", json!({"uri": "file:///a"}), "{}"),
        ("resources/unsubscribe", json!({"uri": "file:///a"}), "{}"),
        ("logging/setLevel", json!({"level": "warning"}), "{}"),
        (
            "resources/templates/list",
            json!(null),
            r#"{"resourceTemplates":[{}]}"#,
        ),
    ] {
        let message = peer.next().await;
        assert_eq!(
            (&message["method"], &message["params"]),
            (&json!(method), &params)
        );
        peer.answer(message["id"].as_u64().unwrap(), result).await;
    }
    assert_eq!(asking.await.unwrap(), 1);
}

const MODERN: &str = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":false},"resources":{"subscribe":true}}}"#;

/// Next subscription that the client opens. Returns its id and its filter.
async fn subscription(peer: &mut Peer) -> (u64, serde_json::Value) {
    let message = peer.next().await;
    assert_eq!(message["method"], "subscriptions/listen", "{message}");
    assert_eq!(
        message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    (
        message["id"].as_u64().unwrap(),
        message["params"]["notifications"].clone(),
    )
}

#[tokio::test(start_paused = true)]
async fn subscriptions_over_stdio() {
    let (ours, mut peer) = pair(64 * 1024);
    let (reader, writer) = tokio::io::split(ours);
    let options = ConnectionOptions::default().era(EraChoice::Modern);
    let (connection, mut peer) = tokio::join!(Connection::from_streams(reader, writer, options), async {
        let id = peer.request("server/discover").await;
        peer.answer(id, MODERN).await;
        peer
    });
    let connection = connection.unwrap();
    let (first, wanted) = subscription(&mut peer).await;
    assert_eq!(wanted, json!({"toolsListChanged": true}));
    let note = |method: &str, id: u64| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"uri":"u","_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
        )
    };
    peer.send(note("notifications/subscriptions/acknowledged", first))
        .await;
    peer.send(note("notifications/tools/list_changed", first)).await;
    works(&connection, &mut peer).await;
    assert_eq!(connection.changes().borrow().tools, 1);
    // Resource updates: the new stream is opened, then the old one is ended.
    let mut events = connection.events();
    connection.subscribe("u", within(5)).await.unwrap();
    connection.subscribe("u", within(5)).await.unwrap();
    let (second, wanted) = subscription(&mut peer).await;
    assert_eq!(
        wanted,
        json!({"toolsListChanged": true, "resourceSubscriptions": ["u"]})
    );
    let cancelled = peer.notification("notifications/cancelled").await;
    assert_eq!(cancelled["requestId"], first);
    peer.send(note("notifications/resources/updated", second)).await;
    assert_eq!(
        events.next().await.unwrap().method,
        "notifications/resources/updated"
    );
    // The response that ends the subscription is not unmatched. Another subscription follows after a pause, and changes
    // in between are unknown.
    let mut ended = second;
    for pause in [1, 2, 4] {
        let start = tokio::time::Instant::now();
        peer.answer(ended, "{}").await;
        works(&connection, &mut peer).await;
        let before = connection.changes().borrow().prompts;
        let (again, wanted) = subscription(&mut peer).await;
        assert_eq!(start.elapsed().as_secs(), pause);
        assert_eq!(wanted["resourceSubscriptions"], json!(["u"]));
        works(&connection, &mut peer).await;
        assert_eq!(connection.changes().borrow().prompts, before + 1);
        ended = again;
    }
    // A refusal is final until another filter is wanted.
    peer.send(format!(
        r#"{{"jsonrpc":"2.0","id":{ended},"error":{{"code":-32603,"message":"no"}}}}"#
    ))
    .await;
    works(&connection, &mut peer).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    works(&connection, &mut peer).await;
    connection.unsubscribe("u", within(5)).await.unwrap();
    assert_eq!(subscription(&mut peer).await.1, json!({"toolsListChanged": true}));
    assert_eq!(
        (connection.stats().unmatched, connection.stats().notifications),
        (0, 0)
    );
}

#[tokio::test]
async fn subscriptions_over_http() {
    let opened = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&opened);
    let server = Server::start(move |seen| match seen.body["method"].as_str() {
        Some("server/discover") => json_reply(&format!(r#"{{"id":{},"result":{MODERN}}}"#, seen.body["id"])),
        Some("subscriptions/listen") => {
            count.fetch_add(1, Ordering::SeqCst);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            let events = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";
            // Stays open.
            Reply::Bytes(vec![head.into(), events.into()])
        }
        _ => Reply::Silence,
    })
    .await;
    let connection = Connection::http(
        &HttpEndpoint::new(&server.url).unwrap(),
        ConnectionOptions::default(),
    )
    .await
    .unwrap();
    let mut changes = connection.changes();
    timeout(PATIENCE, changes.wait_for(|changes| changes.tools == 1))
        .await
        .unwrap()
        .unwrap();
    connection.subscribe("u", within(5)).await.unwrap();
    timeout(PATIENCE, changes.wait_for(|changes| changes.tools == 2))
        .await
        .unwrap()
        .unwrap();
    let seen = server.seen();
    let last = seen.last().unwrap();
    assert_eq!(
        last.body["params"]["notifications"]["resourceSubscriptions"],
        json!(["u"])
    );
    assert_eq!(last.headers["mcp-method"], "subscriptions/listen");
    assert_eq!(opened.load(Ordering::SeqCst), 2);
}

/// Changes between two streams are missed: lists are read again once the second one is acknowledged.
#[tokio::test]
async fn lists_may_have_changed_before_another_subscription_is_acknowledged() {
    let opened = AtomicUsize::new(0);
    let server = Server::start(move |seen| match seen.body["method"].as_str() {
        Some("server/discover") => json_reply(&format!(r#"{{"id":{},"result":{MODERN}}}"#, seen.body["id"])),
        Some("subscriptions/listen") => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: Text/Event-Stream\r\n\r\n";
            let acknowledged = "data: {\"method\":\"notifications/subscriptions/acknowledged\"}\n\n";
            let whole = format!("{head}{acknowledged}").into_bytes();
            match opened.fetch_add(1, Ordering::SeqCst) {
                0 => Reply::Close(whole),
                // Stays open.
                _ => Reply::Bytes(vec![whole]),
            }
        }
        _ => Reply::Silence,
    })
    .await;
    let endpoint = HttpEndpoint::new(&server.url).unwrap();
    let connection = Connection::http(&endpoint, ConnectionOptions::default())
        .await
        .unwrap();
    let mut changes = connection.changes();
    // At the end of the first stream, and when the second one is open.
    timeout(PATIENCE, changes.wait_for(|changes| changes.prompts == 2))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(changes.borrow().gaps, 1);
    // The current stream is replaced; no update of the new resources was missed.
    connection.subscribe("u", within(5)).await.unwrap();
    timeout(PATIENCE, changes.wait_for(|changes| changes.prompts == 3))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(changes.borrow().gaps, 1);
}

#[tokio::test]
async fn a_server_that_refuses_a_subscription_is_left_alone() {
    for answer in ["404 Not Found", "200 OK"] {
        let server = Server::start(move |seen| match seen.body["method"].as_str() {
            Some("server/discover") => {
                json_reply(&format!(r#"{{"id":{},"result":{MODERN}}}"#, seen.body["id"]))
            }
            Some("subscriptions/listen") => status(
                answer,
                "content-type: application/json\r\n",
                r#"{"id":null,"error":{"code":-32601,"message":"no"}}"#,
            ),
            _ => json_reply(&format!(r#"{{"id":{},"result":{{}}}}"#, seen.body["id"])),
        })
        .await;
        let connection = Connection::http(
            &HttpEndpoint::new(&server.url).unwrap(),
            ConnectionOptions::default(),
        )
        .await
        .unwrap();
        timeout(PATIENCE, server.wait_for("subscriptions/listen"))
            .await
            .unwrap();
        connection.request("tools/call", None, within(20)).await.unwrap();
        assert_eq!(connection.changes().borrow().tools, 0);
    }
}

/// Notifications on the stream of a call belong to that call if its caller wants them.
#[tokio::test]
async fn notifications_of_a_call() {
    let server = Server::start(|seen| {
        opening(seen).unwrap_or_else(|| {
            let changed = r#"{"method":"notifications/tools/list_changed"}"#;
            let updated = r#"{"method":"notifications/resources/updated","params":{"uri":"a:b"}}"#;
            let answer = format!(r#"{{"id":{},"result":{{}}}}"#, seen.body["id"]);
            stream(&format!(
                "data: {}\n\ndata: {changed}\n\ndata: {updated}\n\ndata: {answer}\n\n",
                log(1)
            ))
        })
    })
    .await;
    let connection = Connection::http(
        &HttpEndpoint::new(&server.url).unwrap(),
        ConnectionOptions::default(),
    )
    .await
    .unwrap();
    let mut events = connection.events();
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    let mut options = RequestOptions::with_timeout(Duration::from_secs(20));
    options.on_notification = Some(Arc::new(move |event| {
        assert_eq!(event.method, "notifications/message");
        counted.fetch_add(1, Ordering::SeqCst);
    }));
    connection.request("tools/call", None, options).await.unwrap();
    assert_eq!(
        (seen.load(Ordering::SeqCst), connection.changes().borrow().tools),
        (1, 1)
    );
    connection.request("tools/call", None, within(20)).await.unwrap();
    // Notifications that the first call's callback left, then all of the second call's.
    for expected in [
        "tools/list_changed",
        "resources/updated",
        "message",
        "tools/list_changed",
    ] {
        let method = events.next().await.unwrap().method;
        assert_eq!(method.strip_prefix("notifications/").unwrap(), expected);
    }
}

/// A server of known era is not probed again.
#[tokio::test]
async fn the_era_is_remembered_over_restarts() {
    let probes = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&probes);
    let server = Server::start(move |seen| {
        if seen.body["method"] == "server/discover" {
            count.fetch_add(1, Ordering::SeqCst);
        }
        opening(seen).unwrap_or(Reply::Silence)
    })
    .await;
    let endpoint = Endpoint::Http(HttpEndpoint::new(&server.url).unwrap());
    let options = UpstreamOptions::default().jitter_seed(1);
    let upstream = Upstream::new(endpoint, options);
    let connection = upstream.connection().await.unwrap();
    connection.shutdown().await;
    let again = async {
        loop {
            match upstream.connection().await {
                Ok(connection) => return connection,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let connection = timeout(PATIENCE, again).await.unwrap();
    assert!(!connection.is_closed());
    assert_eq!(
        (upstream.status().restarts, probes.load(Ordering::SeqCst)),
        (1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn whether_a_server_is_there_is_asked_in_the_words_of_its_era() {
    let error = r#""error":{"code":-32601,"message":"Method not found"}"#;
    for answer in [r#""result":{}"#, error] {
        let (connection, mut peer) = connect().await;
        let (asked, ()) = tokio::join!(connection.ping(within(60)), async {
            let id = peer.request("ping").await;
            peer.send(format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#))
                .await;
        });
        asked.expect("any answer says that it is there");
    }
    let (connection, mut peer) = connect_modern(ConnectionOptions::default()).await;
    let (asked, ()) = tokio::join!(connection.ping(within(60)), async {
        let id = peer.request("server/discover").await;
        peer.answer(id, DISCOVERED).await;
    });
    asked.expect("it answered");
    connection.ping(within(60)).await.expect_err("it does not answer");
}
