//! Misbehaviour over byte streams, byte for byte.

use std::time::Duration;

use mcp_mock::{Misbehavior, MockReply, MockServer, MockTool};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::Instant,
};

use crate::support::soon;

/// A client that writes and reads lines.
pub(crate) struct Lines<R, W> {
    reader: R,
    writer: W,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Lines<R, W> {
    pub(crate) fn new(reader: R, writer: W) -> Self {
        Self {
            reader,
            writer,
            buffer: Vec::new(),
        }
    }

    pub(crate) async fn send(&mut self, line: &str) {
        self.writer
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
    }

    /// The next line; what is left of one when the connection is closed.
    pub(crate) async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(String::from_utf8(line).unwrap().trim_end().to_owned());
            }
            // Under a paused clock a limit would come before an hour's delay has passed.
            if self.reader.read_buf(&mut self.buffer).await.unwrap() == 0 {
                let rest = String::from_utf8(std::mem::take(&mut self.buffer)).unwrap();
                return (!rest.is_empty()).then_some(rest);
            }
        }
    }
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"act"}}"#;
const ECHO: &str = r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"echo"}}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#;
const ECHOED: &str = r#"{"jsonrpc":"2.0","id":8,"result":{"content":[{"type":"text","text":"{}"}]}}"#;

/// What comes for a call that misbehaves and another one after it.
async fn lines(misbehaviours: &[Misbehavior]) -> Vec<String> {
    let reply = MockReply::result(crate::support::raw(r#"{"content":[]}"#));
    let reply = misbehaviours.iter().cloned().fold(reply, MockReply::misbehave);
    let server = MockServer::builder()
        .tool(MockTool::new("act").reply(reply))
        .tool(MockTool::new("echo"))
        .build();
    let (reader, writer) = tokio::io::split(server.connect());
    let mut client = Lines::new(reader, writer);
    client.send(CALL).await;
    let mut lines = Vec::new();
    // What is sent meanwhile must not come between the parts of an answer.
    server.wait_for_calls("act", 1).await;
    client.send(ECHO).await;
    client.writer.shutdown().await.unwrap();
    while let Some(line) = client.line().await {
        lines.push(line);
    }
    lines
}

#[tokio::test]
async fn one_message_misbehaves_and_the_next_one_does_not() {
    let half = &ANSWER[..ANSWER.len().div_ceil(2)];
    let wrong = ANSWER.replace('7', "987654321");
    let padded = ANSWER.replace(
        "]}",
        &format!("],\"padding\":\"{}\"}}", "x".repeat(200 - ANSWER.len())),
    );
    for (misbehaviours, expected) in [
        (vec![], vec![ANSWER]),
        (
            vec![Misbehavior::GarbageBefore("npm warn\n{\"half\":".into())],
            vec!["npm warn", "{\"half\":", ANSWER],
        ),
        (
            vec![Misbehavior::GarbageAfter("bye".into())],
            vec![ANSWER, "bye"],
        ),
        (vec![Misbehavior::WrongId], vec![&*wrong]),
        (
            vec![Misbehavior::StringId],
            vec![r#"{"jsonrpc":"2.0","id":"7","result":{"content":[]}}"#],
        ),
        (
            vec![Misbehavior::WithoutId],
            vec![r#"{"jsonrpc":"2.0","result":{"content":[]}}"#],
        ),
        (vec![Misbehavior::Twice], vec![ANSWER, ANSWER]),
        (
            vec![Misbehavior::Raw(r#"{"id":{id},"result":null}"#.into())],
            vec![r#"{"id":7,"result":null}"#],
        ),
        (vec![Misbehavior::Oversize(200)], vec![&*padded]),
        (
            vec![Misbehavior::WrongId, Misbehavior::Twice],
            vec![&*wrong, &*wrong],
        ),
        // What is about HTTP changes nothing here.
        (vec![Misbehavior::status(503)], vec![ANSWER]),
    ] {
        let mut got = soon(lines(&misbehaviours)).await;
        let mut expected: Vec<&str> = expected.into_iter().chain([ECHOED]).collect();
        // Which of the two calls is answered first is not said.
        got.sort();
        expected.sort_unstable();
        assert_eq!(got, expected, "{misbehaviours:?}");
    }
    for (misbehaviour, expected) in [
        (Misbehavior::Close, None),
        (Misbehavior::Cut(None), Some(half)),
        (Misbehavior::Cut(Some(3)), Some(&ANSWER[..3])),
    ] {
        let got = soon(lines(std::slice::from_ref(&misbehaviour))).await;
        let got: Vec<&str> = got
            .iter()
            .map(String::as_str)
            .filter(|line| *line != ECHOED)
            .collect();
        assert_eq!(got, Vec::from_iter(expected), "{misbehaviour:?}");
    }
    let flood = soon(lines(&[Misbehavior::Flood(5000)])).await;
    assert_eq!(
        flood
            .iter()
            .filter(|line| line.contains("notifications/progress"))
            .count(),
        5000
    );
    assert!(flood.contains(&ANSWER.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_deaf_server_answers_what_it_has_heard() {
    let hour = Duration::from_secs(3600);
    let server = MockServer::builder()
        .tool(MockTool::new("act").reply(MockReply::text("heard").misbehave(Misbehavior::Deaf(hour))))
        .tool(MockTool::new("echo"))
        .build();
    let (reader, writer) = tokio::io::split(server.connect());
    let mut client = Lines::new(reader, writer);
    let start = Instant::now();
    client.send(CALL).await;
    assert!(client.line().await.unwrap().contains("heard"));
    client.send(ECHO).await;
    assert!(start.elapsed() < hour && server.calls("echo").is_empty());
    assert_eq!(client.line().await.unwrap(), ECHOED);
    assert!(start.elapsed() >= hour);
}

#[tokio::test]
async fn bytes_that_are_no_utf8() {
    let server = MockServer::builder()
        .tool(MockTool::new("act").reply(MockReply::text("fine").misbehave(Misbehavior::InvalidUtf8)))
        .build();
    let (reader, mut writer) = tokio::io::split(server.connect());
    writer.write_all(CALL.as_bytes()).await.unwrap();
    writer.shutdown().await.unwrap();
    let mut answer = Vec::new();
    let mut reader = reader;
    soon(reader.read_to_end(&mut answer)).await.unwrap();
    assert!(String::from_utf8(answer).is_err());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_in_pieces_is_whole_in_the_end() {
    let second = Duration::from_secs(1);
    for (misbehaviour, takes) in [
        (Misbehavior::PauseHalfway(second), second),
        (
            Misbehavior::Drip {
                bytes: 10,
                every: second,
            },
            5 * second,
        ),
    ] {
        let start = Instant::now();
        let got = lines(std::slice::from_ref(&misbehaviour)).await;
        assert!(
            got.contains(&ANSWER.to_owned()) && got.contains(&ECHOED.to_owned()),
            "{got:?}"
        );
        assert!(start.elapsed() >= takes, "{misbehaviour:?}");
    }
}

#[tokio::test]
async fn an_answer_that_never_comes_keeps_nobody_from_leaving() {
    let server = MockServer::builder()
        .tool(MockTool::new("act").reply(MockReply::never()))
        .build();
    let (reader, writer) = tokio::io::split(server.connect());
    let mut client = Lines::new(reader, writer);
    client.send(CALL).await;
    client.send(&ECHO.replace("echo", "nothing")).await;
    assert!(soon(client.line()).await.unwrap().contains("there is no tool"));
    client.writer.shutdown().await.unwrap();
    assert_eq!(soon(client.line()).await, None);
}
