use std::{
    io::{self, IoSlice},
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use tokio::{io::AsyncWrite as _, net::TcpStream};

use super::framing::COPIED;

/// A request as it is written.
#[derive(Default)]
pub(super) struct Request {
    /// And the body, if it is small.
    head: Vec<u8>,
    body: Bytes,
    length: usize,
}

/// A request, as far as it has left. It holds nothing once all of it has: an answer may take long.
#[derive(Default)]
pub(super) struct Sending {
    request: Request,
    n_sent: usize,
    /// Why no more of it leaves.
    failed: Option<io::Error>,
}

impl Request {
    pub(super) fn new(mut head: Vec<u8>, mut body: Bytes) -> Self {
        let length = head.len() + body.len();
        if body.len() <= COPIED {
            head.extend_from_slice(&body);
            body = Bytes::new();
        }
        Self { head, body, length }
    }
}

impl Sending {
    pub(super) fn new(request: Request) -> Self {
        Self {
            request,
            n_sent: 0,
            failed: None,
        }
    }

    /// Whether all of it has left.
    pub(super) fn is_over(&self) -> bool {
        self.n_sent == self.request.length
    }

    /// Whether not one byte of it has left.
    pub(super) fn is_unsent(&self) -> bool {
        self.n_sent == 0
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Why no more of it leaves, told once.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        self.failed
            .as_mut()
            .map(|error| mem::replace(error, io::ErrorKind::BrokenPipe.into()))
    }

    /// Writes no more of it.
    pub(super) fn give_up(&mut self) {
        if !self.is_over() {
            self.failed = Some(io::ErrorKind::Interrupted.into());
            (self.request.head, self.request.body) = (Vec::new(), Bytes::new());
        }
    }

    /// Gives back a request of which nothing has left, and tells why it could not be written.
    pub(super) fn into_failure(self, request: &mut Request) -> Option<io::Error> {
        *request = self.request;
        self.failed
    }

    /// Writes what the connection takes; ready when no more is to be written.
    pub(super) fn poll(&mut self, stream: &mut TcpStream, cx: &mut Context<'_>) -> Poll<()> {
        while !self.is_over() && self.failed.is_none() {
            let Request { head, body, .. } = &self.request;
            let rest = head.get(self.n_sent..).unwrap_or_default();
            let body = &body[self.n_sent.saturating_sub(head.len())..];
            let stream = Pin::new(&mut *stream);
            let written = if body.is_empty() {
                ready!(stream.poll_write(cx, rest))
            } else {
                ready!(stream.poll_write_vectored(cx, &[IoSlice::new(rest), IoSlice::new(body)]))
            };
            match written {
                Ok(0) => self.failed = Some(io::ErrorKind::WriteZero.into()),
                Ok(n) => self.n_sent += n,
                Err(error) => self.failed = Some(error),
            }
            if self.is_over() {
                (self.request.head, self.request.body) = (Vec::new(), Bytes::new());
            }
        }
        Poll::Ready(())
    }
}
