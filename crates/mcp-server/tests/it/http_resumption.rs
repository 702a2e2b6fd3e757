//! Clients that resume a stream.

use mcp_server::{HttpServerOptions, Principal};

use crate::support::{Connection, EVERYTHING, Head, Served};

/// Opens a session of a client that wants log messages of this level.
async fn open(served: &Served, head: Head<'static>, revision: &str, level: &str) -> Head<'static> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{{"roots":{{}}}},"clientInfo":{{"name":"t","version":"0"}}}}}}"#
    );
    let answer = served.once(&head, &body).await;
    let session = head.with("Mcp-Session-Id", answer.header("mcp-session-id").unwrap());
    let level =
        format!(r#"{{"jsonrpc":"2.0","id":0,"method":"logging/setLevel","params":{{"level":"{level}"}}}}"#);
    assert_eq!(served.once(&session, &level).await.status, 200);
    session
}

async fn start() -> (Served, Head<'static>) {
    let served = Served::start(HttpServerOptions::default()).await;
    served.log.offer(EVERYTHING);
    let session = open(&served, Head::post(), "2025-11-25", "error").await;
    (served, session)
}

const PAUSE: &str = r#"{"jsonrpc":"2.0","id":7,"method":"test/pause"}"#;
const ASK: &str = r#"{"jsonrpc":"2.0","id":8,"method":"test/ask","params":{"method":"roots/list"}}"#;
const QUESTION: &str = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}\n\n";
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#;
const GIVEN: &str = "data: {\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{\"given\":{\"roots\":[]}}}\n\n";
const AFTER: &str = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"data\":\"after\",\"level\":\"error\"}}\n\n";
const DONE: &str = "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n";

async fn resume(served: &Served, session: &Head<'static>, last_event: &str) -> Connection {
    let mut stream = served.connect().await;
    let head = session.clone().method("GET").with("Last-Event-ID", last_event);
    stream.send(&head, "").await;
    let answer = stream.head().await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("text/event-stream"))
    );
    stream
}

#[tokio::test]
async fn a_paused_stream_goes_on_where_it_stopped() {
    let (served, session) = start().await;
    let paused = served.once(&session, PAUSE).await;
    assert_eq!(paused.header("content-type"), Some("text/event-stream"));
    assert_eq!(paused.body, "id: 1-1\nretry: 20\ndata: \n\n");
    served.log.running(1).await;
    // A client that resumes before the call has ended waits for it.
    let mut stream = resume(&served, &session, "1-1").await;
    served.log.gate.add_permits(1);
    assert_eq!(stream.event().await.unwrap(), format!("id: 1-2\n{AFTER}"));
    assert_eq!(stream.event().await.unwrap(), format!("id: 1-3\n{DONE}"));
    assert_eq!(stream.event().await, None);
    // The stream can be resumed again, from any event; streams have numbers of their own.
    served.log.gate.add_permits(1);
    let paused = served.once(&session, PAUSE).await;
    assert!(paused.body.starts_with("id: 2-1\n"), "{}", paused.body);
    served.log.running(0).await;
    for (last_event, expected) in [("1-2", vec![DONE]), ("1-1", vec![AFTER, DONE])] {
        let mut stream = resume(&served, &session, last_event).await;
        for expected in expected {
            assert!(stream.event().await.unwrap().ends_with(expected), "{last_event}");
        }
        assert_eq!(stream.event().await, None);
    }
}

#[tokio::test]
async fn a_stream_is_paused_in_its_middle_as_well() {
    let (served, _) = start().await;
    let session = open(&served, Head::post(), "2025-11-25", "info").await;
    let paused = served.once(&session, PAUSE).await.body;
    assert!(paused.starts_with("id: 1-1\ndata: {"), "{paused}");
    assert!(paused.ends_with("\n\nid: 1-2\nretry: 20\ndata: \n\n"), "{paused}");
    served.log.gate.add_permits(1);
    let mut stream = resume(&served, &session, "1-2").await;
    assert_eq!(stream.event().await.unwrap(), format!("id: 1-3\n{AFTER}"));
}

#[tokio::test]
async fn who_knows_no_pause_gets_the_whole_stream() {
    let (served, _) = start().await;
    let session = open(&served, Head::post(), "2025-06-18", "error").await;
    served.log.gate.add_permits(1);
    let whole = served.once(&session, PAUSE).await.body;
    assert_eq!(whole, format!("id: 1-1\n{AFTER}id: 1-2\n{DONE}"));
}

#[tokio::test]
async fn a_lost_stream_is_resumed_with_its_question() {
    let (served, session) = start().await;
    let mut lost = served.connect().await;
    lost.send(&session, ASK).await;
    lost.head().await;
    assert_eq!(lost.event().await.unwrap(), format!("id: 1-1\n{QUESTION}"));
    drop(lost);
    // The request to the client is not lost: it is sent again, answered, and the call goes on.
    let mut stream = resume(&served, &session, "1-0").await;
    assert_eq!(stream.event().await.unwrap(), format!("id: 1-1\n{QUESTION}"));
    assert_eq!(served.once(&session, ANSWER).await.status, 202);
    // It may take a moment until the server notices that the first connection is gone.
    assert_eq!(stream.event().await.unwrap(), format!("id: 1-2\n{GIVEN}"));
    assert_eq!(stream.event().await, None);
}

#[tokio::test]
async fn a_stream_belongs_to_its_session() {
    let served = Served::start(HttpServerOptions::default().identify(|parts| {
        let user = parts.headers.get("x-user").map(|user| user.to_str().unwrap());
        Ok(Principal::new(user.unwrap_or("alice")))
    }))
    .await;
    served.log.offer(EVERYTHING);
    let session = open(&served, Head::post(), "2025-11-25", "error").await;
    let other = open(&served, Head::post(), "2025-11-25", "error").await;
    served.log.gate.add_permits(1);
    served.once(&session, PAUSE).await;
    served.log.running(0).await;
    let stolen = session.clone().with("X-User", "mallory").method("GET");
    let stolen = stolen.with("Last-Event-ID", "1-1");
    assert_eq!(served.once(&stolen, "").await.status, 404);
    // The id is unknown to another session, and so are ids that never existed.
    let mut refused = vec![(other.clone(), "1-1")];
    for odd in [
        "1-9",
        "9-1",
        "0-1",
        "0-x",
        "1",
        "-",
        "x-y",
        "1-1-1",
        "99999999999999999999-1",
    ] {
        refused.push((session.clone(), odd));
    }
    for (head, odd) in refused {
        let head = head.method("GET").with("Last-Event-ID", odd);
        let answer = served.once(&head, "").await;
        assert_eq!(answer.status, 400, "{odd}: {}", answer.body);
        assert!(
            answer.body.contains("open a stream without the header"),
            "{}",
            answer.body
        );
    }
    // An empty id is no id.
    let mut listening = resume(&served, &other, "").await;
    let mut stream = resume(&served, &session, "1-1").await;
    assert!(stream.event().await.unwrap().ends_with(AFTER));
    // The streams end with the session.
    assert_eq!(served.once(&other.method("DELETE"), "").await.status, 204);
    assert_eq!(listening.event().await, None);
}
