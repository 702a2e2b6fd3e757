//! Responses that are reported while they arrive.

use std::sync::Arc;

use raw_json::RawJson;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::timeout,
};
use tool_core::{DispatchState, ErrorKind, Outcome, Progress, ToolError};

use crate::support::{LONG, Prepared, prepare, prepare_with, problems};

/// Hands on the messages of reports.
struct Reports(mpsc::UnboundedSender<String>);

impl Progress for Reports {
    fn report(&self, report: RawJson) {
        let message = report.get("message").and_then(|message| message.string());
        // Fails if the test is over.
        let _ = self.0.send(message.unwrap_or_default());
    }
}

/// Upstream that answers one request by hand.
struct Upstream {
    listener: TcpListener,
    url: String,
}

impl Upstream {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        Self { listener, url }
    }

    /// Accepts a connection, reads the head of a request, and begins a response without a length.
    async fn answer(&self, content_type: &str) -> (TcpStream, String) {
        let (mut stream, _) = self.listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let response =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nConnection: close\r\n\r\n");
        stream.write_all(response.as_bytes()).await.unwrap();
        (stream, String::from_utf8(head).unwrap())
    }
}

/// Call in a task of its own: its result, and how far it came.
type RunningCall = tokio::task::JoinHandle<(Result<RawJson, ToolError>, DispatchState)>;

/// Calls a tool without arguments. Returns the call and its reports.
fn begin(tool: Prepared) -> (RunningCall, mpsc::UnboundedReceiver<String>) {
    let (sender, reports) = mpsc::unbounded_channel();
    let call = tokio::spawn(async move {
        let mut cx = tool.context("{}");
        cx.origin.progress = Some(Arc::new(Reports(sender)));
        let outcome = tool.invoke().invoke_boxed(&mut cx).await;
        let result = outcome.map(|outcome| match outcome {
            Outcome::Reply(reply) => reply.raw().clone(),
            other => panic!("{other:?}"),
        });
        (result, cx.dispatch().state())
    });
    (call, reports)
}

async fn reported(reports: &mut mpsc::UnboundedReceiver<String>) -> Option<String> {
    timeout(LONG, reports.recv()).await.expect("nothing is reported")
}

/// The upstream sends each piece only when the one before was reported.
#[tokio::test]
async fn pieces_are_reported_before_the_next_one_arrives() {
    for (format, content_type, pieces, expected) in [
        (
            "sse",
            "text/event-stream",
            ["data: {\"n\":1}\n\n", "data: two\n\n", "data: [DONE]\n\n"],
            json!([{"n": 1}, "two"]),
        ),
        (
            "ndjson",
            "application/x-ndjson",
            ["{\"n\":1}\n", "\"two\"\n", "\n"],
            json!([{"n": 1}, "two"]),
        ),
        (
            "text",
            "text/plain",
            ["{\"n\":1}\n", "two\n", ""],
            json!("{\"n\":1}\ntwo\n"),
        ),
    ] {
        let upstream = Upstream::open().await;
        let tool = prepare(json!({"url": upstream.url, "stream": format}));
        let (call, mut reports) = begin(tool);
        let (mut stream, head) = upstream.answer(content_type).await;
        assert!(head.to_ascii_lowercase().contains("\naccept: "), "{head}");
        assert_eq!(head.contains("text/event-stream"), format == "sse", "{head}");
        for (piece, expected) in pieces.into_iter().zip(["{\"n\":1}", "two"]) {
            stream.write_all(piece.as_bytes()).await.unwrap();
            assert_eq!(
                reported(&mut reports).await.as_deref(),
                Some(expected),
                "{format}"
            );
        }
        stream.write_all(pieces[2].as_bytes()).await.unwrap();
        drop(stream);
        let (result, dispatch) = timeout(LONG, call).await.expect("it ends").unwrap();
        let result: serde_json::Value = result.expect("a result").to().unwrap();
        assert_eq!(result, expected, "{format}");
        assert_eq!(dispatch, DispatchState::Answered);
        assert_eq!(reported(&mut reports).await, None, "nothing more is reported");
    }
}

/// Secrets and fields that are hidden in the result are hidden in reports, also where chunks split them.
#[tokio::test]
async fn a_secret_is_in_no_report() {
    let upstream = Upstream::open().await;
    let settings = json!({
        "url": upstream.url,
        "headers": {"Authorization": "Bearer ${secret:KEY}"},
        "redact": ["pin"],
        "stream": "ndjson",
        "response_path": "$[-1]",
    });
    let (call, mut reports) = begin(prepare_with(settings, &[("${secret:KEY}", "hunter2-hunter2")]));
    let (mut stream, _) = upstream.answer("application/x-ndjson").await;
    for part in ["{\"echo\":\"hunt", "er2-hunter2\",\"pin\":\"12", "34\"}\n"] {
        stream.write_all(part.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
    }
    drop(stream);
    let report = reported(&mut reports).await.expect("a report");
    let (result, _) = timeout(LONG, call).await.expect("it ends").unwrap();
    let result = result.expect("a result").to_string();
    for text in [&report, &result] {
        assert!(text.contains("echo") && text.contains("pin"), "{text}");
        assert!(!text.contains("hunter2") && !text.contains("1234"), "{text}");
    }
}

#[tokio::test]
async fn a_stream_of_another_format_or_size_fails() {
    for (settings, content_type, body, expected) in [
        (
            json!({"stream": "sse"}),
            "application/json",
            "{}",
            ErrorKind::Protocol,
        ),
        (
            json!({"stream": "ndjson"}),
            "application/x-ndjson",
            "1\n{\n",
            ErrorKind::Protocol,
        ),
        (
            json!({"stream": "sse", "max_response_bytes": 8}),
            "text/event-stream",
            "data: 123456789\n\n",
            ErrorKind::ResultTooLarge,
        ),
    ] {
        let upstream = Upstream::open().await;
        let mut settings = settings;
        settings["url"] = upstream.url.as_str().into();
        let (call, _reports) = begin(prepare(settings.clone()));
        let (mut stream, _) = upstream.answer(content_type).await;
        stream.write_all(body.as_bytes()).await.unwrap();
        drop(stream);
        let (result, dispatch) = timeout(LONG, call).await.expect("it ends").unwrap();
        assert_eq!(result.expect_err("it fails").kind(), expected, "{settings}");
        assert_eq!(dispatch, DispatchState::Answered, "{settings}");
    }
}

/// A call that is withdrawn closes the connection, whatever the upstream would still send.
#[tokio::test]
async fn a_withdrawn_call_ends_its_stream() {
    let upstream = Upstream::open().await;
    let (call, mut reports) = begin(prepare(json!({"url": upstream.url, "stream": "text"})));
    let (mut stream, _) = upstream.answer("text/plain").await;
    stream.write_all(b"first\n").await.unwrap();
    assert_eq!(reported(&mut reports).await.as_deref(), Some("first"));
    call.abort();
    let ended = timeout(LONG, stream.read(&mut [0; 8]))
        .await
        .expect("it is closed");
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    assert_eq!(reported(&mut reports).await, None);
}

#[test]
fn an_unknown_format_is_refused() {
    let found = problems(json!({"url": "http://127.0.0.1/", "stream": "lines"}));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("/stream: ") && found[0].contains("ndjson"),
        "{found:?}"
    );
}
