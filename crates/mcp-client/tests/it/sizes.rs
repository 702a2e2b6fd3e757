//! Responses of a gibibyte: no more is read than the limit plus the bytes in transit, with little memory.

use std::time::Duration;

use mcp_client::{ClientErrorKind, ConnectionOptions};
use mcp_wire::Era;
use tokio::{sync::mpsc, time::timeout};

use crate::{
    http::{self, about, serving_in},
    support::http_server::{Flood, Reply},
    support::memory::resident_peak,
    support::peer::{call, connect_with, within, works},
};

const GIBIBYTE: usize = 1 << 30;
const MEBIBYTE: usize = 1 << 20;
/// Maximum size of a message.
const LIMIT: usize = 16 * MEBIBYTE;
/// Maximum memory of one call.
const MEMORY: usize = 64 * MEBIBYTE;
/// Beginning of a response.
const START: &str = r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":""#;
/// Maximum number of bytes in buffers of the system.
const UNDER_WAY: usize = 48 * MEBIBYTE;
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test(start_paused = true)]
async fn a_line_is_refused_when_it_is_too_long_and_not_when_it_ends() {
    let (connection, mut peer) = connect_with(ConnectionOptions::default(), 64 * 1024).await;
    let before = resident_peak();
    let refused = call(&connection, within(7));
    let id = peer.request("tools/call").await;
    let start = START.replace("ID", &id.to_string());
    peer.send_text(&start).await;
    // The last byte exceeds the limit. Nothing follows, and the clock is paused.
    assert_eq!(peer.flood(LIMIT + 1 - start.len()).await, LIMIT + 1 - start.len());
    let error = refused.await.unwrap().unwrap_err();
    assert!(
        matches!(error.kind(), ClientErrorKind::TooLarge { limit: LIMIT, .. }),
        "{error}"
    );
    assert!(error.was_sent());
    // The rest of the line is skipped.
    assert_eq!(peer.flood(100 * MEBIBYTE).await, 100 * MEBIBYTE);
    peer.send("\"}]}}").await;
    works(&connection, &mut peer).await;
    assert_eq!(connection.stats().oversize, 1);
    let grown = resident_peak() - before;
    assert!(grown < MEMORY, "memory grew by {grown} bytes");
}

#[tokio::test(start_paused = true)]
async fn a_line_without_end_ends_the_connection() {
    let (connection, mut peer) = connect_with(ConnectionOptions::default(), 64 * 1024).await;
    let before = resident_peak();
    let (refused, other) = (call(&connection, within(7)), call(&connection, within(7)));
    let id = peer.request("tools/call").await;
    peer.request("tools/call").await;
    peer.send_text(&START.replace("ID", &id.to_string())).await;
    let taken = peer.flood(GIBIBYTE).await;
    let most = 8 * LIMIT + 2 * MEBIBYTE;
    assert!((8 * LIMIT..most).contains(&taken), "{taken} bytes were taken");
    let kind = |call: Result<_, mcp_client::ClientError>| call.expect_err("none is answered").to_string();
    assert_eq!(
        kind(refused.await.unwrap()),
        format!("the answer is larger than {LIMIT} bytes")
    );
    let told = kind(other.await.unwrap());
    assert!(told.contains("an endless line"), "{told}");
    assert!(connection.is_closed());
    let grown = resident_peak() - before;
    assert!(grown < MEMORY, "memory grew by {grown} bytes");
}

/// Head of an answer in one of the framings of HTTP, and the block that is repeated after it.
fn body(kind: &str) -> (String, Vec<u8>) {
    let text = "x".repeat(64 * 1024);
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let json = "content-type: application/json\r\n";
    let (head, start, block) = match kind {
        "announced" => (
            format!("{json}content-length: {GIBIBYTE}\r\n"),
            START.to_owned(),
            text,
        ),
        "until the end" => (format!("{json}connection: close\r\n"), START.to_owned(), text),
        // Without the id, whose length would change that of the chunk: the body is refused before anyone reads the id.
        "chunked" => (
            format!("{json}transfer-encoding: chunked\r\n"),
            chunk("{\"jsonrpc\":\"2.0\",\"result\":\""),
            chunk(&text),
        ),
        "one event" => (
            "content-type: text/event-stream\r\nconnection: close\r\n".to_owned(),
            format!("data: {START}"),
            text,
        ),
        _ => (
            "content-type: text/event-stream\r\nconnection: close\r\n".to_owned(),
            format!("data: {START}\n"),
            format!("data: {text}\n"),
        ),
    };
    (
        format!("HTTP/1.1 200 OK\r\n{head}\r\n{start}"),
        block.into_bytes(),
    )
}

#[tokio::test]
async fn a_body_is_left_when_it_is_too_long() {
    let before = resident_peak();
    for era in [Era::Legacy, Era::Modern] {
        for kind in [
            "announced",
            "until the end",
            "chunked",
            "one event",
            "one event of lines",
        ] {
            let (taken, mut told) = mpsc::unbounded_channel();
            let (_server, connection) = serving_in(era, move |seen| {
                let (start, block) = body(kind);
                Reply::Flood(Flood {
                    start: about(seen, &start),
                    block,
                    size: GIBIBYTE,
                    taken: taken.clone(),
                })
            })
            .await;
            let error = http::call(&connection, within(60)).await.unwrap_err();
            assert!(
                matches!(error.kind(), ClientErrorKind::TooLarge { limit: LIMIT, .. }),
                "{kind}: {error}"
            );
            let taken = timeout(PATIENCE, told.recv()).await.unwrap().unwrap();
            assert!(taken <= LIMIT + UNDER_WAY, "{kind}: {taken} bytes were taken");
            // Another call uses another connection.
            let fine = http::call(&connection, within(60)).await.unwrap();
            assert_eq!(fine.as_str(), r#"{"fine":1e2}"#, "{kind}");
        }
    }
    let grown = resident_peak() - before;
    assert!(grown < MEMORY, "memory grew by {grown} bytes");
}
