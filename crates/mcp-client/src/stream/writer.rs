use std::{sync::Arc, time::Duration};

use tokio::{io::AsyncWriteExt as _, time::timeout};

use super::{
    outbox::{Outbox, Outgoing, Sink},
    shared::{CloseOnPanic, Shared},
};
use crate::{ClientError, process::Stop};

/// Maximum size of a write that combines frames, in bytes.
pub(super) const BATCH_BYTES: usize = 64 * 1024;

/// Writes queued frames until the connection closes, and then closes the stream, which signals the end to the server.
pub(super) async fn run(outbox: Arc<Outbox>, shared: Arc<Shared>, stall: Duration) {
    let _guard = CloseOnPanic(Arc::clone(&shared));
    let mut writer = Writer {
        sink: None,
        buffer: Vec::new(),
        stall,
    };
    let failed = tokio::select! {
        biased;
        () = shared.closed() => None,
        error = writer.pump(&outbox, &shared) => Some(error),
    };
    let idle = outbox.close();
    let Some(error) = failed else {
        // Shutdown writes no more messages, but a socket or TLS needs a closing step that dropping omits.
        if let Some(mut sink) = writer.sink.or(idle) {
            let _ = timeout(stall, sink.shutdown()).await;
        }
        return;
    };
    let stop = if error.is_stalled {
        Stop::Now
    } else {
        Stop::Orderly
    };
    // A broken pipe means that the server has ended: its exit status is about to be known, and says more.
    let reason = match shared.process() {
        Some(process) if !error.is_stalled => process.exit_description().await,
        _ => error.reason,
    };
    shared.close(ClientError::closed(reason), stop);
}

struct Writer {
    /// Stream while this task has something to write.
    sink: Option<Sink>,
    buffer: Vec<u8>,
    stall: Duration,
}

struct WriteError {
    reason: String,
    is_stalled: bool,
}

impl Writer {
    /// Writes until an error occurs.
    async fn pump(&mut self, outbox: &Outbox, shared: &Shared) -> WriteError {
        let mut batch = Vec::new();
        loop {
            let unwritten = outbox.next_batch(&mut self.sink, &mut batch).await;
            let done = match unwritten {
                Some(unwritten) => self.write(&unwritten).await,
                None => Ok(()),
            };
            let done = match done {
                Ok(()) => self.write_batch(&mut batch, shared).await,
                failed => failed,
            };
            if let Err(error) = done {
                return error;
            }
        }
    }

    async fn write_batch(&mut self, batch: &mut Vec<Outgoing>, shared: &Shared) -> Result<(), WriteError> {
        for outgoing in batch.drain(..) {
            let (id, frame) = match outgoing {
                Outgoing::Call(call) => (call.id, call.begin_send()),
                Outgoing::Frame(frame) => (0, Some(frame)),
            };
            let Some(frame) = frame else { continue };
            shared.set_last_written(id);
            if self.buffer.len() + frame.len() > BATCH_BYTES {
                self.flush().await?;
            }
            // A large frame is not copied.
            if frame.len() > BATCH_BYTES {
                self.write(&frame).await?;
            } else if self.buffer.is_empty() {
                self.buffer = frame;
            } else {
                self.buffer.extend_from_slice(&frame);
            }
        }
        self.flush().await
    }

    /// Writes the combined frames.
    async fn flush(&mut self) -> Result<(), WriteError> {
        let buffer = std::mem::take(&mut self.buffer);
        match buffer[..] {
            [] => Ok(()),
            _ => self.write(&buffer).await,
        }
    }

    /// Writes all bytes. Each progress resets the stall timeout.
    async fn write(&mut self, mut bytes: &[u8]) -> Result<(), WriteError> {
        let is_stalled = || WriteError {
            reason: "the server stopped reading its input".to_owned(),
            is_stalled: true,
        };
        let failed = |error: std::io::Error| WriteError {
            reason: format!("cannot write to the server: {error}"),
            is_stalled: false,
        };
        let Some(sink) = &mut self.sink else {
            return Ok(());
        };
        while !bytes.is_empty() {
            let step = timeout(self.stall, sink.write(bytes)).await;
            match step.map_err(|_| is_stalled())?.map_err(failed)? {
                0 => return Err(failed(std::io::ErrorKind::WriteZero.into())),
                length => bytes = &bytes[length..],
            }
        }
        timeout(self.stall, sink.flush())
            .await
            .map_err(|_| is_stalled())?
            .map_err(failed)
    }
}
