//! Notifications to legacy sessions: on one stream, and kept while the client is away.

use http::HeaderValue;
use mcp_server::{HttpServerOptions, Notifier, Principal};

use crate::{
    http_sessions::INITIALIZE,
    support::{Connection, EVERYTHING, Head, META, Served, raw},
};

const TOOLS: &str = "notifications/tools/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";
const UPDATED: &str = "notifications/resources/updated";

async fn start(options: HttpServerOptions) -> (Served, Notifier) {
    let notices = options.notifier.clone();
    let served = Served::start(options).await;
    served.log.offer(EVERYTHING);
    (served, notices)
}

/// Opens a session that has subscribed to a resource.
async fn open(served: &Served, head: Head<'static>) -> Head<'static> {
    let answer = served.once(&head, INITIALIZE).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let session = head.with("Mcp-Session-Id", answer.header("mcp-session-id").unwrap());
    let watch = r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"test:dir"}}"#;
    assert_eq!(served.once(&session, watch).await.status, 200);
    session
}

async fn listen(served: &Served, session: &Head<'static>, last_event: Option<&str>) -> Connection {
    let mut head = session.clone().method("GET");
    if let Some(id) = last_event {
        head = head.with("Last-Event-ID", id);
    }
    let mut stream = served.connect().await;
    stream.send(&head, "").await;
    assert_eq!(stream.head().await.status, 200);
    stream
}

fn changed(id: u64, method: &str) -> String {
    format!("id: 0-{id}\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"}}\n\n")
}

fn updated(id: u64, uri: &str) -> String {
    format!(
        "id: 0-{id}\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"{UPDATED}\",\"params\":{{\"uri\":\"{uri}\"}}}}\n\n"
    )
}

fn update(notices: &Notifier, uri: &str) {
    notices.send(UPDATED, Some(&raw(&format!(r#"{{"uri":"{uri}"}}"#))));
}

#[tokio::test]
async fn a_new_stream_takes_the_place_of_the_one_before() {
    let (served, notices) = start(HttpServerOptions::default()).await;
    let session = open(&served, Head::post()).await;
    let mut first = listen(&served, &session, None).await;
    notices.send(TOOLS, None);
    assert_eq!(first.event().await.unwrap(), changed(1, TOOLS));
    // The connection of the first stream may be half-open.
    let mut second = listen(&served, &session, None).await;
    assert_eq!(first.event().await, None);
    notices.send(PROMPTS, None);
    // Sent notifications are not repeated, and new ones are sent once.
    assert_eq!(second.event().await.unwrap(), changed(2, PROMPTS));
    // Closing the first stream does not affect the second.
    drop(first);
    notices.send(TOOLS, None);
    assert_eq!(second.event().await.unwrap(), changed(3, TOOLS));
}

#[tokio::test]
async fn what_comes_while_the_client_is_away_is_told_when_it_is_back() {
    let (served, notices) = start(HttpServerOptions::default()).await;
    let session = open(&served, Head::post()).await;
    let other = open(&served, Head::post()).await;
    // Before the first stream: of each subject the latest.
    for _ in 0..3 {
        notices.send(TOOLS, None);
        update(&notices, "test:dir/a");
    }
    update(&notices, "test:dir/b");
    update(&notices, "test:elsewhere");
    notices.send(PROMPTS, None);
    let news = [
        changed(5, TOOLS),
        updated(6, "test:dir/a"),
        updated(7, "test:dir/b"),
        changed(8, PROMPTS),
    ];
    let mut stream = listen(&served, &session, None).await;
    for expected in &news {
        assert_eq!(stream.event().await.as_ref(), Some(expected));
    }
    drop(stream);
    // A client that has not received all names the last event that it has received.
    let mut stream = listen(&served, &session, Some("0-6")).await;
    for expected in &news[2..] {
        assert_eq!(stream.event().await.as_ref(), Some(expected));
    }
    // A new notification is sent once, after the others.
    notices.send(TOOLS, None);
    assert_eq!(stream.event().await.unwrap(), changed(9, TOOLS));
    let mut stream = listen(&served, &session, Some("0-0")).await;
    for expected in news[1..].iter().chain([&changed(9, TOOLS)]) {
        assert_eq!(stream.event().await.as_ref(), Some(expected));
    }
    // Each session has a queue of its own.
    let mut stream = listen(&served, &other, None).await;
    assert_eq!(stream.event().await.unwrap(), updated(6, "test:dir/a"));
}

#[tokio::test]
async fn what_there_is_no_room_for_may_have_changed() {
    let (served, notices) = start(HttpServerOptions::default()).await;
    let session = open(&served, Head::post()).await;
    notices.send(TOOLS, None);
    for part in 1..=300 {
        update(&notices, &format!("test:dir/{part}"));
    }
    // Lists are never dropped; 128 notifications are kept in addition.
    for last_event in [None, Some("0-0")] {
        let mut stream = listen(&served, &session, last_event).await;
        assert_eq!(stream.event().await.unwrap(), changed(1, TOOLS));
        assert_eq!(stream.event().await.unwrap(), updated(174, "test:dir"));
        for part in 174..=300 {
            assert_eq!(
                stream.event().await.unwrap(),
                updated(part + 1, &format!("test:dir/{part}"))
            );
        }
    }
    // A notification beyond the limit, in the middle of a stream; none is sent twice after that.
    let mut stream = listen(&served, &session, None).await;
    update(&notices, &format!("test:dir/{}", "x".repeat(70_000)));
    assert_eq!(stream.event().await.unwrap(), updated(302, "test:dir"));
    drop(stream);
    let mut stream = listen(&served, &session, Some("0-302")).await;
    notices.send(PROMPTS, None);
    assert_eq!(stream.event().await.unwrap(), changed(303, PROMPTS));
}

fn as_user(user: &str) -> Head<'static> {
    Head::post().with("X-User", user)
}

#[tokio::test]
async fn streams_leave_room_for_calls() {
    let (served, _) = start(
        HttpServerOptions::default()
            .max_streams(3)
            .max_streams_each(2)
            .sse_path("/sse")
            .identify(|parts| {
                let user = parts.headers.get("x-user").map(HeaderValue::to_str);
                Ok(Principal::new(user.unwrap().unwrap()))
            }),
    )
    .await;
    let sessions = [
        open(&served, as_user("alice")).await,
        open(&served, as_user("alice")).await,
        open(&served, as_user("alice")).await,
    ];
    let subscription = format!(
        r#"{{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{{"notifications":{{}},{META}}}}}"#
    );
    let modern = Head::modern("subscriptions/listen").with("X-User", "alice");
    let mut old = as_user("alice").method("GET");
    old.path = "/sse";
    let first = listen(&served, &sessions[0], None).await;
    let mut subscribed = served.connect().await;
    subscribed.send(&modern, &subscription).await;
    assert_eq!(subscribed.head().await.status, 200);
    // Alice has two streams of any kind; a stream that replaces another takes no permit.
    for (head, body) in [
        (&sessions[1].clone().method("GET"), ""),
        (&modern, subscription.as_str()),
        (&old, ""),
    ] {
        let answer = served.once(head, body).await;
        assert_eq!(answer.status, 429, "{}", answer.body);
        assert!(answer.body.contains("too many streams"), "{}", answer.body);
    }
    let again = listen(&served, &sessions[0], None).await;
    // Three streams are allowed in all.
    let bob = open(&served, as_user("bob")).await;
    let third = listen(&served, &bob, None).await;
    let carol = open(&served, as_user("carol")).await;
    let answer = served.once(&carol.clone().method("GET"), "").await;
    assert_eq!(answer.status, 503, "{}", answer.body);
    // Calls need no permit.
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(served.once(&sessions[2], ping).await.status, 200);
    // A stream that is closed gives its permit back.
    drop((first, again, subscribed, third));
    let mut held = Vec::new();
    for session in [&sessions[1], &sessions[2], &carol] {
        let opened = crate::support::soon(async {
            loop {
                let mut stream = served.connect().await;
                stream.send(&session.clone().method("GET"), "").await;
                match stream.head().await.status {
                    200 => return stream,
                    status => assert!(matches!(status, 429 | 503), "{status}"),
                }
            }
        })
        .await;
        held.push(opened);
    }
}
