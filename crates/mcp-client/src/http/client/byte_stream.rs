//! The byte stream of a connection, and how far the request on it has come.

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

/// Maximum size of what comes before the end of the head of an answer, interim answers included, in bytes. A connection keeps a
/// buffer of up to this size while it waits for a request.
pub(super) const MAX_HEAD: usize = 16 * 1024;

/// Progress of one exchange. The parts of a connection that each see a piece of it share it; all of them belong to one task
/// at a time.
#[derive(Debug, Default)]
pub(super) struct ExchangeProgress {
    /// Set when the first byte of the request has left.
    has_begun: AtomicBool,
    /// Set when hyper has taken the whole body.
    is_taken: AtomicBool,
    /// Set when the whole request has left.
    is_sent: AtomicBool,
    /// Set to drop the rest of the request.
    is_abandoned: AtomicBool,
    /// Set when the head of the answer has been read.
    has_head: AtomicBool,
    /// Number of bytes that were received.
    n_received: AtomicUsize,
}

impl ExchangeProgress {
    /// Starts again, for the next exchange.
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

    /// Notes that the head of the answer has been read.
    pub(super) fn note_head(&self) {
        self.has_head.store(true, Relaxed);
    }

    /// Drops what has not left yet instead of sending it.
    pub(super) fn abandon(&self) {
        self.is_abandoned.store(true, Relaxed);
    }
}

/// A TCP connection that sees what has come although the reactor has not run.
///
/// Before a byte of a request leaves, the kernel is asked whether the server has closed the connection or said something
/// unasked. tokio says "nothing there" also when the task has used up its budget, or when the reactor has not run since
/// something came. A request that is sent all the same would be lost, or be given the answer to nothing.
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

/// A stream of bytes in both directions: a socket, or TLS over one.
pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// The stream as hyper uses it. It notes the progress of the exchange.
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
            let text = "its head is larger than 16 KiB";
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

/// Body of a request, in one piece. Records when hyper has taken it.
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
