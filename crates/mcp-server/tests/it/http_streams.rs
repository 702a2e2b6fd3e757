use std::{sync::atomic::Ordering, time::Duration};

use mcp_server::HttpServerOptions;

use crate::support::{Head, META, Served};

const PROGRESS: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"test/progress","params":{"_meta":{"progressToken":7}}}"#;
const SLOW: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"test/progress","params":{"wait":1,"_meta":{"progressToken":7}}}"#;
const WAIT: &str = r#"{"jsonrpc":"2.0","id":1,"method":"test/wait"}"#;

fn modern_slow() -> String {
    let meta = META.replace("{\"io", "{\"progressToken\":7,\"io");
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"test/progress","params":{{"wait":1,{meta}}}}}"#)
}

#[tokio::test]
async fn a_request_with_progress_is_answered_with_events() {
    let served = Served::start(HttpServerOptions::default()).await;
    let mut connection = served.connect().await;
    connection.send(&Head::post(), PROGRESS).await;
    let answer = connection.receive().await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(answer.header("cache-control"), Some("no-cache"));
    assert_eq!(answer.header("x-accel-buffering"), Some("no"));
    let report = |amount: &str, rest: &str| {
        format!(
            "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":7,\"progress\":{amount}{rest}}}}}\n\n"
        )
    };
    let extra = ",\"extra\":1e2";
    let expected = [
        report("1", extra),
        report("2", extra),
        report("2.5", extra),
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progress\":3,\"progressToken\":7}}\n\n".to_owned(),
        "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n".to_owned(),
    ];
    assert_eq!(answer.body, expected.concat());
    // The connection can be used again.
    connection
        .send(&Head::post(), r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#)
        .await;
    assert_eq!(
        connection.receive().await.header("content-type"),
        Some("application/json")
    );
}

#[tokio::test]
async fn who_takes_no_events_gets_the_answer_alone() {
    let served = Served::start(HttpServerOptions::default()).await;
    let answer = served
        .once(&Head::post().with("Accept", "application/json"), PROGRESS)
        .await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.body, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
}

#[tokio::test]
async fn events_come_as_they_happen() {
    let served = Served::start(HttpServerOptions::default()).await;
    for (head, body) in [
        (Head::post(), SLOW.to_owned()),
        (Head::modern("test/progress"), modern_slow()),
    ] {
        let mut connection = served.connect().await;
        connection.send(&head, &body).await;
        connection.head().await;
        for amount in ["1", "2", "2.5"] {
            let event = connection.event().await.unwrap();
            assert!(event.contains(&format!("\"progress\":{amount},")), "{event}");
        }
        assert_eq!(served.log.running.load(Ordering::SeqCst), 1);
        served.log.gate.add_permits(1);
        assert!(connection.event().await.unwrap().contains("\"progress\":3"));
        assert!(connection.event().await.unwrap().contains("\"id\":1"));
        assert_eq!(connection.event().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_gives_signs_of_life() {
    let served = Served::start(HttpServerOptions::default().keep_alive(Duration::from_secs(15))).await;
    let mut connection = served.connect().await;
    connection.send(&Head::post(), SLOW).await;
    connection.head().await;
    for _ in 0..3 {
        connection.event().await.unwrap();
    }
    for _ in 0..3 {
        assert_eq!(connection.event().await.unwrap(), ":\n\n");
    }
    served.log.gate.add_permits(1);
    assert!(connection.event().await.unwrap().starts_with("data: "));
}

#[tokio::test]
async fn a_lost_connection_cancels_a_modern_request() {
    let served = Served::start(HttpServerOptions::default()).await;
    // Before a response has begun, and within its stream.
    let wait = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"test/wait","params":{{{META}}}}}"#);
    for (method, body, streams) in [("test/wait", wait, false), ("test/progress", modern_slow(), true)] {
        let mut connection = served.connect().await;
        connection.send(&Head::modern(method), &body).await;
        served.log.running(1).await;
        if streams {
            connection.head().await;
        }
        drop(connection);
        served.log.running(0).await;
    }
}

#[tokio::test]
async fn a_lost_connection_does_not_cancel_a_legacy_request() {
    let served = Served::start(HttpServerOptions::default().max_detached(1)).await;
    let mut first = served.connect().await;
    first.send(&Head::post(), WAIT).await;
    served.log.running(1).await;
    drop(first);
    // There is one permit: the second call is cancelled.
    let mut second = served.connect().await;
    second.send(&Head::post(), WAIT).await;
    served.log.running(2).await;
    drop(second);
    served.log.running(1).await;
    assert_eq!(
        served
            .once(&Head::post(), r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#)
            .await
            .status,
        200
    );
    assert_eq!(served.log.running.load(Ordering::SeqCst), 1);
    served.log.gate.add_permits(1);
    served.log.running(0).await;
    // Then the permit is free again.
    let mut third = served.connect().await;
    third.send(&Head::post(), WAIT).await;
    served.log.running(1).await;
    drop(third);
    assert_eq!(
        served
            .once(&Head::post(), r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#)
            .await
            .status,
        200
    );
    served.log.gate.add_permits(1);
    served.log.running(0).await;
}
