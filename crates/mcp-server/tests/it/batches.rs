//! Batches, which only clients of 2025-03-26 may send.

use mcp_server::{HttpServerOptions, StdioOptions};

use crate::{
    http_sessions::INITIALIZE,
    stdio::Client,
    support::{EVERYTHING, Head, META, Served},
};

fn initialize(revision: &str) -> String {
    INITIALIZE.replace("2025-06-18", revision)
}

async fn session(served: &Served, revision: &str) -> Head<'static> {
    let answer = served.once(&Head::post(), &initialize(revision)).await;
    Head::post().with("Mcp-Session-Id", answer.header("mcp-session-id").unwrap())
}

fn ping(id: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)
}

fn pong(id: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

const WAIT: &str = r#"{"jsonrpc":"2.0","id":"w","method":"test/wait"}"#;
const CANCEL: &str = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"w"}}"#;
const TOLD: &str = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;
const REPORTS: &str =
    r#"{"jsonrpc":"2.0","id":"p","method":"test/progress","params":{"_meta":{"progressToken":1}}}"#;
const REPORTED: &str = r#"{"jsonrpc":"2.0","id":"p","result":{}}"#;
/// Lines that are not messages, and requests that are not allowed in a batch.
const ODD: &str =
    r#"{"jsonrpc":"1.0","id":7,"method":"ping"},8,[],{"jsonrpc":"2.0","id":9,"method":"initialize"}"#;

fn modern() -> String {
    format!(r#"{{"jsonrpc":"2.0","id":10,"method":"tools/list","params":{{{META}}}}}"#)
}

/// Beginnings of the errors for [`ODD`] and [`modern`].
const ERRORS: [&str; 5] = [
    r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"#,
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the message is not a JSON object""#,
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batches are not supported"#,
    r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32600,"message":"this request is not allowed in a batch""#,
    r#"{"jsonrpc":"2.0","id":10,"error":{"code":-32"#,
];

#[tokio::test]
async fn a_batch_over_http_is_answered_in_one_piece() {
    let served = Served::start(HttpServerOptions::default()).await;
    served.log.offer(EVERYTHING);
    let session = session(&served, "2025-03-26").await;
    // Messages are handled one by one; progress is not part of the response.
    let batch = format!("[{},\n{TOLD},{REPORTS},{}]", ping(1), ping(2));
    let answer = served.once(&session, &batch).await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("application/json"))
    );
    assert_eq!(answer.body, format!("[{},{REPORTED},{}]", pong(1), pong(2)));
    assert_eq!(
        *served.log.notifications.lock().unwrap(),
        ["notifications/roots/list_changed"]
    );
    let events = session.clone().with("Accept", "text/event-stream");
    let answer = served.once(&events, &format!("[{}]", ping(1))).await;
    assert_eq!(answer.body, format!("data: [{}]\n\n", pong(1)));
    // Requests run concurrently, and a cancelled one has no response.
    let answer = served
        .once(&session, &format!("[{WAIT},{},{CANCEL}]", ping(1)))
        .await;
    assert_eq!(answer.body, format!("[{}]", pong(1)));
    // Notifications get no response.
    for quiet in [format!("[{TOLD},{TOLD}]"), format!("[{}]", pong(1))] {
        let answer = served.once(&session, &quiet).await;
        assert_eq!((answer.status, &*answer.body), (202, ""));
    }
    let answer = served
        .once(&session, &format!("[{ODD},{},{}]", modern(), ping(3)))
        .await;
    for error in ERRORS {
        assert!(answer.body.contains(error), "{error}: {}", answer.body);
    }
    assert!(answer.body.contains(&pong(3)), "{}", answer.body);
}

#[tokio::test]
async fn a_batch_over_stdio_is_answered_in_one_line() {
    let mut client = Client::start(StdioOptions::default());
    client.log.offer(EVERYTHING);
    client.ask(&initialize("2025-03-26")).await;
    // Progress is sent on its own, as for other requests.
    client
        .send(&format!("[{},{TOLD},{REPORTS},{WAIT}]", ping(1)))
        .await;
    for _ in 0..4 {
        let report = client.receive().await;
        assert!(report.contains("notifications/progress"), "{report}");
    }
    // A slow batch does not block other requests.
    assert_eq!(client.ask(&ping(2)).await, pong(2));
    client.log.gate.add_permits(1);
    let answer = client.receive().await;
    assert!(answer.starts_with(&format!("[{},", pong(1))), "{answer}");
    for part in [REPORTED, r#"{"jsonrpc":"2.0","id":"w","result":{}}"#] {
        assert!(answer.contains(part), "{answer}");
    }
    // Notifications get no response.
    client.send(&format!("[{TOLD},{}]", pong(1))).await;
    client.send(&format!("[{WAIT},{CANCEL}]")).await;
    let answer = client.ask(&format!("[{ODD},{}]", modern())).await;
    for error in ERRORS {
        assert!(answer.contains(error), "{error}: {answer}");
    }
    assert_eq!(client.ask(&ping(3)).await, pong(3));
    assert!(client.finish().await.is_empty());
}

#[tokio::test]
async fn batches_are_bounded_and_of_one_revision() {
    let served = Served::start(HttpServerOptions::default()).await;
    let mut client = Client::start(StdioOptions::default());
    client.ask(&initialize("2025-03-26")).await;
    let of = |count: usize| {
        let pings: Vec<String> = (1..=count).map(ping).collect();
        format!("[{}]", pings.join(","))
    };
    let head = session(&served, "2025-03-26").await;
    for refused in [of(0), of(65)] {
        let answer = served.once(&head, &refused).await;
        assert_eq!(answer.status, 400, "{}", answer.body);
        for said in [answer.body, client.ask(&refused).await] {
            assert!(said.contains("a batch must hold 1 to 64 messages"), "{said}");
        }
    }
    assert_eq!(served.once(&head, &of(64)).await.status, 200);
    assert!(client.ask(&of(64)).await.contains(&pong(64)));
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let mut other = Client::start(StdioOptions::default());
        other.ask(&initialize(revision)).await;
        let answer = served.once(&session(&served, revision).await, &of(2)).await;
        assert_eq!(answer.status, 400, "{revision}: {}", answer.body);
        for said in [answer.body, other.ask(&of(2)).await] {
            assert!(said.contains("batches are not supported"), "{revision}: {said}");
        }
    }
}
