//! HTTP+SSE, the transport of 2024-11-05: one stream for all that the server says, and a POST for each message of the
//! client. A connection is that of stdio, with the stream in place of the output and the POSTs in place of the input.

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

use super::session::random_id;
use crate::{
    Principal, Service, StdioOptions,
    protocol::Core,
    stdio::{self, OldSession},
};

/// The clients of the old transport, each with a stream that is open.
#[derive(Debug)]
pub(super) struct OldClients {
    by_id: Mutex<HashMap<Arc<str>, Arc<OldClient>>>,
    max: usize,
    /// Closed when the connections are to end.
    ending: Arc<Semaphore>,
}

/// Where the messages of one client go.
#[derive(Debug)]
pub(super) struct OldClient {
    principal: Principal,
    session: Arc<OldSession>,
    /// Whole lines, so that a POST that breaks off leaves no part of one.
    input: mpsc::Sender<Bytes>,
}

/// The stream of one client: the connection ends with it.
#[derive(Debug)]
pub(super) struct OldStream {
    id: Arc<str>,
    clients: Arc<OldClients>,
    /// The first event, until it is sent.
    first: Option<Bytes>,
    output: DuplexStream,
    decoder: LineDecoder,
    connection: AbortHandle,
}

/// The lines of a client, as a connection reads them.
struct Input {
    lines: mpsc::Receiver<Bytes>,
    /// What was not read yet of the last line.
    rest: Bytes,
}

/// How much may wait between a connection and its stream.
const PIPE: usize = 64 * 1024;
/// How many messages of a client may wait for its connection.
const LINES: usize = 8;

impl OldClients {
    pub(super) fn new(max: usize) -> Self {
        Self {
            by_id: Mutex::default(),
            max,
            ending: Arc::new(Semaphore::new(0)),
        }
    }

    /// Opens a connection; nothing when there is no room for it, or the server stops.
    pub(super) fn open<S: Service>(
        self: &Arc<Self>,
        core: Arc<Core<S>>,
        options: StdioOptions,
        path: &str,
    ) -> Option<OldStream> {
        let id = random_id()?;
        let (output, writer) = duplex(PIPE);
        let (input, lines) = mpsc::channel(LINES);
        let reader = Input {
            lines,
            rest: Bytes::new(),
        };
        let session = Arc::new(OldSession::new(Arc::clone(&id)));
        let client = OldClient {
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
            // Nothing is ever to be had here: it fails when the server stops.
            let _ = ending.acquire().await;
        };
        let connection = tokio::spawn(async move {
            // It ends with an error when the stream was lost, which nobody needs to know.
            let _ = stdio::serve(core, Some(session), reader, writer, options, shutdown).await;
        });
        let endpoint = format!("{path}?session={id}");
        Some(OldStream {
            id,
            clients: Arc::clone(self),
            first: Some(sse_event(endpoint.as_bytes(), Some("endpoint"), None).into()),
            output,
            decoder: LineDecoder::new(usize::MAX),
            connection: connection.abort_handle(),
        })
    }

    /// The client with this id, if it is this principal's.
    pub(super) fn get(&self, id: &str, principal: &Principal) -> Option<Arc<OldClient>> {
        let client = self.by_id.lock().get(id).cloned();
        client.filter(|client| client.principal == *principal)
    }

    /// Lets every connection end once what is in flight is answered, and opens no more.
    pub(super) fn end(&self) {
        self.ending.close();
    }
}

impl OldClient {
    /// Whether it may send several messages in one array.
    pub(super) fn takes_batches(&self) -> bool {
        self.session.takes_batches()
    }

    /// Hands a message to the connection; tells whether it is still there.
    pub(super) async fn send(&self, message: &[u8]) -> bool {
        let line = mcp_wire::into_line(message.to_vec());
        self.input.send(line).await.is_ok()
    }
}

impl AsyncRead for Input {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.rest.is_empty() {
            // There is nothing more when the client is gone.
            self.rest = ready!(self.lines.poll_recv(cx)).unwrap_or_default();
        }
        let length = self.rest.len().min(buffer.remaining());
        buffer.put_slice(&self.rest.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl OldStream {
    /// The next event; nothing when the connection has ended.
    pub(super) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
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

impl Drop for OldStream {
    fn drop(&mut self) {
        self.clients.by_id.lock().remove(&self.id);
        // Without its stream nothing can be answered.
        self.connection.abort();
    }
}
