//! Clients of HTTP+SSE: one stream for all messages of the server, and a POST for each message of the client. A connection is
//! that of stdio, with the stream as its output and the POSTs as its input.

use std::{
    collections::HashMap,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use mcp_wire::{Line, LineDecoder, sse_event};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, DuplexStream, ReadBuf, duplex},
    sync::{Semaphore, mpsc},
    task::AbortHandle,
};

use crate::{
    Principal, Service, StdioOptions,
    protocol::Core,
    stdio::{SessionInfo, serve_connection},
    streamable_http::session::random_id,
};

/// Clients of HTTP+SSE, each with an open stream.
#[derive(Debug)]
pub(in crate::streamable_http) struct SseClients {
    by_id: Mutex<HashMap<Arc<str>, Arc<SseClient>>>,
    max: usize,
    /// Closed when the connections are to end. It never has permits.
    ending: Arc<Semaphore>,
}

/// Input of one client.
#[derive(Debug)]
pub(in crate::streamable_http) struct SseClient {
    principal: Principal,
    session: Arc<SessionInfo>,
    /// Channel of whole lines, so that a POST that breaks off leaves no part of one.
    input: mpsc::Sender<Bytes>,
}

/// Stream of one client, whose connection ends with it.
#[derive(Debug)]
pub(in crate::streamable_http) struct SseStream {
    id: Arc<str>,
    clients: Arc<SseClients>,
    /// First event, until it is sent.
    first: Option<Bytes>,
    output: DuplexStream,
    decoder: LineDecoder,
    connection: AbortHandle,
}

/// Reader of the lines of a client.
struct LineReader {
    lines: mpsc::Receiver<Bytes>,
    /// Unread rest of the last line.
    rest: Bytes,
}

/// Maximum number of bytes that wait between a connection and its stream.
const PIPE: usize = 64 * 1024;
/// Maximum number of messages of a client that wait for its connection.
const LINES: usize = 8;

impl SseClients {
    pub(in crate::streamable_http) fn new(max: usize) -> Self {
        Self {
            by_id: Mutex::default(),
            max,
            ending: Arc::new(Semaphore::new(0)),
        }
    }

    /// Opens a connection. Returns `None` if there is no room for it, or the server stops.
    pub(in crate::streamable_http) fn open<S: Service>(
        self: &Arc<Self>,
        core: Arc<Core<S>>,
        options: StdioOptions,
        path: &str,
    ) -> Option<SseStream> {
        let id = random_id()?;
        let (output, writer) = duplex(PIPE);
        let (input, lines) = mpsc::channel(LINES);
        let reader = LineReader {
            lines,
            rest: Bytes::new(),
        };
        let session = Arc::new(SessionInfo::new(Arc::clone(&id), options.principal.clone()));
        let client = SseClient {
            principal: options.principal.clone(),
            session: Arc::clone(&session),
            input,
        };
        {
            let mut by_id = self.by_id.lock();
            if by_id.len() >= self.max || self.ending.is_closed() {
                return None;
            }
            by_id.insert(Arc::clone(&id), Arc::new(client));
        }
        let ending = Arc::clone(&self.ending);
        let shutdown = async move {
            // Fails when the server stops; there never is a permit.
            let _ = ending.acquire().await;
        };
        let connection = tokio::spawn(async move {
            // Fails if the stream was lost, which nobody needs to know.
            let _ = serve_connection(core, Some(session), reader, writer, options, shutdown).await;
        });
        let endpoint = format!("{path}?session={id}");
        Some(SseStream {
            id,
            clients: Arc::clone(self),
            first: Some(sse_event(endpoint.as_bytes(), Some("endpoint"), None).into()),
            output,
            decoder: LineDecoder::new(usize::MAX),
            connection: connection.abort_handle(),
        })
    }

    /// Returns the client with this id, if it belongs to this principal, whose claims its messages have from now on.
    pub(in crate::streamable_http) fn get(&self, id: &str, principal: &Principal) -> Option<Arc<SseClient>> {
        let client = self.by_id.lock().get(id).cloned();
        let client = client.filter(|client| client.principal == *principal)?;
        client.session.set_claims(principal);
        Some(client)
    }

    /// Ends all connections once their requests are answered, and opens no more.
    pub(in crate::streamable_http) fn end(&self) {
        self.ending.close();
    }
}

impl SseClient {
    /// Returns `true` if the client may send batches.
    pub(in crate::streamable_http) fn accepts_batches(&self) -> bool {
        self.session.accepts_batches()
    }

    /// Hands a message to the connection. Returns `false` if the connection has ended.
    pub(in crate::streamable_http) async fn send(&self, message: &[u8]) -> bool {
        let line = mcp_wire::into_line(message.to_vec());
        self.input.send(line).await.is_ok()
    }
}

impl AsyncRead for LineReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.rest.is_empty() {
            // No line follows once the client is gone.
            self.rest = ready!(self.lines.poll_recv(cx)).unwrap_or_default();
        }
        let length = self.rest.len().min(buffer.remaining());
        buffer.put_slice(&self.rest.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl SseStream {
    /// Returns the next event, or `None` once the connection has ended.
    pub(in crate::streamable_http) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        loop {
            if let Some(Line::Complete(line)) = self.decoder.next_line() {
                return Poll::Ready(Some(sse_event(&line, Some("message"), None).into()));
            }
            let mut space = [0; 8 * 1024];
            let mut buffer = ReadBuf::new(&mut space);
            let read = ready!(Pin::new(&mut self.output).poll_read(cx, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                return Poll::Ready(None);
            }
            let into: &mut BytesMut = self.decoder.buffer();
            into.extend_from_slice(buffer.filled());
        }
    }
}

impl Drop for SseStream {
    fn drop(&mut self) {
        self.clients.by_id.lock().remove(&self.id);
        // Without its stream no request can be answered.
        self.connection.abort();
    }
}
