//! One HTTP/1.1 connection over TCP, driven by whoever waits for its answer.
//!
//! It has no buffer while nothing comes: what is read goes over the stack into memory of the size that is needed.

use std::{
    future::{Future as _, poll_fn},
    io::{self, IoSlice},
    pin::{Pin, pin},
    task::{Context, Poll, Waker, ready},
};

use bytes::{Bytes, BytesMut};
use http::Method;
use tokio::{
    io::{AsyncReadExt as _, AsyncWrite as _},
    net::TcpStream,
    runtime::{self, Handle},
};

use super::framing::{COPIED, Framing, Head, Malformed, Piece};
use crate::unbuffered::read_into;

/// From here on a body is read right into the memory that it is kept in, of which so much is taken at once.
const LARGE: u64 = 16 * 1024;
const LARGEST_STEP: u64 = 256 * 1024;

pub(super) struct Wire {
    /// Where it was made.
    runtime: runtime::Id,
    stream: TcpStream,
    /// What has arrived and was not taken yet.
    arrived: BytesMut,
}

/// Why an exchange came to nothing.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) reason: Reason,
    /// Whether not one byte of the request has left.
    pub(super) unsent: bool,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Reason {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Malformed(#[from] Malformed),
    #[error("the server closed it {0}")]
    Ended(&'static str),
}

/// A request as it is written. It is empty once all of it has left: an answer may take long.
pub(super) struct Request {
    /// And the body, if it is small.
    head: Vec<u8>,
    body: Bytes,
    length: usize,
}

/// A request, as far as it has left.
struct Sending<'a> {
    request: &'a mut Request,
    n_sent: usize,
    /// Why no more of it leaves.
    failed: Option<io::Error>,
}

impl Wire {
    /// A connection of the runtime that this is called on.
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            runtime: Handle::current().id(),
            stream,
            arrived: BytesMut::new(),
        }
    }

    pub(super) fn is_of(&self, runtime: runtime::Id) -> bool {
        self.runtime == runtime
    }

    /// Whether another request can be sent: a server that says anything unasked, be it the end, has ended it.
    pub(super) fn is_ready(&mut self) -> bool {
        // Nobody waits for it, so nobody is woken.
        let mut nobody = Context::from_waker(Waker::noop());
        self.arrived.is_empty() && read_into(&mut self.stream, &mut nobody, |_| ()).is_pending()
    }

    /// Sends a request and reads the head of its answer, which may come before all of the request has left.
    pub(super) async fn exchange(&mut self, method: &Method, request: &mut Request) -> Result<Head, Broken> {
        let mut sending = Sending {
            request,
            n_sent: 0,
            failed: None,
        };
        let answered = poll_fn(|cx| self.poll_exchange(&mut sending, method, cx)).await;
        match answered {
            Ok(mut head) => {
                // What has not left stands in the way of the next request.
                head.is_kept &= sending.is_over();
                Ok(head)
            }
            Err(reason) => Err(Broken {
                unsent: sending.n_sent == 0,
                reason: sending.failed.map_or(reason, Reason::Io),
            }),
        }
    }

    fn poll_exchange(
        &mut self,
        sending: &mut Sending<'_>,
        method: &Method,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Head, Reason>> {
        // A server may have answered before it closed its end.
        let _ = sending.poll(&mut self.stream, cx);
        if sending.failed.is_some() && sending.n_sent == 0 {
            return Poll::Ready(Err(Reason::Ended("before the request")));
        }
        loop {
            if let Some(head) = Head::take(&mut self.arrived, method)? {
                return Poll::Ready(Ok(head));
            }
            if ready!(self.poll_fill(None, cx))? == 0 {
                let when = if self.arrived.is_empty() {
                    "before it answered"
                } else {
                    "in the middle of its answer"
                };
                return Poll::Ready(Err(Reason::Ended(when)));
            }
        }
    }

    /// Reads what is there behind what has arrived before.
    fn poll_fill(&mut self, left: Option<u64>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Self { stream, arrived, .. } = self;
        match left {
            Some(left) if left > LARGE => {
                arrived.reserve(usize::try_from(left.min(LARGEST_STEP)).unwrap_or_default());
                pin!(stream.read_buf(arrived)).poll(cx)
            }
            _ => read_into(stream, cx, |piece| arrived.extend_from_slice(piece)),
        }
    }

    /// Reads the next piece of a body; nothing at its end.
    pub(super) fn poll_piece(
        &mut self,
        framing: &mut Framing,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, Reason>> {
        loop {
            match framing.take(&mut self.arrived)? {
                Piece::Data(data) => return Poll::Ready(Ok(Some(data))),
                Piece::End => return Poll::Ready(Ok(None)),
                Piece::More => {}
            }
            if ready!(self.poll_fill(framing.left(), cx))? == 0 {
                return Poll::Ready(if framing.may_end() {
                    Ok(None)
                } else {
                    Err(Reason::Ended("in the middle of its answer"))
                });
            }
        }
    }

    /// Reads the rest of a body of which the length is known, in one piece.
    pub(super) fn poll_rest(
        &mut self,
        framing: &mut Framing,
        left: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Bytes, Reason>> {
        while self.arrived.len() < left {
            let missing = left - self.arrived.len();
            if ready!(self.poll_fill(Some(missing as u64), cx))? == 0 {
                return Poll::Ready(Err(Reason::Ended("in the middle of its answer")));
            }
        }
        *framing = Framing::Length(0);
        Poll::Ready(Ok(self.arrived.split_to(left).freeze()))
    }

    /// Gives up the memory that nothing is in.
    pub(super) fn rest(&mut self) {
        self.arrived = BytesMut::new();
    }
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

impl Sending<'_> {
    fn is_over(&self) -> bool {
        self.n_sent == self.request.length
    }

    /// Writes what the connection takes.
    fn poll(&mut self, stream: &mut TcpStream, cx: &mut Context<'_>) -> Poll<()> {
        while !self.is_over() && self.failed.is_none() {
            let Request { head, body, .. } = &*self.request;
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

#[cfg(test)]
mod tests;
