use std::sync::atomic::Ordering;

use mcp_server::HttpServerOptions;

use crate::support::{Head, META, Served};

fn call(method: &str, rest: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{rest}{META}}}}}"#)
}

/// Tests every row of the table of statuses and codes.
#[tokio::test]
async fn a_modern_request_must_say_the_same_in_head_and_body() {
    let served = Served::start(HttpServerOptions::default()).await;
    let head = || Head::modern("tools/call").with("Mcp-Name", "t");
    let body = call("tools/call", r#""name":"t","arguments":{},"#);
    let list = call("tools/list", "");
    for (what, head, body, status, expected) in [
        (
            "good",
            head(),
            body.clone(),
            200,
            r#""result":{"resultType":"complete","name":"t""#,
        ),
        (
            "list",
            Head::modern("tools/list"),
            list.clone(),
            200,
            r#""tools":[]"#,
        ),
        (
            "discover",
            Head::modern("server/discover"),
            call("server/discover", ""),
            200,
            "supportedVersions",
        ),
        (
            "no version header",
            head().with("MCP-Protocol-Version", ""),
            body.clone(),
            400,
            "-32020",
        ),
        (
            "other version header",
            head().with("MCP-Protocol-Version", "2025-11-25"),
            body.clone(),
            400,
            "-32020",
        ),
        (
            "no method header",
            head().with("Mcp-Method", ""),
            body.clone(),
            400,
            "-32020",
        ),
        (
            "other method header",
            head().with("Mcp-Method", "tools/list"),
            body.clone(),
            400,
            "-32020",
        ),
        (
            "method header in another case",
            head().with("Mcp-Method", "Tools/Call"),
            body.clone(),
            400,
            "-32020",
        ),
        (
            "no name header",
            head().with("Mcp-Name", ""),
            body.clone(),
            400,
            "-32020",
        ),
        (
            "other name header",
            head().with("Mcp-Name", "u"),
            body.clone(),
            400,
            "-32020",
        ),
        (
            "name in base64",
            head().with("Mcp-Name", "=?base64?dA==?="),
            body.clone(),
            200,
            r#""name":"t""#,
        ),
        (
            "name in bad base64",
            head().with("Mcp-Name", "=?base64?dA?="),
            body.clone(),
            400,
            "-32020",
        ),
        (
            "unknown version in both",
            Head::modern("tools/list").with("MCP-Protocol-Version", "1900-01-01"),
            list.replace("2026-07-28", "1900-01-01"),
            400,
            "-32022",
        ),
        (
            "legacy version in both",
            Head::modern("tools/list").with("MCP-Protocol-Version", "2025-11-25"),
            list.replace("2026-07-28", "2025-11-25"),
            400,
            "-32022",
        ),
        (
            "no _meta",
            Head::modern("tools/list"),
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.to_owned(),
            400,
            "-32602",
        ),
        (
            "no capabilities",
            Head::modern("tools/list"),
            list.replace("clientCapabilities", "x"),
            400,
            "-32602",
        ),
        (
            "unknown method",
            Head::modern("test/none"),
            call("test/none", ""),
            404,
            "-32601",
        ),
        (
            "method of the other era",
            Head::modern("ping"),
            call("ping", ""),
            404,
            "-32601",
        ),
        (
            "initialize",
            Head::modern("initialize"),
            call("initialize", ""),
            404,
            "-32601",
        ),
        (
            "typed already",
            Head::modern("test/typed"),
            call("test/typed", ""),
            200,
            r#""result":{"resultType":"input_required"}"#,
        ),
        (
            "panic",
            Head::modern("test/panic"),
            call("test/panic", ""),
            200,
            "-32603",
        ),
    ] {
        let answer = served.once(&head, &body).await;
        assert_eq!(answer.status, status, "{what}: {}", answer.body);
        assert!(answer.body.contains(expected), "{what}: {}", answer.body);
        assert!(answer.body.contains(r#""id":1,"#), "{what}: {}", answer.body);
        assert_eq!(answer.header("content-type"), Some("application/json"), "{what}");
        assert_eq!(answer.header("mcp-session-id"), None, "{what}");
    }
}

#[tokio::test]
async fn a_header_that_stands_there_twice_is_refused() {
    let served = Served::start(HttpServerOptions::default()).await;
    let mut head = Head::modern("tools/list");
    head.headers.push(("Mcp-Method", "tools/call".to_owned()));
    let answer = served.once(&head, &call("tools/list", "")).await;
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("-32020"), "{}", answer.body);
}

#[tokio::test]
async fn a_request_about_a_task_names_it_in_its_head() {
    let served = Served::start(HttpServerOptions::default()).await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for (name, parameters, status, expected) in [
            // The scripted service has no tasks: requests that reach it are not found.
            ("t 1", r#""taskId":"t 1","#, 404, "-32601"),
            ("=?base64?dMOkZ2xpY2g=?=", r#""taskId":"täglich","#, 404, "-32601"),
            ("t1", r#""taskId":"t2","#, 400, "-32020"),
            ("", r#""taskId":"t1","#, 400, "-32020"),
            ("", r#""taskId":7,"#, 404, "-32601"),
            // The name is in a member of another method.
            ("t1", r#""taskId":"t2","name":"t1","#, 400, "-32020"),
        ] {
            let head = match name {
                "" => Head::modern(method),
                name => Head::modern(method).with("Mcp-Name", name),
            };
            let answer = served.once(&head, &call(method, parameters)).await;
            assert_eq!(
                answer.status, status,
                "{method} {name} {parameters}: {}",
                answer.body
            );
            assert!(
                answer.body.contains(expected),
                "{method} {name} {parameters}: {}",
                answer.body
            );
        }
        // Methods that the modern era removed have no name either.
        let answer = served
            .once(
                &Head::modern("tasks/list"),
                &call("tasks/list", r#""taskId":"t1","#),
            )
            .await;
        assert_eq!(answer.status, 404, "{}", answer.body);
        // A legacy client sends no such header.
        let legacy = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"taskId":"t1"}}}}"#);
        let answer = served.once(&Head::post().with("Mcp-Name", "t2"), &legacy).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
}

#[tokio::test]
async fn a_legacy_request_may_do_without_a_session() {
    let served = Served::start(HttpServerOptions::default()).await;
    let who = r#"{"jsonrpc":"2.0","id":1,"method":"test/who"}"#;
    for (version, status, expected) in [
        ("", 200, r#""revision":"2025-03-26""#),
        ("2025-06-18", 200, r#""revision":"2025-06-18""#),
        ("2025-11-25", 200, r#""session":"none""#),
        ("1900-01-01", 400, "-32022"),
        ("2026-07-28", 400, "-32602"),
    ] {
        let answer = served
            .once(&Head::post().with("MCP-Protocol-Version", version), who)
            .await;
        assert_eq!(answer.status, status, "{version}");
        assert!(answer.body.contains(expected), "{version}: {}", answer.body);
    }
    // Errors that a legacy client does not expect as HTTP errors have the status 200.
    let answer = served
        .once(&Head::post(), r#"{"jsonrpc":"2.0","id":1,"method":"none"}"#)
        .await;
    assert_eq!(answer.status, 200);
    assert!(answer.body.contains("-32601"), "{}", answer.body);
}

#[tokio::test]
async fn what_is_no_message_is_refused() {
    let served = Served::start(HttpServerOptions::default()).await;
    for (body, code) in [
        ("", "-32700"),
        ("{", "-32700"),
        ("nonsense", "-32700"),
        ("[]", "-32600"),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, "-32600"),
        ("7", "-32600"),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "-32600"),
        (r#"{"jsonrpc":"2.0","id":1e400,"method":"ping"}"#, "-32600"),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, "-32600"),
        (r#"{"jsonrpc":"2.0","id":1,"METHOD":"ping"}"#, "-32600"),
    ] {
        let mut connection = served.connect().await;
        connection.send(&Head::post(), body).await;
        let answer = connection.receive().await;
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.body.contains(code), "{body}: {}", answer.body);
        // The connection stays open.
        connection
            .send(&Head::post(), r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)
            .await;
        assert_eq!(connection.receive().await.status, 200, "after {body}");
    }
}

#[tokio::test]
async fn notifications_and_answers_are_taken_without_a_word() {
    let served = Served::start(HttpServerOptions::default()).await;
    let modern = format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{{META}}}}}"#);
    for (head, body, status) in [
        (
            Head::post(),
            r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
            202,
        ),
        (
            Head::post(),
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            202,
        ),
        (Head::post(), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, 202),
        (Head::modern("notifications/x"), &modern, 202),
        (Head::modern("x"), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, 400),
        (
            Head::post().with("MCP-Protocol-Version", "1900-01-01"),
            r#"{"jsonrpc":"2.0","method":"n"}"#,
            400,
        ),
    ] {
        let answer = served.once(&head, body).await;
        assert_eq!(answer.status, status, "{body}");
        assert_eq!(answer.body.is_empty(), status == 202, "{body}");
    }
    assert_eq!(
        *served.log.notifications.lock().unwrap(),
        ["notifications/roots/list_changed", "notifications/x"]
    );
}

/// Tests that headers must repeat the arguments that they mirror, and no others.
#[tokio::test]
async fn mirrored_arguments_are_those_of_the_headers() {
    let served = Served::start(HttpServerOptions::default()).await;
    let head = || Head::modern("tools/call").with("Mcp-Name", "mirrored");
    for (what, region, n, arguments, status) in [
        ("same", "us", "7", r#"{"region":"us","deep":{"n":7}}"#, 200),
        ("encoded", "=?base64?SGVsbG8=?=", "", r#"{"region":"Hello"}"#, 200),
        (
            "literal",
            "=?base64?SGVsbG8",
            "",
            r#"{"region":"=?base64?SGVsbG8"}"#,
            200,
        ),
        ("other spelling", "", "1000", r#"{"deep":{"n":1e3}}"#, 200),
        ("nothing", "", "", "{}", 200),
        ("null", "", "", r#"{"region":null}"#, 200),
        ("no mark of ours", "", "", r#"{"odd":"x","list":["y"]}"#, 200),
        ("other value", "eu", "", r#"{"region":"us"}"#, 400),
        ("other case", "US", "", r#"{"region":"us"}"#, 400),
        ("no header", "", "", r#"{"region":"us"}"#, 400),
        ("no argument", "us", "", "{}", 400),
        (
            "bad padding",
            "=?base64?SGVsbG8?=",
            "",
            r#"{"region":"Hello"}"#,
            400,
        ),
        (
            "bad characters",
            "=?base64?SGVs!!!bG8=?=",
            "",
            r#"{"region":"Hello"}"#,
            400,
        ),
        ("other number", "", "8", r#"{"deep":{"n":7}}"#, 400),
        ("not by name", "", "7", r#"{"n":7}"#, 400),
    ] {
        let head = head().with("Mcp-Param-Region", region).with("Mcp-Param-N", n);
        let body = call(
            "tools/call",
            &format!(r#""name":"mirrored","arguments":{arguments},"#),
        );
        let answer = served.once(&head, &body).await;
        assert_eq!(answer.status, status, "{what}: {}", answer.body);
        assert_eq!(
            answer.body.contains("-32020"),
            status == 400,
            "{what}: {}",
            answer.body
        );
    }
    // Unknown headers are ignored, and so are those of the other era.
    let body = call("tools/call", r#""name":"mirrored","#);
    let answer = served.once(&head().with("Mcp-Param-Other", "x"), &body).await;
    assert_eq!(answer.status, 200);
    let legacy = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mirrored","arguments":{"region":"us"}}}"#;
    assert_eq!(served.once(&Head::post(), legacy).await.status, 200);
    let mut twice = head().with("Mcp-Param-Region", "us");
    twice.headers.push(("Mcp-Param-Region", "us".to_owned()));
    let body = call("tools/call", r#""name":"mirrored","arguments":{"region":"us"},"#);
    assert_eq!(served.once(&twice, &body).await.status, 400);
}

/// Tests that the service looks up an unknown tool before its headers are checked, after all other checks. Headers that nobody
/// can check are refused.
#[tokio::test]
async fn arguments_of_a_tool_that_is_looked_up_are_checked_from_the_first_call() {
    let served = Served::start(HttpServerOptions::default()).await;
    let n_learned = || served.log.learning.load(Ordering::SeqCst);
    let arguments = r#""arguments":{"region":"us"},"#;
    for (name, told, region, status, learned) in [
        ("late", "other", "us", 400, 0),
        ("late", "late", "eu", 400, 1),
        ("late", "late", "us", 200, 1),
        ("late", "late", "", 400, 1),
        ("late-plain", "late-plain", "", 200, 2),
        ("late-plain", "late-plain", "", 200, 2),
        ("late-never", "late-never", "us", 400, 3),
        ("late-never", "late-never", "us", 400, 4),
        ("late-never", "late-never", "", 200, 5),
        ("mirrored", "mirrored", "eu", 400, 5),
    ] {
        let head = Head::modern("tools/call").with("Mcp-Name", told);
        let head = head.with("Mcp-Param-Region", region);
        let body = call("tools/call", &format!(r#""name":"{name}",{arguments}"#));
        let answer = served.once(&head, &body).await;
        assert_eq!(answer.status, status, "{name} {region}: {}", answer.body);
        let is_mismatch = answer.body.contains("-32020");
        assert_eq!(is_mismatch, status == 400, "{name}: {}", answer.body);
        assert_eq!(n_learned(), learned, "{name} {region}");
    }
}

#[tokio::test]
async fn a_trace_comes_with_the_request_itself_or_with_its_headers() {
    let served = Served::start(HttpServerOptions::default()).await;
    let by_header = |head: Head<'static>| head.with("traceparent", "00-h").with("tracestate", "h=1");
    let in_meta = META.replacen('{', r#"{"traceparent":"00-m","#, 1);
    let head = || Head::modern("test/trace");
    for (head, meta, expected) in [
        (head(), META, r#""trace":" ""#),
        (by_header(head()), META, r#""trace":"00-h h=1""#),
        (head(), &*in_meta, r#""trace":"00-m ""#),
        (by_header(head()), &*in_meta, r#""trace":"00-m ""#),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"test/trace","params":{{{meta}}}}}"#);
        let answer = served.once(&head, &body).await;
        assert!(answer.body.contains(expected), "{} for {expected}", answer.body);
    }
}
