//! HTTP servers that conform, and those that do not.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mcp_client::{
    ClientError, ClientErrorKind, Connection, ConnectionOptions, Endpoint, EraChoice, HttpEndpoint,
    RequestOptions, Upstream, UpstreamOptions,
};
use mcp_wire::Era;
use raw_json::RawJson;
use tokio::{
    runtime::Builder,
    time::{Instant, timeout},
};

use crate::{
    support::http_server::{Reply, Seen, Server, json, modern_opening, opening, status, stream},
    support::peer::{raw, within},
};

const PATIENCE: Duration = Duration::from_secs(60);

async fn connect(server: &Server, options: ConnectionOptions) -> Result<Connection, ClientError> {
    let endpoint = HttpEndpoint::new(&server.url)
        .unwrap()
        .header("authorization", "Bearer secret")
        .unwrap();
    timeout(PATIENCE, Connection::http(&endpoint, options))
        .await
        .unwrap()
}

/// Starts a server that opens connections and answers the first call as given; later calls always succeed.
async fn serving(first: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> (Server, Connection) {
    serving_in(Era::Legacy, first).await
}

pub(crate) async fn serving_in(
    era: Era,
    first: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
) -> (Server, Connection) {
    let opening = match era {
        Era::Legacy => opening,
        Era::Modern => modern_opening,
    };
    let calls = AtomicUsize::new(0);
    let server = Server::start(move |seen| {
        opening(seen).unwrap_or_else(|| match calls.fetch_add(1, Ordering::SeqCst) {
            0 => first(seen),
            _ => json(&format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":{{"fine":1e2}}}}"#,
                seen.body["id"]
            )),
        })
    })
    .await;
    let connection = connect(&server, ConnectionOptions::default()).await.unwrap();
    (server, connection)
}

pub(crate) async fn call(connection: &Connection, options: RequestOptions) -> Result<RawJson, ClientError> {
    let params = raw(r#"{"name":"t"}"#);
    timeout(PATIENCE, connection.request("tools/call", Some(params), options))
        .await
        .unwrap()
}

/// Response to a request, with its id in place of `ID`.
pub(crate) fn about(seen: &Seen, text: &str) -> String {
    text.replace("ID", &seen.body["id"].to_string())
}

#[tokio::test]
async fn what_requests_say_of_themselves() {
    let (server, connection) = serving(|seen| json(&about(seen, r#"{"id":ID,"result":{}}"#))).await;
    call(&connection, within(20)).await.unwrap();
    connection.shutdown().await;
    // The first request probes whether the server is modern.
    let seen = &server.seen()[1..];
    let has = |seen: &Seen, name: &str| seen.headers.get(name).cloned();
    assert_eq!(
        (
            has(&seen[0], "mcp-session-id"),
            has(&seen[0], "mcp-protocol-version")
        ),
        (None, None)
    );
    for later in &seen[1..] {
        assert_eq!(has(later, "mcp-session-id").as_deref(), Some("s1"));
        assert_eq!(has(later, "mcp-protocol-version").as_deref(), Some("2025-11-25"));
    }
    for all in seen {
        assert_eq!(has(all, "authorization").as_deref(), Some("Bearer secret"));
        assert_eq!(
            has(all, "accept").as_deref(),
            Some("application/json, text/event-stream")
        );
    }
    assert_eq!(seen.last().unwrap().method, "DELETE");
    let error = call(&connection, within(20)).await.unwrap_err();
    assert!(matches!(error.kind(), ClientErrorKind::Closed(_)) && !error.was_sent());
}

#[tokio::test]
async fn a_connection_is_used_again_until_the_server_closes_it() {
    let calls = AtomicUsize::new(0);
    let server = Server::start(move |seen| {
        opening(seen).unwrap_or_else(|| {
            let answer = json(&about(seen, r#"{"id":ID,"result":{}}"#));
            match (calls.fetch_add(1, Ordering::SeqCst), answer) {
                // No notice in the answer.
                (2, Reply::Bytes(pieces)) => Reply::Close(pieces.concat()),
                (_, answer) => answer,
            }
        })
    })
    .await;
    let connection = connect(&server, ConnectionOptions::default()).await.unwrap();
    for _ in 0..5 {
        call(&connection, within(20)).await.unwrap();
        // The end of a connection must have arrived before it can be detected.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let seen = server.seen();
    let calls = seen.iter().filter(|seen| seen.body["method"] == "tools/call");
    let peers: Vec<_> = calls.map(|seen| seen.peer).collect();
    // The handshake is still in progress during the first call.
    assert_eq!(peers[1], peers[2]);
    assert_ne!(peers[2], peers[3]);
    assert_eq!(peers[3], peers[4]);
}

/// Answers to a call and its outcome; the next call always succeeds.
#[tokio::test]
async fn odd_answers() {
    enum Expect {
        Result(&'static str),
        Rpc(i64),
        Protocol(&'static str),
        ServerStatus(u16),
        Auth(u16),
        TooLarge,
        Closed,
    }
    use Expect::{Auth, Closed, Protocol, Result, Rpc, ServerStatus, TooLarge};
    type Make = fn(&Seen) -> Reply;
    let cases: &[(&str, Make, Expect)] = &[
        (
            "JSON",
            |seen| json(&about(seen, r#" {"id":ID,"result":{"a": 1e2}} "#)),
            Result(r#"{"a": 1e2}"#),
        ),
        (
            "a string id",
            |seen| json(&about(seen, r#"{"id":"ID","result":{}}"#)),
            Result("{}"),
        ),
        (
            "null",
            |seen| json(&about(seen, r#"{"id":ID,"result":null}"#)),
            Result("null"),
        ),
        (
            "a stream",
            |seen| {
                stream(&about(
                    seen,
                    "event: message\ndata: {\"id\":ID,\"result\":{}}\n\n",
                ))
            },
            Result("{}"),
        ),
        (
            "a stream with other things",
            |seen| {
                stream(&about(
                    seen,
                    "id: 1\ndata:\n\n: comment\n\ndata: garbage\n\ndata: {\"id\":999,\"result\":{}}\n\ndata: {\"id\":\"s\",\"method\":\"roots/list\"}\n\ndata: {\"id\":ID,\ndata: \"result\":{}}\n\n",
                ))
            },
            Result("{}"),
        ),
        (
            "JSON called a stream",
            |seen| stream(&about(seen, "\n{\"id\":ID,\"result\":{}}")),
            Result("{}"),
        ),
        (
            "an error",
            |seen| json(&about(seen, r#"{"id":ID,"error":{"code":-5,"message":"no"}}"#)),
            Rpc(-5),
        ),
        (
            "an error without an id",
            |_| json(r#"{"error":{"code":-32700,"message":"no"}}"#),
            Rpc(-32700),
        ),
        (
            "an error with a status",
            |_| {
                status(
                    "400 Bad Request",
                    "content-type: application/json\r\n",
                    r#"{"id":null,"error":{"code":-32602,"message":"no"}}"#,
                )
            },
            Rpc(-32602),
        ),
        (
            "accepted",
            |_| status("202 Accepted", "", ""),
            Protocol("accepted the request without an answer"),
        ),
        (
            "another id",
            |_| json(r#"{"id":999,"result":{}}"#),
            Protocol("another request"),
        ),
        ("bad JSON", |_| json("{"), Protocol("not a valid message")),
        (
            "a batch",
            |seen| json(&about(seen, r#"[{"id":ID,"result":{}}]"#)),
            Protocol("not a valid message"),
        ),
        (
            "HTML",
            |_| status("200 OK", "content-type: text/html\r\n", "<html>"),
            Protocol("`text/html`"),
        ),
        (
            "a stream that ends",
            |_| stream(": nothing\n\n"),
            Protocol("ended without an answer"),
        ),
        (
            "a stream of others",
            |_| stream("data: {\"id\":999,\"result\":{}}\n\n"),
            Protocol("answers to other requests"),
        ),
        (
            "a broken answer",
            |seen| stream(&about(seen, "data: {\"id\":ID,\"result\":{]}\n\n")),
            Protocol("not a valid message"),
        ),
        (
            "a fault",
            |_| status("500 Internal Server Error", "", "oh"),
            ServerStatus(500),
        ),
        (
            "a redirect",
            |_| status("307 Temporary Redirect", "location: http://127.0.0.1:1/\r\n", ""),
            ServerStatus(307),
        ),
        (
            "a refusal",
            |_| status("401 Unauthorized", "www-authenticate: Bearer\r\n", ""),
            Auth(401),
        ),
        ("another refusal", |_| status("403 Forbidden", "", ""), Auth(403)),
        (
            "a body that is too large",
            |_| json(&"x".repeat(17 << 20)),
            TooLarge,
        ),
        (
            "a stream that is too large",
            |_| stream(&format!("data: {}\n\n", "x".repeat(17 << 20))),
            TooLarge,
        ),
        ("no answer at all", |_| Reply::Close(Vec::new()), Closed),
        (
            "half an answer",
            |_| {
                Reply::Close(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"
                        .to_vec(),
                )
            },
            Closed,
        ),
    ];
    let both = || {
        cases
            .iter()
            .flat_map(|case| [(case, Era::Legacy), (case, Era::Modern)])
    };
    for ((name, make, expected), era) in both() {
        let make = *make;
        let (_server, connection) = serving_in(era, make).await;
        assert_eq!(connection.server().era(), era);
        let outcome = call(&connection, within(20)).await;
        match (expected, &outcome) {
            (Result(text), Ok(result)) => assert_eq!(result.as_str(), *text, "{name}"),
            (_, Ok(_)) => panic!("{name}: {outcome:?}"),
            (expected, Err(error)) => {
                assert!(error.was_sent(), "{name}");
                match (expected, error.kind()) {
                    (Rpc(code), ClientErrorKind::Rpc(error)) => assert_eq!(error.code, *code, "{name}"),
                    (Protocol(says), ClientErrorKind::Protocol(text)) => {
                        assert!(text.contains(says), "{name}: {text}");
                    }
                    (ServerStatus(expected), ClientErrorKind::HttpStatus { status, .. }) => {
                        assert_eq!(status, expected, "{name}");
                    }
                    (Auth(expected), ClientErrorKind::Auth { status, .. }) => {
                        assert_eq!(status, expected, "{name}");
                    }
                    (
                        TooLarge,
                        ClientErrorKind::TooLarge {
                            limit: 16_777_216, ..
                        },
                    ) => {}
                    (Closed, ClientErrorKind::Closed(_)) => {}
                    _ => panic!("{name}: {error:?}"),
                }
            }
        }
        assert_eq!(
            call(&connection, within(20)).await.unwrap().as_str(),
            r#"{"fine":1e2}"#,
            "{name}"
        );
        assert_eq!(connection.pending(), 0);
    }
}

#[tokio::test]
async fn a_call_without_an_answer_is_cancelled() {
    let (server, connection) = serving(|_| Reply::Silence).await;
    let start = Instant::now();
    let options = RequestOptions::with_timeout(Duration::from_millis(200));
    let error = call(&connection, options).await.unwrap_err();
    assert!(
        matches!(error.kind(), ClientErrorKind::Timeout(_)) && error.was_sent(),
        "{error}"
    );
    assert!(start.elapsed() < Duration::from_secs(20));
    let id = server.wait_for("tools/call").await.body["id"].clone();
    let cancelled = server.wait_for("notifications/cancelled").await;
    assert_eq!(cancelled.body["params"]["requestId"], id);
    assert_eq!(
        call(&connection, within(20)).await.unwrap().as_str(),
        r#"{"fine":1e2}"#
    );
}

/// The server accepts none; each times out after ten seconds.
#[tokio::test]
async fn a_cancellation_does_not_wait_for_another() {
    let server = Server::start(|seen| match seen.body["method"].as_str() {
        Some("notifications/cancelled") => Reply::Silence,
        _ => opening(seen).unwrap_or(Reply::Silence),
    })
    .await;
    let connection = connect(&server, ConnectionOptions::default()).await.unwrap();
    for _ in 0..3 {
        let options = RequestOptions::with_timeout(Duration::from_millis(50));
        call(&connection, options).await.unwrap_err();
    }
    let all_told = async {
        let is_told = |seen: &Seen| seen.body["method"] == "notifications/cancelled";
        while server.seen().iter().filter(|seen| is_told(seen)).count() < 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let soon = timeout(Duration::from_secs(8), all_told).await;
    assert!(soon.is_ok(), "the others had to wait");
}

#[tokio::test]
async fn a_caller_that_leaves_cancels() {
    let (server, connection) = serving(|_| Reply::Silence).await;
    let pending = tokio::spawn({
        let connection = connection.clone();
        async move { connection.request("tools/call", None, within(60)).await }
    });
    let id = server.wait_for("tools/call").await.body["id"].clone();
    pending.abort();
    assert_eq!(
        server.wait_for("notifications/cancelled").await.body["params"]["requestId"],
        id
    );
    assert_eq!(connection.pending(), 0);
}

#[tokio::test]
async fn a_stream_that_goes_quiet_is_left_at_the_deadline() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: waiting\n\n";
    let (_server, connection) = serving(|_| Reply::Bytes(vec![head.to_vec()])).await;
    let error = call(
        &connection,
        RequestOptions::with_timeout(Duration::from_millis(200)),
    )
    .await
    .unwrap_err();
    assert!(matches!(error.kind(), ClientErrorKind::Timeout(_)), "{error}");
    assert!(call(&connection, within(20)).await.is_ok());
}

#[tokio::test]
async fn progress_comes_in_order_and_before_the_answer() {
    let (_server, connection) = serving(|seen| {
        assert_eq!(seen.body["params"]["_meta"]["progressToken"], seen.body["id"]);
        let mut events = String::new();
        for step in 0..50 {
            events += &about(seen, &format!("data: {{\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":ID,\"progress\":{step}}}}}\n\n"));
        }
        stream(&(events + &about(seen, "data: {\"id\":ID,\"result\":{}}\n\n")))
    })
    .await;
    let steps = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&steps);
    let options = within(20).on_progress(move |params| {
        sink.lock()
            .unwrap()
            .push(params.get("progress").unwrap().to_string());
    });
    call(&connection, options).await.unwrap();
    assert_eq!(
        *steps.lock().unwrap(),
        (0..50).map(|step| step.to_string()).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn a_session_that_the_server_forgot_is_opened_again_once() {
    for (line, body) in [
        ("404 Not Found", ""),
        (
            "400 Bad Request",
            r#"{"id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#,
        ),
        (
            "404 Not Found",
            r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32001,"message":"Session not found"}}"#,
        ),
    ] {
        let (server, connection) = serving(move |seen| {
            let body = about(seen, body);
            status(line, "content-type: application/json\r\n", &body)
        })
        .await;
        let sent = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&sent);
        let options = within(20).on_sent(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        assert_eq!(
            call(&connection, options).await.unwrap().as_str(),
            r#"{"fine":1e2}"#
        );
        let mut methods: Vec<String> = server
            .seen()
            .iter()
            .map(|seen| seen.body["method"].as_str().unwrap_or(&seen.method).to_owned())
            .filter(|method| method != "GET")
            .collect();
        let opening = ["initialize", "notifications/initialized"];
        assert_eq!(methods.remove(0), "server/discover");
        assert_eq!(
            methods,
            [&opening[..], &["tools/call"], &opening[..], &["tools/call"]].concat()
        );
        assert_eq!(connection.changes().borrow().openings, 1);
    }
    // A server that never knows the session is asked only twice.
    let server = Server::start(|seen| opening(seen).unwrap_or_else(|| status("404 Not Found", "", ""))).await;
    let connection = connect(&server, ConnectionOptions::default()).await.unwrap();
    let error = call(&connection, within(20)).await.unwrap_err();
    assert!(
        matches!(error.kind(), ClientErrorKind::HttpStatus { status: 404, .. }),
        "{error}"
    );
    assert_eq!(
        server
            .seen()
            .iter()
            .filter(|seen| seen.body["method"] == "tools/call")
            .count(),
        2
    );
}

#[tokio::test]
async fn a_server_that_cannot_be_reached() {
    let server = Server::start(|_| Reply::Silence).await;
    let connection = serving(|_| Reply::Silence).await.1;
    drop(connection);
    // A port that was free a moment ago.
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", free.local_addr().unwrap());
    drop(free);
    let error = Connection::http(&HttpEndpoint::new(&url).unwrap(), ConnectionOptions::default())
        .await
        .unwrap_err();
    assert!(
        matches!(error.kind(), ClientErrorKind::Unreachable(_)) && !error.was_sent(),
        "{error:?}"
    );
    // A server that accepts the connection and stays silent.
    let options = ConnectionOptions::default().start_timeout(Duration::from_millis(200));
    let error = connect(&server, options).await.unwrap_err();
    assert!(
        matches!(error.kind(), ClientErrorKind::StartFailed { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_refused_opening_says_what_is_wanted() {
    let server =
        Server::start(|_| status("401 Unauthorized", "www-authenticate: Bearer realm=x\r\n", "")).await;
    let error = connect(&server, ConnectionOptions::default()).await.unwrap_err();
    let ClientErrorKind::Auth {
        status: 401,
        challenge,
        ..
    } = error.kind()
    else {
        panic!("{error:?}")
    };
    assert_eq!(challenge.as_deref(), Some("Bearer realm=x"));
    // Callers of a supervised server get the same error during the pause.
    let endpoint = Endpoint::Http(HttpEndpoint::new(&server.url).unwrap());
    let upstream = Upstream::new(endpoint, UpstreamOptions::default());
    for _ in 0..3 {
        let error = timeout(PATIENCE, upstream.connection())
            .await
            .unwrap()
            .unwrap_err();
        assert!(
            matches!(error.kind(), ClientErrorKind::Auth { status: 401, .. }),
            "{error:?}"
        );
    }
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn a_modern_server_is_sent_what_it_needs() {
    let server = Server::start(|seen| match seen.body["method"].as_str() {
        Some("server/discover") => json(&about(
            seen,
            r#"{"id":ID,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}"#,
        )),
        Some("tools/call" | "tasks/get" | "tasks/update" | "tasks/cancel") => {
            json(&about(seen, r#"{"id":ID,"result":{"resultType":"complete"}}"#))
        }
        _ => status(
            "400 Bad Request",
            "content-type: application/json\r\n",
            r#"{"id":null,"error":{"code":-32022,"message":"Unsupported protocol version"}}"#,
        ),
    })
    .await;
    for era in [EraChoice::Modern, EraChoice::Auto] {
        let connection = connect(&server, ConnectionOptions::default().era(era))
            .await
            .unwrap();
        call(&connection, within(20)).await.unwrap();
        let seen = server.seen().pop().unwrap();
        for (name, value) in [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "t"),
        ] {
            assert_eq!(seen.headers.get(name).map(String::as_str), Some(value));
        }
        assert_eq!(seen.headers.get("mcp-session-id"), None);
        assert_eq!(
            seen.body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"],
            "2026-07-28"
        );
        // Requests about a task carry its id in a header.
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let params = raw_json::RawJson::parse(r#"{"taskId":"täglich","name":"t"}"#).unwrap();
            connection
                .request(method, Some(params), within(20))
                .await
                .unwrap();
            let seen = server.seen().pop().unwrap();
            assert_eq!(seen.headers["mcp-method"], method);
            assert_eq!(seen.headers["mcp-name"], "=?base64?dMOkZ2xpY2g=?=", "{method}");
        }
    }
}

#[tokio::test]
async fn changes_come_over_the_stream_that_is_listened_to() {
    let server = Server::start(|seen| {
        if seen.method == "GET" {
            let event = "data: {\"method\":\"notifications/tools/list_changed\"}\n\n";
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            return Reply::Bytes(vec![format!("{head}{event}").into_bytes()]);
        }
        opening(seen).unwrap_or(Reply::Silence)
    })
    .await;
    let connection = connect(&server, ConnectionOptions::default()).await.unwrap();
    let mut changes = connection.changes();
    timeout(PATIENCE, changes.wait_for(|changes| changes.tools == 1))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(server.wait_for("GET").await.headers["mcp-session-id"], "s1");
}

/// Nothing is called, so only the stream itself can detect the restart of the server.
#[tokio::test]
async fn a_server_that_was_started_again_is_listened_to_again() {
    let openings = AtomicUsize::new(0);
    let server = Server::start(move |seen| {
        let is_known = seen.headers.get("mcp-session-id").is_none_or(|id| id == "s2");
        match seen.body["method"].as_str() {
            Some("initialize") if openings.fetch_add(1, Ordering::SeqCst) > 0 => {
                let body = about(
                    seen,
                    &format!(
                        r#"{{"jsonrpc":"2.0","id":ID,"result":{}}}"#,
                        crate::support::peer::OPENED
                    ),
                );
                let headers = "content-type: application/json\r\nmcp-session-id: s2\r\n";
                status("200 OK", headers, &body)
            }
            Some("notifications/initialized") => status("202 Accepted", "", ""),
            _ if !is_known => status("404 Not Found", "", ""),
            None if seen.method == "GET" => {
                let event = "data: {\"method\":\"notifications/tools/list_changed\"}\n\n";
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
                Reply::Bytes(vec![format!("{head}{event}").into_bytes()])
            }
            _ => opening(seen).unwrap_or(Reply::Silence),
        }
    })
    .await;
    let connection = connect(&server, ConnectionOptions::default()).await.unwrap();
    let mut changes = connection.changes();
    // Three changes: the server has lost its state, a gap before the new stream, and its own notification.
    timeout(PATIENCE, changes.wait_for(|changes| changes.tools == 3))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(changes.borrow().openings, 1);
}

/// A server without this stream may refuse it with 404: it is asked once whether it knows the session. Others answer
/// every GET with a page.
#[tokio::test]
async fn a_server_without_a_stream_is_not_asked_for_ever() {
    for (line, headers, asked) in [
        ("404 Not Found", "", "ping"),
        ("200 OK", "content-type: text/html\r\n", "GET"),
    ] {
        let server = Server::start(move |seen| match seen.body["method"].as_str() {
            None if seen.method == "GET" => status(line, headers, "<p>"),
            Some("ping") => json(&about(seen, r#"{"jsonrpc":"2.0","id":ID,"result":{}}"#)),
            _ => opening(seen).unwrap_or(Reply::Silence),
        })
        .await;
        let connection = connect(&server, ConnectionOptions::default()).await.unwrap();
        server.wait_for(asked).await;
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        let gets = server.seen().iter().filter(|seen| seen.method == "GET").count();
        assert_eq!(gets, 1);
        assert_eq!(connection.changes().borrow().openings, 0);
    }
}

/// A server that responds under the request's id has examined it: it may have run, whatever the error says.
#[tokio::test]
async fn an_answer_that_speaks_of_a_session_is_no_lost_session() {
    for (line, says) in [
        ("400 Bad Request", "your login session has ended"),
        ("404 Not Found", "no such order"),
    ] {
        let (server, connection) = serving(move |seen| {
            let error = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"SAYS"},"id":ID}"#;
            let body = about(seen, &error.replace("SAYS", says));
            status(line, "content-type: application/json\r\n", &body)
        })
        .await;
        let error = call(&connection, within(20)).await.unwrap_err();
        assert!(matches!(error.kind(), ClientErrorKind::Rpc(_)), "{error}");
        let calls = server.seen().into_iter();
        assert_eq!(
            calls.filter(|seen| seen.body["method"] == "tools/call").count(),
            1,
            "{says}"
        );
        assert_eq!(connection.changes().borrow().openings, 0);
    }
}

/// A restarting server: it no longer knows the old session, and cannot open another one yet.
#[tokio::test]
async fn a_session_that_cannot_be_opened_again_is_tried_again_by_the_next_call() {
    for refused in ["initialize", "notifications/initialized"] {
        let (n_opened, n_refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let server = Server::start(move |seen| {
            let method = seen.body["method"].as_str().unwrap_or_default();
            // The second of these requests: the first one belonged to the first handshake.
            if method == refused && n_refused.fetch_add(1, Ordering::SeqCst) == 1 {
                return match method {
                    "initialize" => json(&about(
                        seen,
                        r#"{"id":ID,"error":{"code":-32603,"message":"not yet"}}"#,
                    )),
                    _ => status("503 Service Unavailable", "", ""),
                };
            }
            let session = seen.headers.get("mcp-session-id").map(String::as_str);
            match method {
                "initialize" => {
                    let result = format!(r#"{{"id":ID,"result":{}}}"#, crate::support::peer::OPENED);
                    let id = format!("s{}", n_opened.fetch_add(1, Ordering::SeqCst));
                    let headers = format!("content-type: application/json\r\nmcp-session-id: {id}\r\n");
                    status("200 OK", &headers, &about(seen, &result))
                }
                "notifications/initialized" => status("202 Accepted", "", ""),
                "tools/call" if session == Some("s0") => status("404 Not Found", "", ""),
                "tools/call" => json(&about(seen, r#"{"id":ID,"result":{"fine":1}}"#)),
                _ => status("405 Method Not Allowed", "", ""),
            }
        })
        .await;
        let connection = connect(&server, ConnectionOptions::default()).await.unwrap();
        let error = call(&connection, within(20)).await.unwrap_err();
        assert!(!error.was_sent(), "{refused}: {error}");
        assert_eq!(connection.changes().borrow().openings, 0, "{refused}");
        let answer = call(&connection, within(20)).await;
        assert_eq!(answer.unwrap().as_str(), r#"{"fine":1}"#, "{refused}");
        assert_eq!(connection.changes().borrow().openings, 1, "{refused}");
        let seen = server.seen();
        let last = seen
            .iter()
            .rfind(|seen| seen.body["method"] == "notifications/initialized");
        assert_eq!(
            last.unwrap().headers["mcp-session-id"],
            seen.last().unwrap().headers["mcp-session-id"],
            "{refused}"
        );
    }
}

/// A server that keeps the stream of a session that it no longer knows.
#[tokio::test]
async fn a_session_that_is_opened_again_is_listened_to() {
    let n_calls = AtomicUsize::new(0);
    let server = Server::start(move |seen| match seen.body["method"].as_str() {
        None if seen.method == "GET" => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            Reply::Bytes(vec![head.into()])
        }
        Some("tools/call") if n_calls.fetch_add(1, Ordering::SeqCst) == 0 => status("404 Not Found", "", ""),
        Some("tools/call") => json(&about(seen, r#"{"id":ID,"result":{}}"#)),
        _ => opening(seen).unwrap_or(Reply::Silence),
    })
    .await;
    let connection = connect(&server, ConnectionOptions::default()).await.unwrap();
    server.wait_for("GET").await;
    call(&connection, within(20)).await.unwrap();
    let listened = async {
        while server.seen().iter().filter(|seen| seen.method == "GET").count() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, listened).await.unwrap();
}

/// A stream that cannot be resumed: notifications between two streams are missed.
#[tokio::test]
async fn lists_may_have_changed_while_no_stream_was_open() {
    let server = Server::start(|seen| match seen.method.as_str() {
        "GET" => stream(": nothing\n\n"),
        _ => opening(seen).unwrap_or(Reply::Silence),
    })
    .await;
    let connection = connect(&server, ConnectionOptions::default()).await.unwrap();
    let mut changes = connection.changes();
    let changed = changes.wait_for(|changes| changes.tools == 1 && changes.prompts == 1);
    timeout(PATIENCE, changed).await.unwrap().unwrap();
    let gets = server.seen().iter().filter(|seen| seen.method == "GET").count();
    assert_eq!(gets, 2, "the first one leaves no gap");
}

/// A program that blocks on one runtime and then on another, without dropping the first.
#[test]
fn each_runtime_has_connections_of_its_own() {
    let mut thread = Builder::new_multi_thread();
    let thread = thread.worker_threads(1).enable_all().build().unwrap();
    let server = thread.block_on(Server::start(|seen| {
        modern_opening(seen).unwrap_or_else(|| json(&about(seen, r#"{"id":ID,"result":{}}"#)))
    }));
    let runtimes = [(); 2].map(|()| Builder::new_current_thread().enable_all().build().unwrap());
    let opened = runtimes[0].block_on(connect(&server, ConnectionOptions::default()));
    let connection = opened.unwrap();
    for runtime in [0, 1, 0, 1] {
        let called = runtimes[runtime].block_on(call(&connection, within(20)));
        called.unwrap_or_else(|error| panic!("on runtime {runtime}: {error}"));
    }
    let calls = server.seen().into_iter();
    let calls = calls.filter(|seen| seen.body["method"] == "tools/call");
    let peers: Vec<_> = calls.map(|seen| seen.peer).collect();
    assert_ne!(peers[0], peers[1]);
    assert_eq!(peers[..2], peers[2..]);
}

#[test]
fn endpoints_that_are_none() {
    for url in [
        "",
        "localhost:80",
        "ftp://host/",
        "unix:/run/x",
        "http://",
        "http://user:hidden@host/",
        "http://user@host/",
    ] {
        let error = HttpEndpoint::new(url).unwrap_err();
        assert!(matches!(error.kind(), ClientErrorKind::Invalid(_)), "{url}");
        assert!(!format!("{error:?}").contains("hidden"), "{url}");
    }
    let endpoint = HttpEndpoint::new("http://host/?key=hidden").unwrap();
    assert!(endpoint.clone().header("a b", "c").is_err());
    assert!(endpoint.clone().header("x", "c\r\nd: e").is_err());
    // Callers cannot control where a message ends.
    for name in ["Content-Length", "transfer-encoding", "connection"] {
        let error = endpoint.clone().header(name, "1").unwrap_err();
        assert!(error.to_string().contains("controls the framing"), "{error}");
    }
    let endpoint = endpoint.header("x-key", "hidden").unwrap();
    assert!(!format!("{endpoint:?}").contains("hidden"));
}

#[cfg(not(feature = "tls"))]
#[tokio::test]
async fn a_build_without_tls_says_what_it_lacks() {
    let endpoint = HttpEndpoint::new("https://127.0.0.1:9/mcp").unwrap();
    let error = Connection::http(&endpoint, ConnectionOptions::default())
        .await
        .unwrap_err();
    assert!(matches!(error.kind(), ClientErrorKind::Invalid(_)), "{error:?}");
    assert!(error.to_string().contains("feature `tls`"), "{error}");
}
