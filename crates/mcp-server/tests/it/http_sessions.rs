use std::time::Duration;

use http::{HeaderValue, StatusCode};
use mcp_server::{HttpServerOptions, Notifier, Principal, RequestRefusal};

use crate::support::{EVERYTHING, Head, Served};

const WHO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"test/who"}"#;
const WAIT: &str = r#"{"jsonrpc":"2.0","id":1,"method":"test/wait"}"#;
pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t"}}}"#;

async fn open(served: &Served, head: &Head<'_>) -> String {
    let answer = served.once(head, INITIALIZE).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(
        answer.body.contains(r#""protocolVersion":"2025-06-18""#),
        "{}",
        answer.body
    );
    let id = answer.header("mcp-session-id").unwrap().to_owned();
    assert!(
        id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{id}"
    );
    id
}

fn within(session: &str) -> Head<'static> {
    Head::post().with("Mcp-Session-Id", session)
}

#[tokio::test]
async fn a_session_remembers_what_was_agreed_on() {
    let served = Served::start(HttpServerOptions::default()).await;
    let session = open(&served, &Head::post()).await;
    assert_ne!(session, open(&served, &Head::post()).await);
    let answer = served.once(&within(&session), WHO).await;
    assert!(answer.body.contains(
        r#"{"revision":"2025-06-18","principal":"anonymous","session":"some","http":true,"info":{"name":"t"},"capabilities":{}}"#
    ), "{}", answer.body);
    let answer = served
        .once(
            &within(&session),
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        )
        .await;
    assert_eq!(answer.status, 202);
}

#[tokio::test]
async fn an_ended_or_unknown_session_is_not_found() {
    let served = Served::start(HttpServerOptions::default()).await;
    let session = open(&served, &Head::post()).await;
    for head in [within("0123456789abcdef0123456789abcdef"), within("x")] {
        for method in ["POST", "GET", "DELETE"] {
            assert_eq!(
                served.once(&head.clone().method(method), WHO).await.status,
                404,
                "{method}"
            );
        }
    }
    assert!(served.log.ended.lock().unwrap().is_empty());
    assert_eq!(
        served.once(&within(&session).method("DELETE"), "").await.status,
        204
    );
    // The service was notified.
    assert_eq!(served.log.ended.lock().unwrap().len(), 1);
    assert_eq!(served.once(&within(&session), WHO).await.status, 404);
    assert_eq!(
        served.once(&within(&session).method("DELETE"), "").await.status,
        404
    );
    assert_eq!(served.once(&Head::post().method("DELETE"), "").await.status, 400);
}

#[tokio::test]
async fn another_principal_cannot_use_a_session() {
    let served = Served::start(HttpServerOptions::default().identify(|parts| {
        match parts.headers.get("x-user").map(HeaderValue::to_str) {
            Some(Ok(user)) => Ok(Principal::new(user)),
            _ => Err(RequestRefusal::new(StatusCode::UNAUTHORIZED, "no user")),
        }
    }))
    .await;
    let session = open(&served, &Head::post().with("X-User", "alice")).await;
    assert_eq!(
        served
            .once(&within(&session).with("X-User", "alice"), WHO)
            .await
            .status,
        200
    );
    for method in ["POST", "GET", "DELETE"] {
        let stolen = within(&session).with("X-User", "mallory").method(method);
        assert_eq!(served.once(&stolen, WHO).await.status, 404, "{method}");
    }
    assert_eq!(
        served
            .once(&within(&session).with("X-User", "alice"), WHO)
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_request_of_two_sessions_is_of_none() {
    let served = Served::start(HttpServerOptions::default()).await;
    let session = open(&served, &Head::post()).await;
    for method in ["POST", "GET", "DELETE"] {
        let mut twice = within(&session).method(method);
        twice.headers.push(("Mcp-Session-Id", session.clone()));
        let body = if method == "POST" { WHO } else { "" };
        assert_eq!(served.once(&twice, body).await.status, 400, "{method}");
    }
    assert_eq!(served.once(&within(&session), WHO).await.status, 200);
}

#[tokio::test]
async fn sessions_can_be_required() {
    let served = Served::start(HttpServerOptions::default().requires_session(true)).await;
    assert_eq!(served.once(&Head::post(), WHO).await.status, 400);
    let session = open(&served, &Head::post()).await;
    assert_eq!(served.once(&within(&session), WHO).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_expires() {
    let served = Served::start(HttpServerOptions::default().session_idle(Duration::from_secs(60))).await;
    let session = open(&served, &Head::post()).await;
    for _ in 0..3 {
        tokio::time::advance(Duration::from_secs(50)).await;
        assert_eq!(served.once(&within(&session), WHO).await.status, 200);
    }
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(served.once(&within(&session), WHO).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_ended_though_nobody_comes() {
    let notices = Notifier::default();
    let served = Served::start(
        HttpServerOptions::default()
            .session_idle(Duration::from_secs(60))
            .notifier(notices.clone()),
    )
    .await;
    served.log.offer(EVERYTHING);
    let ended = || served.log.ended.lock().unwrap().len();
    let (left, heard, working) = (
        open(&served, &Head::post()).await,
        open(&served, &Head::post()).await,
        open(&served, &Head::post()).await,
    );
    let subscribe = r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"test:a"}}"#;
    assert_eq!(served.once(&within(&left), subscribe).await.status, 200);
    assert_eq!(notices.subscribed_uris(), ["test:a"]);
    let mut stream = served.connect().await;
    stream.send(&within(&heard).method("GET"), "").await;
    assert_eq!(stream.head().await.status, 200);
    let mut call = served.connect().await;
    call.send(&within(&working), WAIT).await;
    served.log.running(1).await;
    // The first one is not used, and ends with its subscriptions; the others are in use.
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(ended(), 0);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(ended(), 1);
    assert!(notices.subscribed_uris().is_empty());
    tokio::time::sleep(Duration::from_secs(129)).await;
    assert_eq!(ended(), 1);
    // Their idle time begins when that ends.
    drop(stream);
    served.log.gate.add_permits(1);
    assert_eq!(call.receive().await.status, 200);
    tokio::time::sleep(Duration::from_secs(58)).await;
    assert_eq!(ended(), 1);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(ended(), 3);
    // The same holds for a session that is opened after all others have ended.
    open(&served, &Head::post()).await;
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(ended(), 4);
}

#[tokio::test(start_paused = true)]
async fn the_longest_idle_session_makes_room() {
    let served = Served::start(HttpServerOptions::default().max_sessions(2)).await;
    let mut opened = Vec::new();
    for _ in 0..2 {
        opened.push(open(&served, &Head::post()).await);
        tokio::time::advance(Duration::from_millis(10)).await;
    }
    // The first one was used, so the second one is ended.
    assert_eq!(served.once(&within(&opened[0]), WHO).await.status, 200);
    let third = open(&served, &Head::post()).await;
    assert_eq!(served.once(&within(&opened[1]), WHO).await.status, 404);
    assert_eq!(served.once(&within(&opened[0]), WHO).await.status, 200);
    // A session with a running request is never ended.
    let (mut first, mut second) = (served.connect().await, served.connect().await);
    first.send(&within(&opened[0]), WAIT).await;
    second.send(&within(&third), WAIT).await;
    served.log.running(2).await;
    assert_eq!(served.once(&Head::post(), INITIALIZE).await.status, 503);
    served.log.gate.add_permits(2);
    assert_eq!(first.receive().await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn nobody_takes_the_places_of_those_who_have_fewer_sessions() {
    let served = Served::start(HttpServerOptions::default().max_sessions(4).identify(|parts| {
        let user = parts.headers.get("x-user").map(|user| user.to_str().unwrap());
        Ok(Principal::new(user.unwrap_or("alice")))
    }))
    .await;
    let open = async |user: &'static str| {
        tokio::time::advance(Duration::from_millis(10)).await;
        (user, open(&served, &Head::post().with("X-User", user)).await)
    };
    let status = async |(user, session): &(&'static str, String)| {
        served
            .once(&within(session).with("X-User", user), WHO)
            .await
            .status
    };
    let alices = open("alice").await;
    let mut others = Vec::new();
    for _ in 0..8 {
        others.push(open("mallory").await);
    }
    assert_eq!(status(&alices).await, 200);
    assert_eq!(status(&others[4]).await, 404);
    // The principal with the most sessions makes room, until both have as many.
    let second = open("alice").await;
    assert_eq!(status(&others[5]).await, 404);
    open("mallory").await;
    assert_eq!(status(&others[6]).await, 404);
    for session in [&alices, &second, &others[7]] {
        assert_eq!(status(session).await, 200);
    }
}

#[tokio::test]
async fn an_id_is_taken_within_a_session_only() {
    let served = Served::start(HttpServerOptions::default()).await;
    let (one, other) = (
        open(&served, &Head::post()).await,
        open(&served, &Head::post()).await,
    );
    let mut waiting = Vec::new();
    for head in [within(&one), within(&other), Head::post(), Head::post()] {
        let mut connection = served.connect().await;
        connection.send(&head, WAIT).await;
        waiting.push(connection);
    }
    served.log.running(4).await;
    let answer = served.once(&within(&one), WAIT).await;
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("-32600"), "{}", answer.body);
    served.log.gate.add_permits(4);
    for connection in &mut waiting {
        assert_eq!(
            connection.receive().await.body,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#
        );
    }
}

#[tokio::test]
async fn cancelling_reaches_the_request_of_the_same_session_only() {
    let served = Served::start(HttpServerOptions::default()).await;
    let (one, other) = (
        open(&served, &Head::post()).await,
        open(&served, &Head::post()).await,
    );
    let (mut first, mut second) = (served.connect().await, served.connect().await);
    first.send(&within(&one), WAIT).await;
    second
        .send(&within(&other).with("Accept", "application/json"), WAIT)
        .await;
    served.log.running(2).await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(served.once(&Head::post(), cancel).await.status, 202);
    assert_eq!(served.once(&within(&one), cancel).await.status, 202);
    served.log.running(1).await;
    // No message answers the request.
    let answer = first.receive().await;
    assert_eq!((answer.status, &*answer.body), (200, ""));
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(served.once(&within(&other), cancel).await.status, 202);
    let answer = second.receive().await;
    assert_eq!((answer.status, &*answer.body), (204, ""));
    served.log.running(0).await;
}

#[tokio::test]
async fn ending_a_session_cancels_what_is_in_flight() {
    let served = Served::start(HttpServerOptions::default()).await;
    let session = open(&served, &Head::post()).await;
    let mut waiting = served.connect().await;
    waiting.send(&within(&session), WAIT).await;
    served.log.running(1).await;
    assert_eq!(
        served.once(&within(&session).method("DELETE"), "").await.status,
        204
    );
    served.log.running(0).await;
    assert_eq!(waiting.receive().await.body, "");
}

#[tokio::test]
async fn a_session_is_told_of_changes_on_its_stream() {
    let notices = Notifier::default();
    let mut served = Served::start(HttpServerOptions::default().notifier(notices.clone())).await;
    let session = open(&served, &Head::post()).await;
    let mut stream = served.connect().await;
    stream.send(&within(&session).method("GET"), "").await;
    let head = stream.head().await;
    assert_eq!(
        (head.status, head.header("content-type")),
        (200, Some("text/event-stream"))
    );
    notices.send("notifications/tools/list_changed", None);
    let event = stream.event().await.unwrap();
    assert_eq!(
        event,
        "id: 0-1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"
    );
    let json_only = within(&session).method("GET").with("Accept", "application/json");
    assert_eq!(served.once(&json_only, "").await.status, 406);
    // The stream ends when the server stops, and with the session.
    let other = open(&served, &Head::post()).await;
    let mut ended = served.connect().await;
    ended.send(&within(&other).method("GET"), "").await;
    ended.head().await;
    assert_eq!(
        served.once(&within(&other).method("DELETE"), "").await.status,
        204
    );
    assert_eq!(ended.event().await, None);
    served.stop();
    assert_eq!(stream.event().await, None);
    served.stopped().await;
}

#[tokio::test]
async fn what_a_client_says_of_itself_is_bounded() {
    let served = Served::start(HttpServerOptions::default()).await;
    let long = INITIALIZE.replace("\"t\"", &format!("\"{}\"", "t".repeat(17 * 1024)));
    let answer = served.once(&Head::post(), &long).await;
    assert!(answer.body.contains("-32602"), "{}", answer.body);
    assert_eq!(answer.header("mcp-session-id"), None);
}
