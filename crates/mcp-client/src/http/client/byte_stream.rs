//! Byte stream of an HTTP connection, and the progress of the request on it.

use std::{
    convert::Infallible,
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use rustix::{
    io::Errno,
    net::{RecvFlags, recv},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// Maximum size of an answer's head including interim answers, in bytes. A connection keeps a buffer of up to this size
/// while it is idle.
pub(super) const MAX_HEAD: usize = 16 * 1024;

/// Progress of one exchange, shared by the parts of a connection that observe it. All of them belong to one task at a
/// time.
#[derive(Debug, Default)]
pub(super) struct ExchangeProgress {
    /// Set when the first byte of the request was sent.
    has_begun: AtomicBool,
    /// Set when hyper has taken the whole body.
    is_taken: AtomicBool,
    /// Set when the whole request was sent.
    is_sent: AtomicBool,
    /// Set to drop the rest of the request.
    is_abandoned: AtomicBool,
    /// Set when the head of the answer was read.
    has_head: AtomicBool,
    /// Number of received bytes.
    n_received: AtomicUsize,
}

impl ExchangeProgress {
    /// Resets the progress for the next exchange.
    pub(super) fn reset(&self) {
        let Self {
            has_begun,
            is_taken,
            is_sent,
            is_abandoned,
            has_head,
            n_received,
        } = self;
        for flag in [has_begun, is_taken, is_sent, is_abandoned, has_head] {
            flag.store(false, Relaxed);
        }
        n_received.store(0, Relaxed);
    }

    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Relaxed)
    }

    pub(super) fn is_sent(&self) -> bool {
        self.is_sent.load(Relaxed)
    }

    pub(super) fn has_received(&self) -> bool {
        self.n_received.load(Relaxed) > 0
    }

    /// Records that the head of the answer was read.
    pub(super) fn set_head_read(&self) {
        self.has_head.store(true, Relaxed);
    }

    /// Drops the unsent rest of the request.
    pub(super) fn abandon(&self) {
        self.is_abandoned.store(true, Relaxed);
    }
}

/// TCP socket that detects received bytes even if the reactor has not run.
///
/// Before the first byte of a request is sent, it asks the kernel whether the server has closed the connection or sent
/// something unsolicited. tokio also reports "pending" if the task has used up its coop budget, or if the reactor has
/// not run since bytes arrived. A request sent in this state would be lost, or matched with an unrelated answer.
#[derive(Debug)]
pub(super) struct CheckedSocket {
    stream: TcpStream,
    progress: Arc<ExchangeProgress>,
}

impl CheckedSocket {
    pub(super) fn new(stream: TcpStream, progress: Arc<ExchangeProgress>) -> Self {
        Self { stream, progress }
    }
}

impl AsyncRead for CheckedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.progress.has_begun() {
            let mut piece = [0; 512];
            let room = buf.remaining().min(piece.len());
            match recv(&self.stream, &mut piece[..room], RecvFlags::DONTWAIT) {
                Ok((_, n_read)) => {
                    buf.put_slice(&piece[..n_read]);
                    return Poll::Ready(Ok(()));
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for CheckedSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Bidirectional byte stream: a socket, or TLS over one.
pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// Stream as hyper uses it, which records the progress of the exchange.
pub(super) struct TrackedStream {
    pub(super) stream: Box<dyn ByteStream>,
    pub(super) progress: Arc<ExchangeProgress>,
}

impl TrackedStream {
    /// Writes, unless the rest of the request is to be dropped.
    fn write(
        &mut self,
        length: usize,
        write: impl FnOnce(Pin<&mut dyn ByteStream>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if self.progress.is_abandoned.load(Relaxed) {
            return Poll::Ready(Ok(length));
        }
        let n_written = ready!(write(Pin::new(&mut *self.stream)))?;
        if n_written > 0 {
            self.progress.has_begun.store(true, Relaxed);
        }
        Poll::Ready(Ok(n_written))
    }
}

impl AsyncRead for TrackedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let n_received = self.progress.n_received.load(Relaxed);
        if n_received >= MAX_HEAD && !self.progress.has_head.load(Relaxed) {
            let text = "head larger than 16 KiB";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, text)));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut *self.stream).poll_read(cx, buf))?;
        let n_read = buf.filled().len() - before;
        self.progress.n_received.store(n_received + n_read, Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TrackedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.write(bytes.len(), |stream| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = slices.iter().map(|slice| slice.len()).sum();
        self.write(length, |stream| stream.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut *self.stream).poll_flush(cx))?;
        // hyper flushes the stream when its own buffer is empty.
        if self.progress.is_taken.load(Relaxed) && self.progress.has_begun() {
            self.progress.is_sent.store(true, Relaxed);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_shutdown(cx)
    }
}

/// Request body in one piece, which records when hyper has taken it.
#[derive(Debug)]
pub(super) struct RequestBody {
    body: Full<Bytes>,
    progress: Arc<ExchangeProgress>,
}

impl RequestBody {
    pub(super) fn new(body: Bytes, progress: Arc<ExchangeProgress>) -> Self {
        progress.is_taken.store(body.is_empty(), Relaxed);
        let body = Full::new(body);
        Self { body, progress }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.progress.is_taken.store(true, Relaxed);
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
