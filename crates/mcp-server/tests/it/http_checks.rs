use std::{sync::Arc, time::Duration};

use http::HeaderValue;
use mcp_server::{AllowList, HttpServerOptions, Principal, RequestRefusal, ServeOptions, SharedAllowList};

use crate::{
    http_sessions::INITIALIZE,
    support::{Head, Served},
};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

fn allowed(hosts: &[&str], origins: &[&str]) -> AllowList {
    let allowed = hosts
        .iter()
        .fold(AllowList::default(), |list, host| list.host(*host));
    origins.iter().fold(allowed, |list, origin| list.origin(*origin))
}

#[tokio::test]
async fn only_known_names_are_answered_to() {
    let served = Served::start(
        HttpServerOptions::default().allowed(allowed(&["tools.example.com", "only.example.com:8443"], &[])),
    )
    .await;
    for (host, status) in [
        ("localhost", 200),
        ("localhost:1", 200),
        ("LOCALHOST:99", 200),
        ("127.0.0.1:7080", 200),
        ("[::1]:7080", 200),
        ("[::1]", 200),
        ("tools.example.com", 200),
        ("tools.example.com:443", 200),
        ("only.example.com:8443", 200),
        ("only.example.com", 403),
        ("only.example.com:80", 403),
        ("evil.example.com", 403),
        ("localhost.evil.example.com", 403),
        ("localhost:80:90", 403),
        ("localhost:evil", 403),
        ("127.0.0.1.evil.example.com", 403),
        ("evil.example.com#localhost", 403),
        ("127.0.0.2", 403),
        ("", 403),
    ] {
        let answer = served.once(&Head::post().with("Host", host), PING).await;
        assert_eq!(answer.status, status, "{host}");
    }
    let mut twice = Head::post();
    twice.headers.push(("Host", "localhost".to_owned()));
    assert_ne!(served.once(&twice, PING).await.status, 200);
    // An authority in the request line is checked, too.
    let mut absolute = Head::post();
    absolute.path = "http://evil.example.com/mcp";
    assert_eq!(served.once(&absolute, PING).await.status, 403);
}

#[tokio::test]
async fn a_refusal_names_the_setting_that_admits() {
    let evil = |name, value| Head::post().with(name, value);
    let own = HttpServerOptions::default().setting_names("server.hosts", "server.origins");
    for (options, host_setting, origin_setting) in [
        (
            HttpServerOptions::default(),
            "HttpServerOptions::allow_host",
            "HttpServerOptions::allow_origin",
        ),
        (own, "server.hosts", "server.origins"),
    ] {
        let served = Served::start(options).await;
        let answer = served.once(&evil("Host", "tools.example.com"), PING).await;
        let expected = format!("this host name is not served here; admit it with `{host_setting}`");
        assert_eq!(answer.status, 403);
        assert!(answer.body.contains(&expected), "{}", answer.body);
        let answer = served
            .once(&evil("Origin", "https://chat.example.com"), PING)
            .await;
        let expected = format!("listed; admit it with `{origin_setting}`");
        assert_eq!(answer.status, 403);
        assert!(answer.body.contains(&expected), "{}", answer.body);
    }
    // It is the setting that admits.
    let options = HttpServerOptions::default()
        .allow_host("tools.example.com")
        .allow_origin("https://chat.example.com");
    let served = Served::start(options).await;
    let admitted = evil("Host", "tools.example.com").with("Origin", "https://chat.example.com");
    assert_eq!(served.once(&admitted, PING).await.status, 200);
}

#[tokio::test]
async fn a_refusal_has_a_challenge_if_it_is_about_credentials() {
    let served = Served::start(HttpServerOptions::default().identify(|parts| {
        match parts.headers.get("authorization").map(HeaderValue::as_bytes) {
            Some(_) => Err(RequestRefusal::forbidden("this account is closed")),
            None => Err(RequestRefusal::unauthorized()),
        }
    }))
    .await;
    let answer = served.once(&Head::post(), PING).await;
    assert_eq!(
        (answer.status, answer.header("www-authenticate")),
        (401, Some("Bearer"))
    );
    assert!(
        answer.body.contains("the request has no valid credentials"),
        "{}",
        answer.body
    );
    let answer = served
        .once(&Head::post().with("Authorization", "Bearer a"), PING)
        .await;
    assert_eq!((answer.status, answer.header("www-authenticate")), (403, None));
    assert!(answer.body.contains("this account is closed"), "{}", answer.body);
}

#[tokio::test]
async fn only_known_pages_may_call() {
    let served =
        Served::start(HttpServerOptions::default().allowed(allowed(&[], &["https://app.example.com/"])))
            .await;
    for (host, origin, status) in [
        ("localhost", "http://localhost", 200),
        ("localhost:7080", "http://localhost:7080", 200),
        ("LOCALHOST:7080", "http://localhost:7080", 200),
        ("localhost:80", "http://localhost", 200),
        ("localhost", "https://localhost:443", 200),
        ("127.0.0.1:7080", "http://127.0.0.1:7080", 200),
        ("[::1]:7080", "http://[::1]:7080", 200),
        ("localhost:7080", "https://app.example.com", 200),
        ("localhost:7080", "https://app.example.com:443", 200),
        ("localhost:7080", "https://APP.example.com", 200),
        // Every other port of loopback is another origin.
        ("localhost:7080", "http://localhost:3000", 403),
        ("localhost:7080", "http://localhost", 403),
        ("localhost:7080", "http://127.0.0.1:7080", 403),
        ("localhost:7080", "https://127.0.0.1", 403),
        ("localhost:7080", "http://[::1]:3000", 403),
        ("localhost:7080", "https://app.example.com:444", 403),
        ("localhost:7080", "http://app.example.com", 403),
        ("localhost:7080", "https://evil.example.com", 403),
        ("localhost:7080", "http://localhost.evil.example.com", 403),
        ("localhost:7080", "http://localhost@evil.example.com", 403),
        ("localhost:7080", "http://evil@localhost:7080", 403),
        ("localhost:7080", "http://localhost:7080/", 403),
        ("localhost:7080", "file://localhost:7080", 403),
        ("localhost:7080", "null", 403),
        ("localhost:7080", "file://", 403),
        ("localhost:7080", "localhost:7080", 403),
        ("localhost:7080", "*", 403),
    ] {
        let head = Head::post().with("Host", host).with("Origin", origin);
        let answer = served.once(&head, PING).await;
        assert_eq!(answer.status, status, "{host} {origin}");
    }
    let mut twice = Head::post().with("Origin", "http://localhost");
    twice
        .headers
        .push(("Origin", "https://evil.example.com".to_owned()));
    assert_eq!(served.once(&twice, PING).await.status, 403);
}

/// Tests that a name which a page has bound to this machine is not the server's own, even behind a proxy that checks names.
#[tokio::test]
async fn where_any_name_is_served_a_page_is_not_known_by_its_name() {
    let served = Served::start(HttpServerOptions::default().allowed(AllowList::any_host())).await;
    for (host, origin, status) in [
        ("evil.example.com", "http://evil.example.com", 403),
        ("evil.example.com:7080", "http://evil.example.com:7080", 403),
        ("localhost:7080", "http://localhost:7080", 200),
    ] {
        let head = Head::post().with("Host", host).with("Origin", origin);
        assert_eq!(served.once(&head, PING).await.status, status, "{origin}");
    }
}

#[tokio::test]
async fn what_is_allowed_changes_while_requests_are_served_and_sessions_stay() {
    let shared = SharedAllowList::new(allowed(&["before.example.com"], &["https://before.example.com"]));
    let served = Served::start(
        HttpServerOptions::default()
            .allowed(shared.clone())
            .own_host("192.0.2.1")
            .requires_session(true),
    )
    .await;
    let head = Head::post().with("Host", "before.example.com");
    let opened = served.once(&head, INITIALIZE).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let mut kept = served.connect().await;
    let with = |host: &str, origin: &str| {
        let head = Head::post().with("Host", host).with("Origin", origin);
        head.with("Mcp-Session-Id", &session)
    };
    let before = with("before.example.com", "https://before.example.com");
    let after = with("after.example.com", "https://after.example.com");
    let own = with("192.0.2.1:80", "http://192.0.2.1");
    for (hosts, origins, statuses) in [
        (
            "before.example.com",
            "https://before.example.com",
            [200, 403, 200],
        ),
        ("after.example.com", "https://after.example.com", [403, 200, 200]),
        ("after.example.com", "https://before.example.com", [403, 200, 200]),
        (
            "before.example.com",
            "https://before.example.com",
            [200, 403, 200],
        ),
    ] {
        shared.store(allowed(&[hosts], &[origins]));
        for (head, status) in [&before, &after, &own].into_iter().zip(statuses) {
            // Also on a connection that was open before.
            kept.send(head, PING).await;
            assert_eq!(kept.receive().await.status, status, "{hosts} {origins} {head:?}");
        }
    }
}

#[tokio::test]
async fn names_and_pages_are_checked_before_anything_else() {
    let served = Served::start(HttpServerOptions::default()).await;
    for method in ["POST", "GET", "DELETE", "OPTIONS", "PUT"] {
        let head = Head::post().method(method).with("Content-Type", "text/plain");
        let answer = served
            .once(&head.clone().with("Host", "evil.example.com"), "no json")
            .await;
        assert_eq!(answer.status, 403, "{method}");
        let answer = served
            .once(&head.with("Origin", "https://evil.example.com"), "no json")
            .await;
        assert_eq!(answer.status, 403, "{method}");
    }
}

#[tokio::test]
async fn types_are_checked() {
    let served = Served::start(HttpServerOptions::default()).await;
    for (name, value, status) in [
        ("Content-Type", "application/json", 200),
        ("Content-Type", "Application/JSON; charset=utf-8", 200),
        ("Content-Type", "", 415),
        ("Content-Type", "text/plain", 415),
        ("Content-Type", "application/json-seq", 415),
        ("Content-Type", "application/x-www-form-urlencoded", 415),
        ("Content-Encoding", "gzip", 415),
        ("Content-Encoding", "identity", 200),
        ("Accept", "", 200),
        ("Accept", "*/*", 200),
        ("Accept", "application/json", 200),
        ("Accept", "application/*;q=0.5", 200),
        ("Accept", "text/event-stream", 200),
        ("Accept", "text/html", 406),
        ("Accept", "application/json;q=0", 406),
        ("Accept", "application/json;q=0.0, text/event-stream; q=0", 406),
    ] {
        let answer = served.once(&Head::post().with(name, value), PING).await;
        assert_eq!(answer.status, status, "{name}: {value}");
    }
    for (name, value) in [
        ("Content-Type", "text/plain"),
        ("Content-Type", "application/json"),
        ("Content-Encoding", "gzip"),
    ] {
        let mut twice = Head::post().with("Content-Encoding", "identity");
        twice.headers.push((name, value.to_owned()));
        assert_eq!(served.once(&twice, PING).await.status, 415, "{name}: {value}");
    }
    // A client that accepts only events gets one.
    let answer = served
        .once(&Head::post().with("Accept", "text/event-stream"), PING)
        .await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(
        answer.body,
        "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"
    );
}

#[tokio::test]
async fn paths_and_methods_are_checked() {
    let served = Served::start(HttpServerOptions::default().path("/mcp")).await;
    let mut head = Head::post();
    for (path, status) in [
        ("/mcp", 200),
        ("/mcp?a=b", 200),
        ("/", 404),
        ("/mcp/", 404),
        ("/mcpx", 404),
    ] {
        head.path = path;
        assert_eq!(served.once(&head, PING).await.status, status, "{path}");
    }
    for method in ["PUT", "PATCH", "OPTIONS", "GET"] {
        let answer = served.once(&Head::post().method(method), "").await;
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(answer.header("allow"), Some("POST, GET, DELETE"), "{method}");
    }
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused() {
    let served = Served::start(HttpServerOptions::default().max_body(100)).await;
    let long = format!("{PING}{}", " ".repeat(100));
    assert_eq!(served.once(&Head::post(), &long).await.status, 413);
    assert_eq!(
        served.once(&Head::post(), &format!("{PING:100}")).await.status,
        200
    );
    // Also if the length is not declared, and before the body has ended.
    let mut connection = served.connect().await;
    let chunked = Head::post().with("Transfer-Encoding", "chunked");
    connection
        .send(
            &chunked,
            &format!("50\r\n{}\r\n50\r\n{}\r\n", " ".repeat(80), " ".repeat(80)),
        )
        .await;
    assert_eq!(connection.receive().await.status, 413);
    // The same message in pieces.
    let (start, end) = PING.split_at(10);
    let pieces = format!(
        "{:x}\r\n{start}\r\n{:x}\r\n{end}\r\n0\r\n\r\n",
        start.len(),
        end.len()
    );
    assert_eq!(served.once(&chunked, &pieces).await.status, 200);
}

/// Tests clients that read only after they have sent everything: if the connection were closed, they would lose their response.
#[tokio::test]
async fn a_client_that_is_still_sending_hears_why_it_is_refused() {
    let served = Served::start(HttpServerOptions::default().max_body(100)).await;
    // More than the buffers of a socket hold.
    let long = " ".repeat(32 << 20);
    for (name, value, status) in [
        ("Content-Type", "application/json", 413),
        ("Content-Type", "text/plain", 415),
        ("Accept", "text/html", 406),
    ] {
        let mut connection = served.connect().await;
        connection.send(&Head::post().with(name, value), &long).await;
        assert_eq!(connection.receive().await.status, status);
        assert!(connection.closed().await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn the_rest_of_a_body_is_not_waited_for_without_end() {
    let mut served = Served::start(HttpServerOptions::default()).await;
    let mut connection = served.connect().await;
    let head = Head::post().with("Content-Type", "text/plain");
    connection.send_head(&head, 1000).await;
    assert_eq!(connection.receive().await.status, 415);
    let start = tokio::time::Instant::now();
    served.stop();
    served.stopped().await;
    assert!(
        (4..=7).contains(&start.elapsed().as_secs()),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn slow_clients_are_left() {
    let served = Served::start(HttpServerOptions::default()).await;
    let start = tokio::time::Instant::now();
    let took = || start.elapsed().as_secs();
    // A client that sends nothing, and one that never ends its head.
    let (mut silent, mut slow) = (served.connect().await, served.connect().await);
    for byte in b"POST /mcp HTTP/" {
        slow.write(&[*byte]).await;
        tokio::time::advance(Duration::from_millis(500)).await;
    }
    slow.closed().await;
    silent.closed().await;
    assert!((10..=12).contains(&took()), "{}", took());
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    let mut slow_body = served.connect().await;
    slow_body.write(head.as_bytes()).await;
    assert_eq!(slow_body.head().await.status, 408);
    assert!((40..=44).contains(&took()), "{}", took());
}

#[tokio::test(start_paused = true)]
async fn a_connection_may_idle_but_not_for_ever() {
    let served = Served::start(HttpServerOptions::default()).await;
    let mut connection = served.connect().await;
    connection.send(&Head::post(), PING).await;
    connection.receive().await;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    connection.send(&Head::post(), PING).await;
    assert_eq!(connection.receive().await.status, 200);
    // A head that begins late has its own time.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let start = tokio::time::Instant::now();
    connection.write(b"POST").await;
    assert!(connection.closed().await.is_empty());
    assert!(
        (9..=12).contains(&start.elapsed().as_secs()),
        "{:?}",
        start.elapsed()
    );
    // Requests have no timeout, and idle connections have one.
    let mut connection = served.connect().await;
    connection
        .send(&Head::post(), r#"{"jsonrpc":"2.0","id":1,"method":"test/wait"}"#)
        .await;
    served.log.running(1).await;
    for _ in 0..300 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    served.log.gate.add_permits(1);
    assert_eq!(connection.receive().await.status, 200);
    let start = tokio::time::Instant::now();
    assert!(connection.closed().await.is_empty());
    assert!(
        (119..=122).contains(&start.elapsed().as_secs()),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_head_that_begins_during_work_has_no_more_time_than_another() {
    let served = Served::start(HttpServerOptions::default()).await;
    let wait = r#"{"jsonrpc":"2.0","id":1,"method":"test/wait"}"#;
    let chunked = Head::post().with("Transfer-Encoding", "chunked");
    let chunks = format!("{:x}\r\n{wait}\r\n0\r\n\r\n", wait.len());
    for (head, body) in [(Head::post(), wait), (chunked, chunks.as_str())] {
        let mut connection = served.connect().await;
        connection.send(&head, body).await;
        served.log.running(1).await;
        connection.write(b"POST /mc").await;
        // While the first request runs, the next head has no timeout.
        tokio::time::sleep(Duration::from_secs(60)).await;
        served.log.gate.add_permits(1);
        assert_eq!(connection.receive().await.status, 200);
        let start = tokio::time::Instant::now();
        assert!(connection.closed().await.is_empty());
        assert!(
            (9..=12).contains(&start.elapsed().as_secs()),
            "{:?}",
            start.elapsed()
        );
    }
    // A request that is complete by then is answered after the first.
    let mut connection = served.connect().await;
    connection.send(&Head::post(), wait).await;
    served.log.running(1).await;
    connection.send(&Head::post(), PING).await;
    served.log.gate.add_permits(1);
    for _ in 0..2 {
        assert_eq!(connection.receive().await.status, 200);
    }
}

#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let served = Served::start_with(
        HttpServerOptions::default(),
        ServeOptions::default().max_connections(1),
    )
    .await;
    let mut first = served.connect().await;
    first.send(&Head::post(), PING).await;
    assert_eq!(first.receive().await.status, 200);
    let mut second = served.connect().await;
    second.send(&Head::post(), PING).await;
    // The first connection is still served, the second once there is room.
    first.send(&Head::post(), PING).await;
    assert_eq!(first.receive().await.status, 200);
    drop(first);
    assert_eq!(second.receive().await.status, 200);
}

#[tokio::test]
async fn a_hook_tells_who_is_asking() {
    let served = Served::start(HttpServerOptions::default().identify(|parts| {
        match parts.headers.get("authorization").map(HeaderValue::as_bytes) {
            Some(b"Bearer a") => Ok(Principal::new("alice")),
            _ => Err(RequestRefusal::unauthorized().message("who are you?")),
        }
    }))
    .await;
    let who = r#"{"jsonrpc":"2.0","id":1,"method":"test/who"}"#;
    let answer = served
        .once(&Head::post().with("Authorization", "Bearer a"), who)
        .await;
    assert!(answer.body.contains(r#""principal":"alice""#), "{}", answer.body);
    for method in ["POST", "GET", "DELETE"] {
        let answer = served.once(&Head::post().method(method), who).await;
        assert_eq!(answer.status, 401, "{method}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
}

#[tokio::test]
async fn stopping_lets_requests_finish_and_refuses_new_connections() {
    let mut served = Served::start(HttpServerOptions::default()).await;
    let log = Arc::clone(&served.log);
    let mut waiting = served.connect().await;
    waiting
        .send(&Head::post(), r#"{"jsonrpc":"2.0","id":1,"method":"test/wait"}"#)
        .await;
    let mut idle = served.connect().await;
    idle.send(&Head::post(), PING).await;
    idle.receive().await;
    log.running(1).await;
    served.stop();
    assert!(idle.closed().await.is_empty());
    log.gate.add_permits(1);
    assert_eq!(waiting.receive().await.status, 200);
    assert!(waiting.closed().await.is_empty());
    served.stopped().await;
}

#[tokio::test(start_paused = true)]
async fn stopping_cuts_off_what_takes_too_long() {
    let mut served = Served::start_with(
        HttpServerOptions::default(),
        ServeOptions::default().drain(Duration::from_secs(5)),
    )
    .await;
    let mut waiting = served.connect().await;
    waiting
        .send(&Head::post(), r#"{"jsonrpc":"2.0","id":1,"method":"test/wait"}"#)
        .await;
    let log = Arc::clone(&served.log);
    log.running(1).await;
    served.stop();
    served.stopped().await;
    assert!(waiting.closed().await.is_empty());
    // Otherwise, a lost connection does not cancel a legacy request.
    log.running(0).await;
}
