use std::{sync::Arc, time::Duration};

use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::mpsc,
    time::timeout,
};

use super::{
    call::Call,
    shared::{CloseOnPanic, Shared},
};
use crate::{Error, process::Stop};

/// What waits to be written.
pub(super) enum Outgoing {
    /// A request, unless its caller has left by then.
    Call(Arc<Call>),
    /// Anything else.
    Frame(Vec<u8>),
}

/// How many frames are put into one write at most, and how large it may grow by that.
const BATCH: usize = 64;
const BATCH_BYTES: usize = 64 * 1024;

/// Writes what is queued until the connection closes, and then closes the stream, which tells the server.
pub(super) async fn run(
    writer: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<Outgoing>,
    shared: Arc<Shared>,
    stall: Duration,
) {
    let _guard = CloseOnPanic(Arc::clone(&shared));
    let mut writing = Writing {
        writer,
        buffer: Vec::new(),
        stall,
    };
    let done = tokio::select! {
        biased;
        () = shared.closed() => Ok(()),
        done = writing.pump(&mut queue, &shared) => done,
    };
    let Err(error) = done else {
        // Closing writes nothing more, but over a socket or TLS it takes a step that dropping does not take.
        let _ = timeout(stall, writing.writer.shutdown()).await;
        return;
    };
    let stop = if error.stuck { Stop::Now } else { Stop::Orderly };
    // A broken pipe means that the server has ended: how it did is about to be known, and says more.
    let reason = match shared.process() {
        Some(process) if !error.stuck => process.epitaph().await,
        _ => error.reason,
    };
    shared.close(Error::closed(reason), stop);
}

struct Writing<W> {
    writer: W,
    buffer: Vec<u8>,
    stall: Duration,
}

struct WriteError {
    reason: String,
    stuck: bool,
}

impl<W: AsyncWrite + Unpin> Writing<W> {
    async fn pump(
        &mut self,
        queue: &mut mpsc::Receiver<Outgoing>,
        shared: &Shared,
    ) -> Result<(), WriteError> {
        let mut batch = Vec::with_capacity(BATCH);
        while queue.recv_many(&mut batch, BATCH).await > 0 {
            for outgoing in batch.drain(..) {
                let (id, frame) = match outgoing {
                    Outgoing::Call(call) => (call.id, call.begin_send()),
                    Outgoing::Frame(frame) => (0, Some(frame)),
                };
                let Some(frame) = frame else { continue };
                shared.note_written(id);
                if self.buffer.len() + frame.len() > BATCH_BYTES {
                    self.flush().await?;
                }
                // A large frame is not copied.
                if frame.len() > BATCH_BYTES {
                    self.write(&frame).await?;
                } else {
                    self.buffer.extend_from_slice(&frame);
                }
            }
            self.flush().await?;
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), WriteError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let done = self.write(&buffer).await;
        buffer.clear();
        self.buffer = buffer;
        done
    }

    /// Writes everything; each step forward gives the server new time.
    async fn write(&mut self, mut bytes: &[u8]) -> Result<(), WriteError> {
        let stuck = || WriteError {
            reason: "the server stopped reading its input".to_owned(),
            stuck: true,
        };
        let failed = |error: std::io::Error| WriteError {
            reason: format!("cannot write to the server: {error}"),
            stuck: false,
        };
        while !bytes.is_empty() {
            let step = timeout(self.stall, self.writer.write(bytes)).await;
            match step.map_err(|_| stuck())?.map_err(failed)? {
                0 => return Err(failed(std::io::ErrorKind::WriteZero.into())),
                length => bytes = &bytes[length..],
            }
        }
        timeout(self.stall, self.writer.flush())
            .await
            .map_err(|_| stuck())?
            .map_err(failed)
    }
}
