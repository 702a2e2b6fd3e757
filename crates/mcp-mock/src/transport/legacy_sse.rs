//! HTTP+SSE, the transport of 2024-11-05: a connection as over stdio, with posts in one direction and events of a
//! stream in the other.

use std::{
    collections::HashMap,
    future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use mcp_wire::{Line, LineDecoder, sse_event};
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split},
    sync::Mutex as AsyncMutex,
};

use crate::{server::state::State, transport::stdio};

/// Path of the stream.
pub(crate) const PATH: &str = "/sse";
/// Size of a client's buffer, in bytes.
const BUFFER: usize = 64 * 1024;

type Writer = Arc<AsyncMutex<WriteHalf<DuplexStream>>>;
pub(crate) type Events = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// The open streams.
#[derive(Debug, Default)]
pub(crate) struct SseClients {
    last: AtomicU64,
    writers: Mutex<HashMap<String, Writer>>,
}

impl SseClients {
    /// Opens a stream and returns its events.
    pub(crate) fn open(self: &Arc<Self>, state: Arc<State>) -> Events {
        let id = self.last.fetch_add(1, Ordering::Relaxed).to_string();
        let (ours, theirs) = duplex(BUFFER);
        let (from_server, to_server) = split(ours);
        self.lock()
            .insert(id.clone(), Arc::new(AsyncMutex::new(to_server)));
        let endpoint = sse_event(format!("{PATH}?session={id}").as_bytes(), Some("endpoint"), None);
        let client = SseClient {
            id,
            clients: Arc::clone(self),
            from_server,
            lines: LineDecoder::new(stdio::MAX_MESSAGE),
        };
        tokio::spawn(async move {
            let (reader, writer) = split(theirs);
            // An error means that the client is gone, which ends the connection.
            let _ = stdio::serve(state, reader, writer, future::pending()).await;
        });
        let told = stream::unfold(client, async |mut client: SseClient| {
            let event = client.next().await?;
            Some((event, client))
        });
        Box::pin(stream::iter([Bytes::from(endpoint)]).chain(told))
    }

    /// Forwards a posted message. Returns `false` if there is no such stream.
    pub(crate) async fn post(&self, id: &str, message: &[u8]) -> bool {
        let Some(writer) = self.lock().get(id).cloned() else {
            return false;
        };
        let mut writer = writer.lock().await;
        let line = [message, b"\n"].concat();
        writer.write_all(&line).await.is_ok()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Writer>> {
        self.writers.lock()
    }
}

/// The stream of one client. Dropping it ends the connection.
struct SseClient {
    id: String,
    clients: Arc<SseClients>,
    from_server: ReadHalf<DuplexStream>,
    lines: LineDecoder,
}

impl SseClient {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(Line::Complete(line)) = self.lines.next_line() {
                return Some(sse_event(&line, Some("message"), None).into());
            }
            // An incomplete line is no event.
            if self.from_server.read_buf(self.lines.buffer()).await.ok()? == 0 {
                return None;
            }
        }
    }
}

impl Drop for SseClient {
    fn drop(&mut self) {
        self.clients.lock().remove(&self.id);
    }
}
