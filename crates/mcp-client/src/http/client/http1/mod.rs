//! HTTP/1.1 connection of hyper that is driven by the caller waiting for its answer.
//!
//! hyper's client consists of a handle that takes requests and a future that does the I/O. Both are kept together here
//! and polled in the caller's own future: no task is woken for a request, and none wakes the caller for its answer. The
//! I/O future is polled with the caller's waker. It then leaves what it read where the handle finds it, which needs no
//! waker.

use std::{
    error::Error as StdError,
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Request, Response, StatusCode, Version, header};
use http_body::Body as _;
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::{
    runtime::{self, Handle},
    task::coop::unconstrained,
};

use super::byte_stream::{ByteStream, ExchangeProgress, MAX_HEAD, RequestBody, TrackedStream};

/// Maximum number of headers or trailers of an answer.
const MAX_HEADERS: usize = 128;
/// Maximum size of the buffer allocated for a body before it arrives, in bytes.
const MAX_PREALLOCATION: usize = 256 * 1024;

/// Connection that carries one exchange at a time.
pub(super) struct Connection {
    /// Runtime on which the connection was created.
    runtime: runtime::Id,
    sender: SendRequest<RequestBody>,
    driver: Driver,
    progress: Arc<ExchangeProgress>,
    /// Set if another request may follow the current answer.
    is_reusable: bool,
}

/// I/O half of a connection.
struct Driver {
    connection: http1::Connection<TokioIo<TrackedStream>, RequestBody>,
    has_ended: bool,
}

/// Failed exchange.
#[derive(Debug)]
pub(super) struct ExchangeError {
    pub(super) fault: Http1Error,
    /// Set if not a byte of the request was sent.
    pub(super) unsent: bool,
}

/// Reason why an exchange failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Http1Error {
    #[error("{0}")]
    Io(io::Error),
    #[error("invalid HTTP/1.1 response: {0}")]
    Malformed(String),
    #[error("the server closed the connection {0}")]
    Ended(&'static str),
}

impl Connection {
    /// Starts HTTP/1.1 on a stream of the current runtime. `progress` is that of the socket below the stream.
    pub(super) async fn new(
        stream: impl ByteStream + 'static,
        progress: Arc<ExchangeProgress>,
    ) -> Result<Self, hyper::Error> {
        progress.reset();
        let stream = TrackedStream {
            stream: Box::new(stream),
            progress: Arc::clone(&progress),
        };
        let (sender, connection) = http1::Builder::new()
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEAD)
            .handshake(TokioIo::new(stream))
            .await?;
        Ok(Self {
            runtime: Handle::current().id(),
            sender,
            driver: Driver {
                connection,
                has_ended: false,
            },
            progress,
            is_reusable: true,
        })
    }

    pub(super) fn belongs_to(&self, runtime: runtime::Id) -> bool {
        self.runtime == runtime
    }

    /// Returns `true` if another request can be sent. Any unsolicited byte of the server, even a notice that it closes
    /// the connection, has ended it.
    pub(super) fn is_ready(&mut self) -> bool {
        let driving = poll_fn(|cx| {
            self.driver.drive(cx);
            Poll::Ready(())
        });
        // A task without coop budget would not see received bytes.
        let _ = pin!(unconstrained(driving)).poll(&mut noop_context());
        !self.driver.has_ended && self.sender.is_ready()
    }

    /// Sends a request and reads the head of its answer, which may arrive before the whole request was sent. The body
    /// is taken when the first byte of the request is sent.
    pub(super) async fn exchange(
        &mut self,
        request: Request<()>,
        body: &mut Bytes,
    ) -> Result<Response<Incoming>, ExchangeError> {
        self.progress.reset();
        let method = request.method().clone();
        let request = request.map(|()| RequestBody::new(body.clone(), Arc::clone(&self.progress)));
        // The channel to the I/O future would use up the coop budget of the task, and then wake nobody.
        let mut answer = pin!(unconstrained(self.sender.try_send_request(request)));
        let answer = poll_fn(|cx| {
            self.driver.drive(cx);
            if self.progress.has_begun() {
                *body = Bytes::new();
            }
            match answer.as_mut().poll(&mut noop_context()) {
                // The I/O future may have lacked the budget to return the request.
                Poll::Pending if self.driver.has_ended => Poll::Ready(None),
                answer => answer.map(Some),
            }
        })
        .await;
        let unsent = !self.progress.has_begun();
        let answer = match answer {
            // The answer belongs to something else.
            Some(Ok(_)) if unsent => Err(self.ended()),
            Some(Ok(answer)) => {
                self.progress.set_head_read();
                self.check_framing(&method, &answer).map(|()| answer)
            }
            Some(Err(error)) => Err(self.fault(&error.into_error())),
            None => Err(self.ended()),
        };
        answer.map_err(|fault| ExchangeError { fault, unsent })
    }

    /// Refuses an answer with ambiguous framing (RFC 9112, section 6), and determines whether another request may
    /// follow it.
    fn check_framing(&mut self, method: &Method, answer: &Response<Incoming>) -> Result<(), Http1Error> {
        let malformed = |text: &str| Err(Http1Error::Malformed(text.to_owned()));
        let (status, headers) = (answer.status(), answer.headers());
        if status == StatusCode::SWITCHING_PROTOCOLS {
            return malformed("unrequested switch of the protocol");
        }
        if status.as_u16() >= 600 {
            return malformed("invalid status");
        }
        let mut codings = tokens(headers, &header::TRANSFER_ENCODING);
        let is_coded = match (codings.next(), codings.next()) {
            (None, _) => false,
            (Some(coding), None) if coding.eq_ignore_ascii_case(b"chunked") => true,
            _ => return malformed("transfer coding other than `chunked`"),
        };
        let mut lengths = tokens(headers, &header::CONTENT_LENGTH);
        let is_doubtful = if matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
            // A body that is not allowed would be read as the next answer.
            *method != Method::HEAD && (is_coded || lengths.any(|length| length != b"0"))
        } else {
            // A proxy on the way may have used the other of the two lengths.
            is_coded && lengths.next().is_some()
        };
        let is_last = closes_connection(answer);
        self.is_reusable = !is_last && !is_doubtful;
        if is_last && status.as_u16() >= 300 {
            // The server is about to close the connection: bytes that it does not read would reset the connection and
            // destroy the answer.
            self.progress.abandon();
        }
        Ok(())
    }

    /// Reads the next chunk of a body. Returns `None` at its end.
    pub(super) fn poll_chunk(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, Http1Error>> {
        let mut is_driven = false;
        loop {
            match Pin::new(&mut *body).poll_frame(&mut noop_context()) {
                Poll::Ready(None) => return Poll::Ready(Ok(None)),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(self.fault(&error))),
                Poll::Ready(Some(Ok(frame))) => {
                    // Other frames are trailers, which are ignored.
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Ok(Some(data)));
                    }
                }
                Poll::Pending if self.driver.has_ended => return Poll::Ready(Err(self.ended())),
                Poll::Pending if is_driven => return Poll::Pending,
                Poll::Pending => {
                    self.driver.drive(cx);
                    is_driven = true;
                }
            }
        }
    }

    /// Reads the rest of a body of `length` bytes into one buffer.
    pub(super) async fn whole(&mut self, body: &mut Incoming, length: usize) -> Result<Bytes, Http1Error> {
        let first = poll_fn(|cx| self.poll_chunk(body, cx)).await?.unwrap_or_default();
        if first.len() == length {
            return Ok(first);
        }
        // A server may announce more than it sends.
        let mut whole = BytesMut::with_capacity(length.min(MAX_PREALLOCATION));
        whole.extend_from_slice(&first);
        drop(first);
        while let Some(piece) = poll_fn(|cx| self.poll_chunk(body, cx)).await? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    }

    /// Waits until the whole request was sent. Reads and drops the answer meanwhile, since a server may write all of it
    /// before it reads on.
    pub(super) fn poll_sent(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Http1Error>> {
        while !self.progress.is_sent() {
            if self.driver.has_ended {
                return Poll::Ready(Err(Http1Error::Ended("before it had read the request")));
            }
            if ready!(self.poll_chunk(body, cx))?.is_none() {
                self.driver.drive(cx);
                if !self.progress.is_sent() && !self.driver.has_ended {
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Ends an exchange. Returns `true` if another one can follow, because nothing of this one is left.
    pub(super) fn finish_exchange(&mut self, body: &mut Incoming) -> bool {
        // Maximum number of chunks after the response was found: the end of an event stream.
        const FEW: usize = 4;
        if !self.is_reusable {
            return false;
        }
        let reading = poll_fn(|cx| {
            for _ in 0..FEW {
                match self.poll_chunk(body, cx) {
                    Poll::Ready(Ok(Some(_))) => {}
                    Poll::Ready(Ok(None)) => {
                        // Drops the waker of the last caller.
                        self.driver.drive(cx);
                        return Poll::Ready(true);
                    }
                    Poll::Ready(Err(_)) | Poll::Pending => break,
                }
            }
            Poll::Ready(false)
        });
        // A task without coop budget would not see received bytes.
        let is_read = pin!(unconstrained(reading)).poll(&mut noop_context()) == Poll::Ready(true);
        self.progress.reset();
        is_read && !self.driver.has_ended && self.sender.is_ready()
    }

    /// Error of an exchange whose connection has ended.
    fn ended(&self) -> Http1Error {
        Http1Error::Ended(if !self.progress.has_begun() {
            "before the request"
        } else if self.progress.has_received() {
            "in the middle of its answer"
        } else {
            "before it answered"
        })
    }

    fn fault(&self, error: &hyper::Error) -> Http1Error {
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        match cause.map(|cause| (cause.kind(), cause)) {
            _ if error.is_incomplete_message() || error.is_canceled() || error.is_closed() => self.ended(),
            Some((io::ErrorKind::UnexpectedEof, _)) => self.ended(),
            Some((io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData, cause)) => {
                Http1Error::Malformed(cause.to_string())
            }
            Some((kind, cause)) => Http1Error::Io(io::Error::new(kind, cause.to_string())),
            None => Http1Error::Malformed(error.to_string()),
        }
    }
}

impl Driver {
    /// Lets hyper read and write. Errors are reported by the request or by the body of its answer.
    fn drive(&mut self, cx: &mut Context<'_>) {
        self.has_ended = self.has_ended || Pin::new(&mut self.connection).poll(cx).is_ready();
    }
}

/// Returns `true` if no other request may follow an answer (RFC 9112, section 9.3).
fn closes_connection<B>(answer: &Response<B>) -> bool {
    let has = |option: &str| {
        let mut options = tokens(answer.headers(), &header::CONNECTION);
        options.any(|name| name.eq_ignore_ascii_case(option.as_bytes()))
    };
    has("close") || (answer.version() == Version::HTTP_10 && !has("keep-alive"))
}

/// Elements of the comma-separated lists in all headers of one name.
fn tokens<'a>(headers: &'a HeaderMap, name: &'a header::HeaderName) -> impl Iterator<Item = &'a [u8]> {
    let values = headers.get_all(name).into_iter();
    values
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
}

fn noop_context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

#[cfg(test)]
mod tcp_tests;
#[cfg(test)]
mod tests;
