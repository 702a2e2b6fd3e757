//! Requests and messages to legacy clients while their own request runs.

use mcp_server::HttpServerOptions;

use crate::support::{Connection, EVERYTHING, Head, META, Served};

/// Opens a session of a client that declares these capabilities.
async fn open(served: &Served, capabilities: &str) -> Head<'static> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"clientInfo":{{"name":"t","version":"0"}}}}}}"#
    );
    let answer = served.once(&Head::post(), &body).await;
    Head::post().with("Mcp-Session-Id", answer.header("mcp-session-id").unwrap())
}

fn ask(method: &str, params: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":"call","method":"test/ask","params":{{"method":"{method}","params":{params}}}}}"#
    )
}

async fn asked(served: &Served, session: &Head<'_>, body: &str) -> (Connection, String) {
    let mut connection = served.connect().await;
    connection.send(session, body).await;
    assert_eq!(
        connection.head().await.header("content-type"),
        Some("text/event-stream")
    );
    let question = connection.event().await.unwrap();
    (connection, question)
}

const ROOTS: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[1e2]}}"#;

#[tokio::test]
async fn a_question_goes_the_way_of_its_call() {
    let served = Served::start(HttpServerOptions::default()).await;
    let session = open(&served, r#"{"roots":{},"elicitation":{}}"#).await;
    let (mut call, question) = asked(&served, &session, &ask("roots/list", "{}")).await;
    assert_eq!(
        question,
        "id: 1-1\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\",\"params\":{}}\n\n"
    );
    assert_eq!(served.once(&session, ROOTS).await.status, 202);
    let answer =
        "id: 1-2\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"call\",\"result\":{\"given\":{\"roots\":[1e2]}}}\n\n";
    assert_eq!(call.event().await.unwrap(), answer);
    assert_eq!(call.event().await, None);
    // A duplicate response, or one without a request, is ignored.
    for late in [ROOTS, r#"{"jsonrpc":"2.0","id":"odd","result":{}}"#] {
        assert_eq!(served.once(&session, late).await.status, 202);
    }
    // An error of the client is no answer.
    let (mut call, question) = asked(
        &served,
        &session,
        &ask("elicitation/create", r#"{"message":"?"}"#),
    )
    .await;
    assert!(
        question.contains(r#""id":2,"method":"elicitation/create","params":{"message":"?"}"#),
        "{question}"
    );
    let refusal = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no"}}"#;
    assert_eq!(served.once(&session, refusal).await.status, 202);
    let answer = call.event().await.unwrap();
    assert!(
        answer.contains(r#"{"failed":"the client answered with an error"}"#),
        "{answer}"
    );
}

#[tokio::test]
async fn nobody_else_can_answer() {
    let served = Served::start(HttpServerOptions::default()).await;
    let session = open(&served, r#"{"roots":{}}"#).await;
    let other = open(&served, r#"{"roots":{}}"#).await;
    let (mut call, _) = asked(&served, &session, &ask("roots/list", "{}")).await;
    // The ids of requests to a client are those of its session: the other session has the same one.
    let (mut others, _) = asked(&served, &other, &ask("roots/list", "{}")).await;
    let forged = r#"{"jsonrpc":"2.0","id":1,"result":{"roots":["forged"]}}"#;
    for head in [&other, &Head::post()] {
        assert_eq!(served.once(head, forged).await.status, 202);
    }
    let unknown = Head::post().with("Mcp-Session-Id", "0123456789abcdef0123456789abcdef");
    assert_eq!(served.once(&unknown, forged).await.status, 404);
    assert!(others.event().await.unwrap().contains("forged"));
    assert_eq!(served.once(&session, ROOTS).await.status, 202);
    assert!(call.event().await.unwrap().contains(r#"{"roots":[1e2]}"#));
}

#[tokio::test]
async fn a_client_is_asked_only_what_it_declared() {
    let served = Served::start(HttpServerOptions::default()).await;
    let url = r#"{"mode":"url","url":"https://example.com","message":"?","elicitationId":"1"}"#;
    let form = r#"{"message":"?"}"#;
    let required = |what: &str| format!(r#""code":-32021,"message":"this needs the capability `{what}`"#);
    for (capabilities, method, params, expected) in [
        ("{}", "roots/list", "{}", &*required("roots")),
        (r#"{"sampling":{}}"#, "roots/list", "{}", &required("roots")),
        (
            r#"{"roots":{}}"#,
            "sampling/createMessage",
            "{}",
            r#""data":{"requiredCapabilities":{"sampling":{}}}"#,
        ),
        (
            r#"{"sampling":{}}"#,
            "sampling/createMessage",
            r#"{"tools":[]}"#,
            &required("sampling.tools"),
        ),
        (
            r#"{"elicitation":{}}"#,
            "elicitation/create",
            url,
            r#""data":{"requiredCapabilities":{"elicitation":{"url":{}}}}"#,
        ),
        (
            r#"{"elicitation":{"url":{}}}"#,
            "elicitation/create",
            form,
            &required("elicitation.form"),
        ),
        (
            r#"{"elicitation":true}"#,
            "elicitation/create",
            form,
            &required("elicitation.form"),
        ),
        (r#"{"roots":{}}"#, "tools/list", "{}", r#""code":-32603"#),
    ] {
        let session = open(&served, capabilities).await;
        let answer = served.once(&session, &ask(method, params)).await;
        assert!(
            answer.body.contains(expected),
            "{capabilities} {method}: {}",
            answer.body
        );
    }
    // Nor without a channel: outside of a session, without events, in the other era.
    let session = open(&served, r#"{"roots":{}}"#).await;
    let modern = ask("roots/list", "{}").replace(
        r#""params":{}"#,
        &format!(
            r#""params":{{}},{}"#,
            META.replace("Capabilities\":{}", "Capabilities\":{\"roots\":{}}")
        ),
    );
    for (head, body) in [
        (Head::post(), ask("roots/list", "{}")),
        (
            session.with("Accept", "application/json"),
            ask("roots/list", "{}"),
        ),
        (Head::modern("test/ask"), modern),
    ] {
        let answer = served.once(&head, &body).await;
        assert!(
            answer.body.contains("there is no channel to the client"),
            "{}",
            answer.body
        );
    }
}

#[tokio::test]
async fn a_question_ends_with_its_call() {
    let served = Served::start(HttpServerOptions::default()).await;
    let session = open(&served, r#"{"roots":{}}"#).await;
    let (mut call, _) = asked(&served, &session, &ask("roots/list", "{}")).await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"call"}}"#;
    assert_eq!(served.once(&session, cancel).await.status, 202);
    let void = call.event().await.unwrap();
    assert!(
        void.contains(r#""method":"notifications/cancelled","params":{"requestId":1}"#),
        "{void}"
    );
    assert_eq!(call.event().await, None);
}

#[tokio::test]
async fn log_messages_come_to_those_who_want_them() {
    let served = Served::start(HttpServerOptions::default()).await;
    served.log.offer(EVERYTHING);
    let session = open(&served, "{}").await;
    let log = r#"{"jsonrpc":"2.0","id":1,"method":"test/log"}"#;
    let set = |level: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{{"level":{level}}}}}"#)
    };
    let message = |level: &str| {
        format!(
            "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{{\"level\":\"{level}\",\"data\":1e2}}}}\n\n"
        )
    };
    // The client wants no messages, so there is no stream either.
    let quiet = served.once(&session, log).await;
    assert_eq!(
        quiet.body,
        r#"{"jsonrpc":"2.0","id":1,"result":{"wanted":"none"}}"#
    );
    for odd in ["\"loud\"", "7"] {
        assert!(
            served.once(&session, &set(odd)).await.body.contains("-32602"),
            "{odd}"
        );
    }
    assert!(
        served
            .once(&session, &set("\"info\""))
            .await
            .body
            .contains(r#""result":{}"#)
    );
    let told = served.once(&session, log).await.body;
    let expected = format!("id: 1-1\n{}id: 1-2\n{}", message("info"), message("error"));
    assert!(told.starts_with(&expected), "{told}");
    assert!(told.contains(r#"{"wanted":"info"}"#), "{told}");
    // The level belongs to the session.
    let other = open(&served, "{}").await;
    assert!(served.once(&other, log).await.body.contains("none"));
    // In the modern era, each request names the level that it wants.
    let modern = |level: &str| {
        let meta = META.replace("{\"io", &format!("{{{level}\"io"));
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"test/log","params":{{{meta}}}}}"#)
    };
    let head = Head::modern("test/log");
    assert!(
        served
            .once(&head, &modern(""))
            .await
            .body
            .starts_with(r#"{"jsonrpc"#)
    );
    let told = served
        .once(&head, &modern(r#""io.modelcontextprotocol/logLevel":"error","#))
        .await
        .body;
    assert!(told.starts_with(&message("error")), "{told}");
}
