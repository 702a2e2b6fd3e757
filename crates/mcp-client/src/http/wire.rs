//! One HTTP/1.1 connection over TCP, driven by whoever waits for its answer.
//!
//! It has no buffer while nothing comes: what is read goes over the stack into memory of the size that is needed.

use std::{
    future::{Future as _, poll_fn},
    io, mem,
    pin::pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::Method;
use rustix::{
    io::Errno,
    net::{RecvFlags, recv},
};
use tokio::{
    io::AsyncReadExt as _,
    net::TcpStream,
    runtime::{self, Handle},
};

use super::{
    arrived::Arrived,
    framing::{Framing, Head, Malformed, Piece},
    sending::{Request, Sending},
};
use crate::unbuffered::read_into;

/// From here on a body is read right into the memory that it is kept in, of which so much is taken at once.
const LARGE: u64 = 16 * 1024;
const LARGEST_STEP: u64 = 256 * 1024;

pub(super) struct Wire {
    /// Where it was made.
    runtime: runtime::Id,
    stream: TcpStream,
    /// What has arrived and was not taken yet.
    arrived: Arrived,
    /// The request whose answer is read. It may go on leaving until the answer has ended.
    sending: Sending,
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

impl Wire {
    /// A connection of the runtime that this is called on.
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            runtime: Handle::current().id(),
            stream,
            arrived: Arrived::default(),
            sending: Sending::default(),
        }
    }

    pub(super) fn is_of(&self, runtime: runtime::Id) -> bool {
        self.runtime == runtime
    }

    /// Whether another request can be sent: a server that says anything unasked, be it the end, has ended it.
    ///
    /// The kernel is asked, and not the runtime: that says "nothing there" also when the task has used up its budget, or
    /// when the reactor has not run since something came.
    pub(super) fn is_ready(&self) -> bool {
        let mut byte = [0; 1];
        let mut looked = || recv(&self.stream, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT);
        self.is_clean() && looked().is_err_and(|error| error == Errno::AGAIN)
    }

    /// Whether nothing of an exchange is left: neither of the request nor behind the answer.
    pub(super) fn is_clean(&self) -> bool {
        self.arrived.is_empty() && self.is_sent()
    }

    /// Whether all of the request has left. Half a request stands in the way of the next one.
    pub(super) fn is_sent(&self) -> bool {
        self.sending.is_over()
    }

    /// Sends a request and reads the head of its answer, which may come before all of the request has left. If none of it
    /// has left when this fails, the request is given back.
    pub(super) async fn exchange(&mut self, method: &Method, request: &mut Request) -> Result<Head, Broken> {
        self.sending = Sending::new(mem::take(request));
        let mut n_interim = 0;
        match poll_fn(|cx| self.poll_exchange(method, &mut n_interim, cx)).await {
            Ok(head) => {
                if head.status >= 300 && !head.is_kept {
                    // It is about to close the connection: what it does not read would break what it has written.
                    self.sending.give_up();
                }
                Ok(head)
            }
            Err(reason) => {
                let sending = mem::take(&mut self.sending);
                let (unsent, failed) = (sending.is_unsent(), sending.into_failure(request));
                let reason = failed.map_or(reason, Reason::Io);
                Err(Broken { reason, unsent })
            }
        }
    }

    fn poll_exchange(
        &mut self,
        method: &Method,
        n_interim: &mut usize,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Head, Reason>> {
        // A server may have answered before it closed its end.
        let _ = self.sending.poll(&mut self.stream, cx);
        if self.sending.is_unsent() && self.sending.has_failed() {
            return Poll::Ready(Err(Reason::Ended("before the request")));
        }
        loop {
            if let Some(head) = Head::take(&mut self.arrived, method, n_interim)? {
                return Poll::Ready(Ok(head));
            }
            let n_read = ready!(self.poll_fill(None, cx))?;
            if self.sending.is_unsent() {
                // It answers something else.
                return Poll::Ready(Err(Reason::Ended("before the request")));
            }
            if n_read == 0 {
                let when = if self.arrived.is_empty() {
                    "before it answered"
                } else {
                    "in the middle of its answer"
                };
                return Poll::Ready(Err(Reason::Ended(when)));
            }
        }
    }

    /// Waits until all of the request has left. The answer is read and dropped meanwhile: a server may write all of it
    /// before it reads on.
    pub(super) fn poll_sent(
        &mut self,
        framing: &mut Framing,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Reason>> {
        while !self.is_sent() {
            let piece = self.poll_piece(framing, cx);
            if let Some(error) = self.sending.take_failure() {
                return Poll::Ready(Err(error.into()));
            }
            match piece {
                Poll::Ready(Ok(Some(_))) => {}
                // The answer has ended, well or not.
                Poll::Ready(_) => ready!(self.sending.poll(&mut self.stream, cx)),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads what is there behind what has arrived before.
    fn poll_fill(&mut self, left: Option<u64>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Self { stream, arrived, .. } = self;
        match left {
            Some(left) if left > LARGE => {
                let buffer = arrived.buffer();
                buffer.reserve(usize::try_from(left.min(LARGEST_STEP)).unwrap_or_default());
                pin!(stream.read_buf(buffer)).poll(cx)
            }
            _ => read_into(stream, cx, |piece| arrived.push(piece)),
        }
    }

    /// Reads the next piece of a body; nothing at its end.
    pub(super) fn poll_piece(
        &mut self,
        framing: &mut Framing,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, Reason>> {
        // A server may wait for the rest of the request before it goes on.
        let _ = self.sending.poll(&mut self.stream, cx);
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
        let _ = self.sending.poll(&mut self.stream, cx);
        while self.arrived.len() < left {
            let missing = left - self.arrived.len();
            if ready!(self.poll_fill(Some(missing as u64), cx))? == 0 {
                return Poll::Ready(Err(Reason::Ended("in the middle of its answer")));
            }
        }
        *framing = Framing::Length(0);
        Poll::Ready(Ok(self.arrived.take(left)))
    }

    /// Gives up the memory that nothing is in.
    pub(super) fn rest(&mut self) {
        self.arrived = Arrived::default();
    }
}

#[cfg(test)]
mod tests;
