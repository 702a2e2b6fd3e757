use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use serde_json::json;
use tool_core::{DispatchState, ErrorKind, Trust};
use tracing_subscriber::fmt::MakeWriter;

use crate::{
    server::{Answer, Received, Server, answer, ok},
    support::{Values, descriptor, executor, prepare_by, prepare_with},
};

const SECRET: &str = "s3cr3t/\"value\"+x";
const NAMED: [(&str, &str); 2] = [("${secret:api}", SECRET), ("${REGION}", "eu-central-1")];

/// Returns a response body that echoes the request, including its `authorization` header.
fn echo(request: &Received) -> String {
    let header = request.header("authorization").unwrap_or_default();
    json!({"line": request.line(), "header": header, "body": request.text(), "region": "eu-central-1"})
        .to_string()
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn assert_hidden(text: &str) {
    for form in [
        SECRET,
        "s3cr3t",
        "s3cr3t%2F",
        "czNjcjN0",
        "value\\\"+x",
        "%22value",
    ] {
        assert!(!text.contains(form), "`{form}` in {text}");
    }
}

#[tokio::test]
async fn a_secret_that_comes_back_is_hidden() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(log.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let server = Server::start(|request| {
        if request.line().contains("/fail") {
            Answer::Keep(answer("500 x", &[("content-type", "text/plain")], echo(request)))
        } else {
            Answer::Keep(ok("application/json", echo(request)))
        }
    })
    .await;
    for path in ["/fine", "/fail"] {
        let config = json!({
            "url": server.url(&format!("{path}/${{secret:api}}?k=${{secret:api}}&r=${{REGION}}")),
            "headers": {"Authorization": "Bearer ${secret:api}"},
            "body": {"k": "${secret:api}", "who": "{who}", "password": "{password}"},
            "redact": ["password"],
        });
        let tool = prepare_with(config, &NAMED);
        let done = tool
            .call(json!({"who": "me", "password": "hunter2hunter2"}))
            .await;
        // The upstream received the secret.
        let received = server.last();
        assert_eq!(
            received.header("authorization").unwrap(),
            format!("Bearer {SECRET}")
        );
        assert!(received.text().contains("hunter2"));
        match &done.result {
            Ok(result) => {
                assert_hidden(result.as_str());
                // Values that are not secrets stay.
                assert!(
                    result.as_str().contains("\"region\":\"eu-central-1\""),
                    "{result}"
                );
            }
            Err(error) => {
                assert_hidden(&format!(
                    "{error} {error:?} {:?}",
                    error.detail().map(ToString::to_string)
                ));
            }
        }
    }
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(
        logged.contains("http call answered") && logged.contains("who"),
        "{logged}"
    );
    let ours: Vec<&str> = logged
        .lines()
        .filter(|line| line.contains("tool_exec_http"))
        .collect();
    assert_eq!(ours.len(), 3, "{ours:?}");
    let ours = ours.join("\n");
    assert_hidden(&ours);
    assert!(!ours.contains("hunter2"), "{ours}");
}

#[tokio::test]
async fn a_number_that_is_a_secret_becomes_a_string() {
    let server = Server::json(r#"{"n": 1234567890123}"#).await;
    let config = json!({"url": server.url("/"), "headers": {"X-Api-Key": "${NUMBER}"}});
    let done = prepare_with(config, &[("${NUMBER}", "1234567890123")])
        .call(json!({}))
        .await;
    assert_eq!(done.text(), r#"{"n": "[redacted]"}"#);
}

#[tokio::test]
async fn a_secret_that_is_written_in_another_way_is_hidden() {
    for (secret, body, expected) in [
        (
            "CANARYq8Zt+Lm/4vW==",
            r#"{"v":"CANARYq8Zt\u002BLm/4vW=="}"#,
            r#"{"v":"[redacted]"}"#,
        ),
        (
            "CANARY<k>&9f2d1c",
            r#"{"v":"a CANARY\u003ck\u003e\u00269f2d1c"}"#,
            r#"{"v":"a [redacted]"}"#,
        ),
        (
            "CANARYsrv7f3e9d2bXq+/é",
            r#"{"v":"CANARYsrv7f3e9d2bXq+\/\u00e9"}"#,
            r#"{"v":"[redacted]"}"#,
        ),
        (
            "CANARYq8Zt",
            r#"{"v":"\u0043ANARYq8Zt"}"#,
            r#"{"v":"[redacted]"}"#,
        ),
        ("CANARYq8Zt", r#"{"v":"%43%41NARYq8Zt"}"#, r#"{"v":"[redacted]"}"#),
        (
            "CANARYq8Zt",
            r#"{"v":"43414e41525971385a74"}"#,
            r#"{"v":"[redacted]"}"#,
        ),
        (
            "CANARYq8Zt",
            r#"{"v":"&#67;ANARYq8Z&#x74;"}"#,
            r#"{"v":"[redacted]"}"#,
        ),
        // In base64 with line breaks, and encoded twice.
        (
            "CANARYq8Zt",
            r#"{"v":"Q0FO\r\nQVJZ\r\ncThadA=="}"#,
            r#"{"v":"[redacted]"}"#,
        ),
        (
            "CANARYq8Zt",
            r#"{"v":"UTBGT1FWSlpjVGhhZEE9PQ=="}"#,
            r#"{"v":"[redacted]"}"#,
        ),
    ] {
        let server = Server::json(body).await;
        let config = json!({"url": server.url("/?key=${secret:api}")});
        let done = prepare_with(config, &[("${secret:api}", secret)])
            .call(json!({}))
            .await;
        assert_eq!(done.text(), expected, "{body}");
    }
}

#[tokio::test]
async fn arguments_are_logged_with_masks() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
        .with_writer(log.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let server = Server::json("1").await;
    let config = json!({"url": server.url("/"), "body": {"all": "{password}"}});
    let arguments = json!({
        "password": "PWcanary1",
        "ApiKey": "PWcanary2",
        "more": {"clientSecret": "PWcanary3"},
        "headers": [{"name": "Authorization", "value": "Bearer PWcanary4"}],
        "aws": "AKIAPWCANARY5678ABCD",
        "url": "https://u:PWcanary6@h",
        "dsn": "see u:PWcanary7@h",
        "pem": "-----BEGIN PRIVATE KEY-----\nPWcanary8\n-----END PRIVATE KEY-----",
        "plain": "seen",
    });
    prepare_with(config, &[]).call(arguments).await;
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let ours: Vec<&str> = logged
        .lines()
        .filter(|line| line.contains("tool_exec_http"))
        .collect();
    assert!(ours.join("\n").contains("seen"), "{logged}");
    assert!(!ours.join("\n").to_lowercase().contains("pwcanary"), "{ours:?}");
}

#[tokio::test]
async fn what_an_operator_writes_out_can_be_known_as_a_secret() {
    let config = json!({
        "url": "https://127.0.0.1/?api_key=in-url&n={n}",
        "query": {"key": "in-query", "of": "{of}"},
        "headers": {"Authorization": "Bearer written", "x-token": "${TOKEN}"},
    });
    let written = |trust: Trust| {
        let values = Values::new(&[("${TOKEN}", "t")]);
        let mut descriptor = descriptor(config.clone());
        descriptor.origin.trust = trust;
        let _ = prepare_by(&executor(values.clone()), descriptor);
        ["api_key", "key", "authorization", "x-token"].map(|name| values.present(name))
    };
    let some = |value: &str| Some(value.to_owned());
    assert_eq!(
        written(Trust::Operator),
        [some("in-url"), some("in-query"), some("Bearer written"), None]
    );
    assert_eq!(written(Trust::Upstream), [None, None, None, None]);
}

#[tokio::test]
async fn a_value_is_asked_for_in_every_call() {
    let server = Server::json("1").await;
    let values = Values::new(&[("${KEY}", "one")]);
    let executor = executor(values.clone());
    let config = json!({"url": server.url("/"), "headers": {"x-key": "${KEY}"}});
    let tool = prepare_by(&executor, descriptor(config)).unwrap_or_else(|problems| panic!("{problems:?}"));
    for value in ["one", "two"] {
        values.set("${KEY}", value);
        assert_eq!(tool.call(json!({})).await.text(), "1");
        assert_eq!(server.last().header("x-key").as_deref(), Some(value));
    }
    values.set("${KEY}", "a\nb");
    let done = tool.call(json!({})).await;
    let message =
        "the configured value of the header `x-key` contains characters that are not allowed in a header";
    assert_eq!(done.error().to_string(), message);
    values.remove("${KEY}");
    let done = tool.call(json!({})).await;
    assert_eq!(
        (done.kind(), done.dispatch),
        (ErrorKind::Auth, DispatchState::NotSent)
    );
    assert!(
        done.error().to_string().contains("`${KEY}` is not set"),
        "{}",
        done.error()
    );
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn arguments_are_never_read_as_references() {
    let server = Server::start(|request| Answer::Keep(ok("application/json", request.text()))).await;
    let tool = prepare_with(
        json!({"url": server.url("/"), "body": {"a": "{a}", "b": "x{a}"}}),
        &NAMED,
    );
    let done = tool.call_text(r#"{"a": "${secret:api} {b} {{.b}}"}"#).await;
    assert_eq!(
        done.text(),
        r#"{"a":"${secret:api} {b} {{.b}}","b":"x${secret:api} {b} {{.b}}"}"#
    );
}

#[test]
fn only_an_operator_may_name_variables() {
    let executor = executor(Values::new(&[
        ("${secret:api}", "x"),
        ("${HOME}", "x"),
        ("${file:/etc/passwd}", "x"),
    ]));
    for (config, fine) in [
        (
            json!({"url": "https://a.example", "headers": {"a": "${HOME}"}}),
            false,
        ),
        (
            json!({"url": "https://a.example", "headers_from_env": ["HOME"]}),
            false,
        ),
        (
            json!({"url": "https://a.example", "body": ["${file:/etc/passwd}"]}),
            false,
        ),
        (json!({"url": "https://a.example", "allow_private": true}), false),
        (
            json!({"url": "https://a.example", "headers": {"a": "${secret:api}"}}),
            true,
        ),
    ] {
        let mut untrusted = descriptor(config.clone());
        untrusted.origin.trust = Trust::Upstream;
        assert_eq!(prepare_by(&executor, untrusted).is_ok(), fine, "{config}");
    }
}

#[test]
fn nothing_is_shown_of_an_executor() {
    let shown = format!("{:?}", executor(Values::new(&NAMED)));
    assert_hidden(&shown);
    assert!(shown.contains("HttpExecutor"));
}
