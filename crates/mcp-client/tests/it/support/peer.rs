//! Other end of an in-memory connection, played by a test.

use std::{
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use mcp_client::{ClientError, Connection, ConnectionOptions, EraChoice, RequestOptions};
use raw_json::RawJson;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf},
    task::JoinHandle,
};

use crate::stdio::writing::Counted;

/// Server whose every message is written by the test.
pub(crate) struct Peer {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

pub(crate) const OPENED: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"peer","version":"1"}}"#;

pub(crate) const DISCOVERED: &str =
    r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}"#;

impl Peer {
    /// Next message of the client.
    pub(crate) async fn next(&mut self) -> Value {
        let line = self
            .lines
            .next_line()
            .await
            .unwrap()
            .expect("the client closed the connection");
        serde_json::from_str(&line).unwrap()
    }

    /// Next message of the client, or `None` if it has closed the connection.
    pub(crate) async fn next_or_end(&mut self) -> Option<Value> {
        let line = self.lines.next_line().await.ok().flatten()?;
        Some(serde_json::from_str(&line).unwrap())
    }

    /// Sends `size` bytes of a line, as far as the client accepts them. Returns their number.
    #[cfg(feature = "http")]
    pub(crate) async fn flood(&mut self, size: usize) -> usize {
        let block = [b'x'; 64 * 1024];
        let mut left = size;
        while left > 0 {
            match self.writer.write(&block[..left.min(block.len())]).await {
                Ok(taken @ 1..) => left -= taken,
                _ => break,
            }
        }
        size - left
    }

    /// Sends text that is not a complete line.
    pub(crate) async fn send_text(&mut self, text: &str) {
        self.writer.write_all(text.as_bytes()).await.unwrap();
    }

    /// Next message, which must be a request of this method. Returns its id.
    pub(crate) async fn request(&mut self, method: &str) -> u64 {
        let message = self.next().await;
        assert_eq!(message["method"], method, "{message}");
        message["id"].as_u64().unwrap()
    }

    /// Next message, which must be this notification. Returns its params.
    pub(crate) async fn notification(&mut self, method: &str) -> Value {
        let message = self.next().await;
        assert_eq!(
            (&message["method"], &message["id"]),
            (&Value::from(method), &Value::Null),
            "{message}"
        );
        message["params"].clone()
    }

    pub(crate) async fn send(&mut self, line: impl AsRef<[u8]>) {
        self.writer.write_all(line.as_ref()).await.unwrap();
        self.writer.write_all(b"\n").await.unwrap();
    }

    pub(crate) async fn answer(&mut self, id: u64, result: &str) {
        self.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
            .await;
    }

    /// Answers the next tool call, which shows that the connection still works.
    pub(crate) async fn serve_one(&mut self) {
        let id = self.request("tools/call").await;
        self.answer(id, r#"{"fine":true}"#).await;
    }
}

/// Connects to a peer after the handshake.
pub(crate) async fn connect() -> (Connection, Peer) {
    connect_with(ConnectionOptions::default(), 64 * 1024).await
}

pub(crate) async fn connect_with(options: ConnectionOptions, buffer: usize) -> (Connection, Peer) {
    let (ours, peer) = pair(buffer);
    let (reader, writer) = tokio::io::split(ours);
    opened(Connection::from_streams(reader, writer, options), peer).await
}

/// Connects with a counter of writes.
pub(crate) async fn connect_counted() -> (Connection, Peer, Arc<AtomicUsize>) {
    let (ours, peer) = pair(64 * 1024);
    let (reader, inner) = tokio::io::split(ours);
    let n_writes = Arc::<AtomicUsize>::default();
    let writer = Counted {
        inner,
        n_writes: Arc::clone(&n_writes),
    };
    let (connection, peer) = opened(
        Connection::from_streams(reader, writer, ConnectionOptions::default()),
        peer,
    )
    .await;
    (connection, peer, n_writes)
}

/// Completes the handshake.
async fn opened(
    opening: impl Future<Output = Result<Connection, ClientError>>,
    mut peer: Peer,
) -> (Connection, Peer) {
    let (connection, peer) = tokio::join!(opening, async {
        let id = peer.request("initialize").await;
        peer.answer(id, OPENED).await;
        peer.notification("notifications/initialized").await;
        peer
    });
    (connection.unwrap(), peer)
}

/// Connects to a modern peer without change notifications.
pub(crate) async fn connect_modern(options: ConnectionOptions) -> (Connection, Peer) {
    let options = options.era(EraChoice::Modern);
    let (ours, mut peer) = pair(64 * 1024);
    let (reader, writer) = tokio::io::split(ours);
    let (connection, peer) = tokio::join!(Connection::from_streams(reader, writer, options), async {
        let id = peer.request("server/discover").await;
        peer.answer(id, DISCOVERED).await;
        peer
    });
    (connection.unwrap(), peer)
}

pub(crate) fn pair(buffer: usize) -> (DuplexStream, Peer) {
    let (ours, theirs) = tokio::io::duplex(buffer);
    let (reader, writer) = tokio::io::split(theirs);
    (
        ours,
        Peer {
            lines: BufReader::new(reader).lines(),
            writer,
        },
    )
}

pub(crate) fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).unwrap()
}

pub(crate) fn within(seconds: u64) -> RequestOptions {
    RequestOptions::with_timeout(Duration::from_secs(seconds))
}

/// Starts a call in a task of its own.
pub(crate) fn call(
    connection: &Connection,
    options: RequestOptions,
) -> JoinHandle<Result<RawJson, ClientError>> {
    let connection = connection.clone();
    tokio::spawn(async move {
        connection
            .request("tools/call", Some(raw(r#"{"name":"t"}"#)), options)
            .await
    })
}

/// Shows that the connection still works.
pub(crate) async fn works(connection: &Connection, peer: &mut Peer) {
    let (result, ()) = tokio::join!(call(connection, within(5)), peer.serve_one());
    assert_eq!(result.unwrap().unwrap().as_str(), r#"{"fine":true}"#);
}

/// Shows that no message of an error's chain contains another one.
#[cfg(feature = "stdio")]
pub(crate) fn says_each_thing_once(error: &ClientError) {
    let chain = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    let said: Vec<String> = chain.map(ToString::to_string).collect();
    for (place, text) in said.iter().enumerate() {
        let is_new = |other: &String| !other.contains(text.as_str());
        assert!(said[..place].iter().all(is_new), "{said:?}");
    }
}
