use proptest::{prelude::*, sample::select, test_runner::RngSeed};
use serde_json::{Value, json};
use tool_core::{DispatchState, ErrorKind, TraceContext};

use crate::{
    server::{Answer, Received, Server, ok},
    support::{prepare, prepare_with},
};

/// Calls a tool at a server that answers `null`, and returns the request that arrived.
async fn sent(mut config: Value, arguments: &str) -> Received {
    let server = Server::json("null").await;
    let text = config.to_string().replace("http://HOST", &server.url(""));
    config = serde_json::from_str(&text).unwrap();
    let values = [("${KEY}", "k-123/4"), ("${BASE}", "BASE")];
    let done = prepare_with(config, &values).call_text(arguments).await;
    assert_eq!(done.text(), "null");
    server.last()
}

#[tokio::test]
async fn a_call_is_made() {
    let server = Server::json(r#" {"n": 123456789012345678901234567890, "f": 1e2} "#).await;
    let tool = prepare(json!({"url": server.url("/items/{id}")}));
    let done = tool.call(json!({"id": "a b", "q": [1, "x"]})).await;
    assert_eq!(done.text(), r#"{"n": 123456789012345678901234567890, "f": 1e2}"#);
    assert_eq!(done.dispatch, DispatchState::Answered);
    assert_eq!(server.last().line(), "GET /items/a%20b?q=1&q=x");
}

#[tokio::test]
async fn addresses() {
    for (url, arguments, expected) in [
        ("/a/{id}", r#"{"id": "x"}"#, "/a/x"),
        ("/a/{id}", r#"{"id": "../../admin"}"#, "/a/..%2F..%2Fadmin"),
        (
            "/a/{id}",
            r#"{"id": "a/b?c=d#e&f%2e"}"#,
            "/a/a%2Fb%3Fc%3Dd%23e%26f%252e",
        ),
        ("/a/{id}", r#"{"id": "%2e%2e"}"#, "/a/%252e%252e"),
        ("/a/{id}", r#"{"id": "..\\x"}"#, "/a/..%5Cx"),
        ("/a/{id}", r#"{"id": "ü ä\n"}"#, "/a/%C3%BC%20%C3%A4%0A"),
        (
            "/a/{id}",
            r#"{"id": 12345678901234567890123}"#,
            "/a/12345678901234567890123",
        ),
        ("/a/{id}", r#"{"id": 1e2}"#, "/a/1e2"),
        ("/a/{id}", r#"{"id": true}"#, "/a/true"),
        ("/a/{id}.json", r#"{"id": "."}"#, "/a/..json"),
        ("/a/{{.id}}/b", r#"{"id": "${KEY}"}"#, "/a/%24%7BKEY%7D/b"),
        ("/a/{id}", r#"{"id": "{id}"}"#, "/a/%7Bid%7D"),
        ("/a/${KEY}/b", "{}", "/a/k-123/4/b"),
        ("/a?k=${KEY}&b", "{}", "/a?k=k-123%2F4&b"),
        (
            "/a?x={x}&y={y}&z=1",
            r#"{"y": "a&b=c+d"}"#,
            "/a?y=a%26b%3Dc%2Bd&z=1",
        ),
        ("/a?x=a%20b&y=-{y}-", r#"{"y": 1.50}"#, "/a?x=a%20b&y=-1.50-"),
        ("?x={x}", r#"{"x": ""}"#, "/?x="),
        ("", "{}", "/"),
    ] {
        let received = sent(
            json!({"url": format!("http://HOST{url}"), "query": {}}),
            arguments,
        )
        .await;
        assert_eq!(received.line(), format!("GET {expected}"), "{url} {arguments}");
    }
}

#[tokio::test]
async fn arguments_that_make_no_address_are_refused() {
    let server = Server::json("null").await;
    for (url, arguments, expected) in [
        (
            "/a/{id}",
            r#"{"id": ".."}"#,
            "the argument `id` must not make a segment `.` or `..` of the path",
        ),
        (
            "/a/{id}/b",
            r#"{"id": "."}"#,
            "the argument `id` must not make a segment `.` or `..` of the path",
        ),
        (
            "/a/{id}{x}",
            r#"{"id": ".", "x": "."}"#,
            "the argument `x` must not make a segment `.` or `..` of the path",
        ),
        (
            "/a/.{id}",
            r#"{"id": "."}"#,
            "the argument `id` must not make a segment `.` or `..` of the path",
        ),
        (
            "/a/{id}/b",
            r#"{"id": ""}"#,
            "the argument `id` must not be empty",
        ),
        (
            "/a/{id}",
            "{}",
            "the argument `id` is missing: the address needs it",
        ),
        (
            "/a/{id}",
            r#"{"id": null}"#,
            "the argument `id` is missing: the address needs it",
        ),
        (
            "/a/{id}",
            r#"{"id": [1]}"#,
            "the argument `id` must be a single value, since it is part of the path",
        ),
        (
            "/a/{id}",
            r#"{"id": {}}"#,
            "the argument `id` must be a single value, since it is part of the path",
        ),
        (
            "/a/{id}",
            r#"{"id": "\ud800"}"#,
            "the argument `id` is not valid Unicode",
        ),
        (
            "/a?x={x}",
            r#"{"x": "\ud800"}"#,
            "the argument `x` is not valid Unicode",
        ),
    ] {
        let done = prepare(json!({"url": server.url(url)}))
            .call_text(arguments)
            .await;
        assert_eq!(done.error().to_string(), expected, "{url} {arguments}");
        assert_eq!(done.kind(), ErrorKind::InvalidArguments);
        assert_eq!(done.dispatch, DispatchState::NotSent);
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn queries() {
    for (query, arguments, expected) in [
        (json!({"q": "{q}"}), r#"{"q": "a b&c=d"}"#, "?q=a%20b%26c%3Dd"),
        (json!({"b": true, "n": 10, "q": "{q}"}), "{}", "?b=true&n=10"),
        (json!({"q": "x-{q}-y"}), r#"{"q": "&"}"#, "?q=x-%26-y"),
        (json!({"q": "x-{q}-y", "z": "a b"}), "{}", "?z=a%20b"),
        (
            json!({"tag": "{tags}"}),
            r#"{"tags": ["a", 1.0, null, true, {"x": 1}]}"#,
            "?tag=a&tag=1.0&tag=true&tag=%7B%22x%22%3A%201%7D",
        ),
        (json!({"tag": "{tags}"}), r#"{"tags": []}"#, ""),
        // A list in one parameter.
        (
            json!({"tag": {"argument": "tags", "join": ","}}),
            r#"{"tags": ["a", 1.0, null, "b,c"]}"#,
            "?tag=a,1.0,b%2Cc",
        ),
        (
            json!({"tag": {"argument": "tags", "join": " "}}),
            r#"{"tags": ["a", "b"]}"#,
            "?tag=a%20b",
        ),
        (
            json!({"tag": {"argument": "tags", "join": "|"}}),
            r#"{"tags": ["a", "b"]}"#,
            "?tag=a%7Cb",
        ),
        (
            json!({"tag": {"argument": "tags", "join": "\t"}}),
            r#"{"tags": "a"}"#,
            "?tag=a",
        ),
        (
            json!({"tag": {"argument": "tags", "join": ","}}),
            r#"{"tags": []}"#,
            "",
        ),
        (json!({"tag": {"argument": "tags", "join": ","}}), "{}", ""),
        (
            json!({"tag": ["{a}", "fixed", 3]}),
            r#"{"a": "x"}"#,
            "?tag=x&tag=fixed&tag=3",
        ),
        (
            json!({"a[]": "{a}", "k": "${KEY}"}),
            r#"{"a": "${KEY}"}"#,
            "?a%5B%5D=%24%7BKEY%7D&k=k-123%2F4",
        ),
        (
            json!({"n": "{n}"}),
            r#"{"n": 12345678901234567890123}"#,
            "?n=12345678901234567890123",
        ),
        (json!({"e": "", "l": "{{q}}"}), "{}", "?e=&l=%7Bq%7D"),
        // With a `query`, other arguments are not sent; without one they are the query.
        (json!({"q": "{q}"}), r#"{"q": 1, "other": 2}"#, "?q=1"),
        (json!({}), r#"{"q": 1, "other": "a b"}"#, "?q=1&other=a%20b"),
    ] {
        let received = sent(json!({"url": "http://HOST/a", "query": query}), arguments).await;
        assert_eq!(
            received.line(),
            format!("GET /a{expected}"),
            "{query} {arguments}"
        );
    }
}

#[tokio::test]
async fn headers() {
    let config = json!({
        "url": "http://HOST/a",
        "query": {},
        "headers": {
            "Authorization": "Bearer ${KEY}",
            "X-Tenant": "t-{tenant}",
            "X-Absent": "{absent}",
            "X-Go": "{{.tenant}}",
            "Accept": "text/csv",
        },
        "headers_from_env": ["X-One=KEY", "X-Two: KEY", "API_TOKEN", "KEY"],
    });
    let server = Server::json("null").await;
    let text = config.to_string().replace("http://HOST", &server.url(""));
    let values = [("${KEY}", "k-123/4"), ("${API_TOKEN}", "t0ken\n")];
    let tool = prepare_with(serde_json::from_str(&text).unwrap(), &values);
    assert_eq!(tool.call(json!({"tenant": "a b"})).await.text(), "null");
    let received = server.last();
    for (name, value) in [
        ("authorization", Some("Bearer k-123/4")),
        ("x-tenant", Some("t-a b")),
        ("x-go", Some("a b")),
        ("x-absent", None),
        ("accept", Some("text/csv")),
        ("x-one", Some("k-123/4")),
        ("x-two", Some("k-123/4")),
        // A bare name becomes a header, unless `${NAME}` uses it already.
        ("api-token", Some("t0ken")),
        ("key", None),
        (
            "user-agent",
            Some(concat!("toolplane/", env!("CARGO_PKG_VERSION"))),
        ),
        ("referer", None),
        ("cookie", None),
    ] {
        assert_eq!(received.header(name).as_deref(), value, "{name}");
    }

    for value in ["a\r\nX-Evil: 1", "a\nb", "a\u{0}b", "a\u{85}b", "ü", "\u{7f}"] {
        let done = tool.call(json!({"tenant": value})).await;
        assert_eq!(
            done.error().to_string(),
            "the argument `tenant` contains characters that are not allowed in a header"
        );
        assert_eq!(done.kind(), ErrorKind::InvalidArguments, "{value:?}");
    }
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn bodies() {
    for (body, arguments, expected) in [
        (
            json!({"text": "{message}"}),
            r#"{"message": "a \"b\"\n{x}"}"#,
            Some(r#"{"text":"a \"b\"\n{x}"}"#),
        ),
        (
            json!({"n": "{n}"}),
            r#"{"n": 12345678901234567890123}"#,
            Some(r#"{"n":12345678901234567890123}"#),
        ),
        (
            json!({"o": "{o}"}),
            r#"{"o": {"b": 1e2, "a": [ ]}}"#,
            Some(r#"{"o":{"b": 1e2, "a": [ ]}}"#),
        ),
        (
            json!({"t": "Hi {who}, {n}!"}),
            r#"{"who": "\",\"x\":\"", "n": 1.0}"#,
            Some(r#"{"t":"Hi \",\"x\":\", 1.0!"}"#),
        ),
        (
            json!({"a": "{a}", "b": {"c": "{c}"}, "d": ["{a}", 1, "{c}"]}),
            r#"{"c": 2}"#,
            Some(r#"{"b":{"c":2},"d":[1,2]}"#),
        ),
        (json!({"a": "x {a}", "z": null}), "{}", Some(r#"{"z":null}"#)),
        (json!("{all}"), r#"{"all": [1,  2]}"#, Some("[1,  2]")),
        (json!("{all}"), "{}", None),
        (
            json!("{\"text\": \"{m}\"}"),
            r#"{"m": "\"}"}"#,
            Some(r#"{"text":"\"}"}"#),
        ),
        (
            json!({"k": "${KEY}", "{k}": "$${x}"}),
            r#"{"x": 1}"#,
            Some(r#"{"k":"k-123/4","{k}":"$1"}"#),
        ),
        (
            json!({"q": "query { user(id: 1) { name } }"}),
            "{}",
            Some(r#"{"q":"query { user(id: 1) { name } }"}"#),
        ),
        (json!([1.5, true]), "{}", Some("[1.5,true]")),
    ] {
        for key in ["body", "body_template"] {
            let received = sent(json!({"url": "http://HOST/a", key: body}), arguments).await;
            assert_eq!(received.line(), "POST /a");
            assert_eq!(
                received.text(),
                expected.unwrap_or_default(),
                "{body} {arguments}"
            );
            let content_type = received.header("content-type");
            assert_eq!(content_type.as_deref(), expected.map(|_| "application/json"));
        }
    }
}

#[tokio::test]
async fn what_nothing_else_uses_is_the_body() {
    for (config, arguments, expected) in [
        (
            json!({"method": "post"}),
            r#"{"b": 1e2,"a":[ 1.0 ]}"#,
            Some(r#"{"b":1e2,"a":[ 1.0 ]}"#),
        ),
        (
            json!({"method": "PUT", "query": {"q": "{a}"}}),
            r#"{"a": 1, "b": 2}"#,
            Some(r#"{"b":2}"#),
        ),
        (
            json!({"method": "PATCH", "headers": {"x": "{a}"}}),
            r#"{"a": 1}"#,
            None,
        ),
        (json!({"method": "POST"}), "{}", None),
        (json!({"method": "DELETE"}), "{}", None),
        (
            json!({"method": "DELETE", "body": {"a": "{a}"}}),
            r#"{"a": 1}"#,
            Some(r#"{"a":1}"#),
        ),
    ] {
        let mut config = config;
        config["url"] = json!("http://HOST/a");
        let received = sent(config.clone(), arguments).await;
        assert_eq!(received.text(), expected.unwrap_or_default(), "{config}");
        assert_eq!(
            received.header("content-type").is_some(),
            expected.is_some(),
            "{config}"
        );
    }
}

#[tokio::test]
async fn other_types_of_body() {
    for (content_type, body, arguments, expected) in [
        (
            "application/x-www-form-urlencoded",
            json!({"a": "{a}", "list": "{list}", "o": {"x": 1}, "gone": "{gone}"}),
            r#"{"a": "x&y= z", "list": [1, "b"]}"#,
            "a=x%26y%3D%20z&list=1&list=b&o=%7B%22x%22%3A1%7D",
        ),
        ("text/plain", json!("Hi {a}"), r#"{"a": "\"you\""}"#, "Hi \"you\""),
        (
            "application/vnd.api+json",
            json!("Hi {a}"),
            r#"{"a": 1}"#,
            "\"Hi 1\"",
        ),
    ] {
        let config = json!({"url": "http://HOST/a", "headers": {"Content-Type": content_type}, "body": body});
        let received = sent(config, arguments).await;
        assert_eq!(received.text(), expected);
        assert_eq!(received.header("content-type").as_deref(), Some(content_type));
    }
}

#[tokio::test]
async fn methods() {
    for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        let server = Server::start(|request| {
            let body = if request.line().starts_with("HEAD") {
                ""
            } else {
                "null"
            };
            Answer::Keep(ok("application/json", body))
        })
        .await;
        let done = prepare(json!({"url": server.url("/a"), "method": method.to_lowercase()}))
            .call(json!({}))
            .await;
        assert_eq!(done.text(), "null");
        assert_eq!(server.last().line(), format!("{method} /a"));
    }
}

#[tokio::test]
async fn a_large_body_is_refused() {
    let server = Server::json("null").await;
    let tool = prepare(json!({"url": server.url("/"), "method": "POST", "max_request_bytes": 20}));
    assert_eq!(tool.call_text(r#"{"a":"123456789012"}"#).await.text(), "null");
    let done = tool.call_text(r#"{"a":"1234567890123"}"#).await;
    assert_eq!(
        done.error().to_string(),
        "the request body is larger than the allowed 20 bytes"
    );
    assert_eq!(
        (done.kind(), done.dispatch),
        (ErrorKind::InvalidArguments, DispatchState::NotSent)
    );
}

#[tokio::test]
async fn an_argument_may_be_part_of_the_host_when_nothing_secret_is_sent() {
    let config = json!({"url": "http://{region}.api.example:1/a", "query": {}});
    let tool = prepare(config);
    for region in [
        "eu.evil.example/",
        "eu@evil",
        "eu:80",
        "-eu",
        "",
        "e u",
        "eu#",
        "%65u",
        "eu.",
    ] {
        let done = tool.call(json!({"region": region})).await;
        let reason = "the argument `region` must be one label of a host name: letters, digits and hyphens";
        assert_eq!(done.error().to_string(), reason, "{region}");
    }
}

#[tokio::test]
async fn a_base_address_comes_from_a_value() {
    let server = Server::json("null").await;
    let base = [("${BASE}", &*server.url("/v1/"))];
    let tool = prepare_with(json!({"url": "${BASE}/a/{id}?x={x}"}), &base);
    assert_eq!(tool.call(json!({"id": "i", "x": 1})).await.text(), "null");
    assert_eq!(server.last().line(), "GET /v1/a/i?x=1");
    for value in [
        "ftp://host",
        "not a url",
        "http://user:pass@127.0.0.1",
        "http://127.0.0.1/\r\nx",
        "",
        "http://",
    ] {
        let tool = prepare_with(json!({"url": "${BASE}/a/{id}"}), &[("${BASE}", value)]);
        let done = tool.call(json!({"id": "i"})).await;
        assert!(
            done.error().to_string().starts_with("the tool's address "),
            "{value}: {}",
            done.error()
        );
        assert!(value.is_empty() || !done.error().to_string().contains(value));
        assert_eq!(done.dispatch, DispatchState::NotSent);
    }
}

#[tokio::test]
async fn a_request_belongs_to_the_calls_trace() {
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let server = Server::json("null").await;
    let own = "00-11111111111111111111111111111111-2222222222222222-00";
    let cases = [
        (json!({"url": server.url("/a")}), Some(parent), Some("a=b")),
        // Headers of the tool's configuration stay.
        (
            json!({"url": server.url("/a"), "headers": {"traceparent": own}}),
            Some(own),
            None,
        ),
    ];
    for (config, expected, state) in cases {
        let tool = prepare(config);
        let mut cx = tool.context("{}");
        cx.trace = TraceContext::parse(parent, Some("a=b"));
        tool.invoke().invoke_boxed(&mut cx).await.unwrap();
        let request = server.last();
        assert_eq!(request.header("traceparent").as_deref(), expected);
        assert_eq!(request.header("tracestate").as_deref(), state);
    }
    prepare(json!({"url": server.url("/a")})).call(json!({})).await;
    assert_eq!(server.last().header("traceparent"), None);
}

/// Spellings that some upstream reads as this name.
fn spelled(name: &str) -> impl Strategy<Value = String> {
    let letters = name.chars().map(|letter| {
        prop_oneof![
            3 => Just(letter.to_string()),
            1 => Just(letter.to_uppercase().to_string()),
            1 => Just(format!("%{:02x}", u32::from(letter))),
            1 => Just(format!("%25{:02X}", u32::from(letter))),
            1 => Just(format!("{letter}\u{200b}")),
        ]
    });
    let (before, after) = (
        select(vec!["", " ", "+", "x&", "x;"]),
        select(vec!["", "[]", "[0]", "%5B%5D", " ", "+", "=1"]),
    );
    (before, letters.collect::<Vec<_>>(), after)
        .prop_map(|(before, letters, after)| format!("{before}{}{after}", letters.concat()))
}

/// Calls a tool with an argument that is named like a parameter of the tool. Returns the refusal, or the request that was
/// sent.
fn doubled(config: &Value, name: &str) -> Result<Received, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts");
    runtime.block_on(async {
        let server = Server::json("null").await;
        let text = config.to_string().replace("http://HOST", &server.url(""));
        let config = serde_json::from_str(&text).expect("it is JSON");
        let tool = prepare_with(config, &[("${KEY}", "k-1")]);
        let done = tool.call(json!({ name: "admin" })).await;
        if server.requests().is_empty() {
            assert_eq!(done.kind(), ErrorKind::InvalidArguments, "{name:?}");
            return Err(done.error().to_string());
        }
        Ok(server.last())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(0), failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn no_argument_doubles_what_the_tool_sets(
        name in spelled("role"),
        config in select(vec![
            json!({"url": "http://HOST/a?role=user"}),
            json!({"url": "http://HOST/a?r%6fle=user"}),
            json!({"url": "http://HOST/a?role[]=${KEY}"}),
            json!({"url": "http://HOST/a", "request": {"static_query": {"role": "user"}}}),
            json!({"url": "http://HOST/a", "query": {"role": "user"}}),
            json!({"url": "http://HOST/a", "method": "POST", "request": {"static_body": {"role": "user"}}}),
            json!({"url": "http://HOST/{x}/a", "headers": {"role": "user"}, "query": {}}),
        ]),
    ) {
        if let Ok(received) = doubled(&config, &name) {
            prop_assert!(!received.line().contains("admin"), "{name:?} {config}: {}", received.line());
            prop_assert!(!received.text().contains("admin"), "{name:?} {config}: {}", received.text());
            prop_assert!(received.header("role").is_none_or(|role| role == "user"));
        }
    }
}

#[tokio::test]
async fn an_argument_adds_no_cookie() {
    let server = Server::json("null").await;
    let config =
        json!({"url": server.url("/a"), "query": {}, "headers": {"Cookie": "role=user; theme={theme}"}});
    let tool = prepare(config);
    assert_eq!(tool.call(json!({"theme": "dark"})).await.text(), "null");
    assert_eq!(
        server.last().header("cookie").as_deref(),
        Some("role=user; theme=dark")
    );
    for theme in ["x; role=admin", "x;role=admin", "x, role=admin"] {
        let done = tool.call(json!({"theme": theme})).await;
        assert_eq!(done.kind(), ErrorKind::InvalidArguments, "{theme}");
        assert!(
            done.error()
                .to_string()
                .contains("the argument `theme` must not contain `;` or `,`")
        );
    }
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn an_argument_adds_nothing_to_what_its_own_place_holds() {
    for (config, expected) in [
        (
            json!({"url": "http://HOST/a/{x};role=user", "query": {}}),
            "GET /a/1%3Brole%3Dadmin%26role%3Dadmin;role=user",
        ),
        (
            json!({"url": "http://HOST/a?role=user&x={x}"}),
            "GET /a?role=user&x=1%3Brole%3Dadmin%26role%3Dadmin",
        ),
        (
            json!({"url": "http://HOST/a?role=user", "query": {"x": "{x}"}}),
            "GET /a?role=user&x=1%3Brole%3Dadmin%26role%3Dadmin",
        ),
    ] {
        let received = sent(config.clone(), r#"{"x": "1;role=admin&role=admin"}"#).await;
        assert_eq!(received.line(), expected, "{config}");
    }
}
