//! CORS: requests that pages of other origins may send, and responses that they may read.

use mcp_server::{AllowList, HttpServerOptions, Principal, RequestRefusal};

use crate::{
    http_sessions::INITIALIZE,
    support::{Head, Received, Served},
};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const APP: &str = "http://app.example.com:3000";

fn options() -> HttpServerOptions {
    HttpServerOptions::default()
        .path("/mcp")
        .sse_path("/sse")
        .allowed(
            AllowList::default()
                .origin(format!("{APP}/"))
                .origin("https://two.example.com:443"),
        )
}

fn preflight<'a>(origin: &str, headers: &str) -> Head<'a> {
    Head::post()
        .method("OPTIONS")
        .with("Origin", origin)
        .with("Access-Control-Request-Method", "POST")
        .with("Access-Control-Request-Headers", headers)
}

/// Returns the names in a header with a list.
fn names(answer: &Received, header: &str) -> Vec<String> {
    let list = answer.header(header).unwrap_or_default().split(',');
    list.map(|name| name.trim().to_ascii_lowercase()).collect()
}

#[track_caller]
fn assert_readable(answer: &Received, origin: Option<&str>, what: &str) {
    assert_eq!(answer.header("access-control-allow-origin"), origin, "{what}");
    assert_eq!(answer.header("access-control-allow-credentials"), None, "{what}");
    let exposed = names(answer, "access-control-expose-headers");
    let is_exposed = exposed.iter().any(|name| name == "mcp-session-id");
    assert_eq!(is_exposed, origin.is_some(), "{what}: {exposed:?}");
    assert!(
        names(answer, "vary").iter().any(|name| name == "origin"),
        "{what}"
    );
}

#[tokio::test]
async fn a_preflight_of_a_listed_origin_allows_what_clients_of_mcp_send() {
    let served = Served::start(options()).await;
    let asked = "authorization,content-type,last-event-id,mcp-method,mcp-name,mcp-protocol-version,mcp-session-id,\
                 Mcp-Param-Region,mcp-param-n,x-other";
    for (origin, path) in [(APP, "/mcp"), ("https://two.example.com", "/mcp"), (APP, "/sse")] {
        let mut head = preflight(origin, asked);
        head.path = path;
        let answer = served.once(&head, "").await;
        assert_eq!((answer.status, answer.body.as_str()), (204, ""), "{origin}");
        assert_readable(&answer, Some(origin), origin);
        let allowed = names(&answer, "access-control-allow-headers");
        for name in asked.to_ascii_lowercase().split(',') {
            assert_eq!(
                allowed.iter().any(|it| it == name),
                name != "x-other",
                "{name}: {allowed:?}"
            );
        }
        assert!(!allowed.iter().any(|name| name.contains('*')), "{allowed:?}");
        assert_eq!(
            names(&answer, "access-control-allow-methods"),
            ["post", "get", "delete"]
        );
        assert_eq!(answer.header("access-control-max-age"), Some("600"));
        assert_eq!(answer.header("access-control-allow-private-network"), None);
    }
    let local = preflight(APP, "content-type").with("Access-Control-Request-Private-Network", "true");
    let answer = served.once(&local, "").await;
    assert_eq!(
        answer.header("access-control-allow-private-network"),
        Some("true")
    );
}

#[tokio::test]
async fn a_preflight_needs_a_listed_origin_a_known_path_and_a_method() {
    let served = Served::start(options()).await;
    for origin in [
        "http://evil.example.com",
        "http://app.example.com",
        "https://app.example.com:3000",
        "http://localhost:3000",
        "null",
        "*",
    ] {
        let answer = served.once(&preflight(origin, "content-type"), "").await;
        assert_eq!(answer.status, 403, "{origin}");
        assert_readable(&answer, None, origin);
        assert_eq!(answer.header("access-control-allow-headers"), None, "{origin}");
    }
    let mut elsewhere = preflight(APP, "content-type");
    elsewhere.path = "/other";
    assert_eq!(served.once(&elsewhere, "").await.status, 404);
    let renamed = preflight(APP, "content-type").with("Host", "evil.example.com");
    assert_eq!(served.once(&renamed, "").await.status, 403);
    let plain = Head::post().method("OPTIONS").with("Origin", APP);
    assert_eq!(served.once(&plain, "").await.status, 405);
    let mut twice = preflight(APP, "content-type");
    twice.headers.push(("Origin", APP.to_owned()));
    assert_eq!(served.once(&twice, "").await.status, 403);
}

/// Tests that a page which asks for a thousand headers gets a bounded response.
#[tokio::test]
async fn asked_headers_are_bounded_and_no_others_are_echoed() {
    let served = Served::start(options()).await;
    let many: Vec<String> = (0..200).map(|n| format!("mcp-param-{n}")).collect();
    let answer = served.once(&preflight(APP, &many.join(",")), "").await;
    let allowed = names(&answer, "access-control-allow-headers");
    let n_params = allowed
        .iter()
        .filter(|name| name.starts_with("mcp-param-"))
        .count();
    assert_eq!(n_params, 64);
    let long = format!("mcp-param-{}", "x".repeat(200));
    let answer = served
        .once(
            &preflight(APP, &format!("{long}, mcp-param-a b, mcp-param-*, mcp-paramx")),
            "",
        )
        .await;
    let allowed = names(&answer, "access-control-allow-headers").join(",");
    assert!(
        !allowed.contains("xxx") && !allowed.contains("a b") && !allowed.contains("paramx"),
        "{allowed}"
    );
}

#[tokio::test]
async fn every_answer_to_a_listed_origin_can_be_read_and_none_to_another() {
    let served = Served::start(options()).await;
    let progress =
        r#"{"jsonrpc":"2.0","id":1,"method":"test/progress","params":{"_meta":{"progressToken":1}}}"#;
    let long = "x".repeat(5 << 20);
    let cases = [
        ("an answer", Head::post(), PING, 200),
        ("a session", Head::post(), INITIALIZE, 200),
        (
            "an unknown method",
            Head::post(),
            r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#,
            200,
        ),
        ("a stream", Head::post(), progress, 200),
        (
            "a notification",
            Head::post(),
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            202,
        ),
        ("no json", Head::post(), "no json", 400),
        (
            "a wrong type",
            Head::post().with("Content-Type", "text/plain"),
            PING,
            415,
        ),
        (
            "a wrong form",
            Head::post().with("Accept", "text/html"),
            PING,
            406,
        ),
        ("a long body", Head::post(), long.as_str(), 413),
        (
            "an unknown session",
            Head::post().with("Mcp-Session-Id", "none"),
            PING,
            404,
        ),
        ("a wrong method", Head::post().method("PUT"), "", 405),
        ("no stream", Head::post().method("GET"), "", 405),
    ];
    for (what, head, body, status) in cases {
        let mut connection = served.connect().await;
        connection.send(&head.clone().with("Origin", APP), body).await;
        let answer = connection.head().await;
        assert_eq!(answer.status, status, "{what}");
        assert_readable(&answer, Some(APP), what);
        let answer = served
            .once(&head.clone().with("Origin", "https://evil.example.com"), body)
            .await;
        assert_eq!(answer.status, 403, "{what}");
        assert_readable(&answer, None, what);
        // A request without an origin is not of a page, but a cache must know that the response depends on the origin.
        let mut connection = served.connect().await;
        connection.send(&head, body).await;
        let answer = connection.head().await;
        assert_eq!(answer.status, status, "{what}");
        assert_readable(&answer, None, what);
    }
}

#[tokio::test]
async fn a_refused_page_reads_why_and_its_preflight_needs_no_credentials() {
    let served = Served::start(
        options().identify(|parts| match parts.headers.get("authorization") {
            Some(_) => Ok(Principal::new("ann")),
            None => Err(RequestRefusal::unauthorized().message("who are you?")),
        }),
    )
    .await;
    assert_eq!(
        served.once(&preflight(APP, "authorization"), "").await.status,
        204
    );
    let refused = served.once(&Head::post().with("Origin", APP), PING).await;
    assert_eq!(refused.status, 401);
    assert_readable(&refused, Some(APP), "refused");
    let exposed = names(&refused, "access-control-expose-headers");
    assert!(
        exposed.iter().any(|name| name == "www-authenticate"),
        "{exposed:?}"
    );
}

#[tokio::test]
async fn without_listed_origins_no_answer_has_headers_for_pages() {
    let served = Served::start(HttpServerOptions::default()).await;
    let answer = served.once(&Head::post(), PING).await;
    assert_eq!(answer.header("vary"), None);
    let own = Head::post()
        .with("Host", "localhost:7080")
        .with("Origin", "http://localhost:7080");
    let answer = served.once(&own, PING).await;
    assert_eq!(answer.status, 200);
    assert_readable(&answer, None, "a page of its own needs none");
    let own = own
        .method("OPTIONS")
        .with("Access-Control-Request-Method", "POST");
    assert_eq!(served.once(&own, "").await.status, 405);
}
