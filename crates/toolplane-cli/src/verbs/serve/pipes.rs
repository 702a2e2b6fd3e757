//! stdin and stdout without helper threads.
//!
//! tokio's own stdin and stdout pass every read and write to another thread, since they may be anything. MCP clients
//! pass a pipe or a socket, for which the reactor can wait: a call saves two thread switches. Files and terminals still
//! use tokio's.

use std::{
    io::{self, IoSlice},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream as StdUnixStream,
    },
    pin::Pin,
    task::{Context, Poll},
};

use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{
        UnixStream,
        unix::pipe::{Receiver, Sender},
    },
};

/// Returns the reader of requests.
pub(in crate::verbs) fn stdin() -> Box<dyn AsyncRead + Send + Unpin> {
    match ready(&io::stdin(), Receiver::from_owned_fd) {
        Ok(Stream::Pipe(pipe)) => Box::new(pipe),
        Ok(Stream::Socket(socket)) => Box::new(socket),
        Err(error) => {
            tracing::debug!(%error, "stdin is read by a thread of its own");
            Box::new(tokio::io::stdin())
        }
    }
}

/// Returns the writer of answers.
pub(in crate::verbs) fn stdout() -> Box<dyn AsyncWrite + Send + Unpin> {
    match ready(&io::stdout(), Sender::from_owned_fd) {
        Ok(Stream::Pipe(pipe)) => Box::new(pipe),
        Ok(Stream::Socket(socket)) => Box::new(socket),
        Err(error) => {
            tracing::debug!(%error, "stdout is written by a thread of its own");
            Box::new(tokio::io::stdout())
        }
    }
}

enum Stream<P> {
    Pipe(RestoringStream<P>),
    Socket(RestoringStream<UnixStream>),
}

/// Registers a descriptor with the reactor, if it is a pipe or a socket.
fn ready<P>(standard: &impl AsFd, pipe: impl FnOnce(OwnedFd) -> io::Result<P>) -> io::Result<Stream<P>> {
    let descriptor = standard.as_fd().try_clone_to_owned()?;
    let kept = descriptor.try_clone()?;
    let restore = |flags| RestoreMode {
        descriptor: kept,
        flags,
    };
    let flags = fcntl_getfl(&descriptor)?;
    match FileType::from_raw_mode(fstat(&descriptor)?.st_mode) {
        FileType::Fifo => Ok(Stream::Pipe(RestoringStream {
            inner: pipe(descriptor)?,
            _restore: restore(flags),
        })),
        FileType::Socket => {
            let socket = StdUnixStream::from(descriptor);
            socket.set_nonblocking(true)?;
            Ok(Stream::Socket(RestoringStream {
                inner: UnixStream::from_std(socket)?,
                _restore: restore(flags),
            }))
        }
        _ => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "it is neither a pipe nor a socket",
        )),
    }
}

/// A stream that restores the mode of its descriptor when dropped.
struct RestoringStream<T> {
    inner: T,
    _restore: RestoreMode,
}

/// Guard that restores the flags of a descriptor. They belong to the pipe, which other processes share.
struct RestoreMode {
    descriptor: OwnedFd,
    flags: OFlags,
}

impl Drop for RestoreMode {
    fn drop(&mut self) {
        // A failure cannot be reported.
        let _ = fcntl_setfl(&self.descriptor, self.flags);
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for RestoringStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for RestoringStream<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}
