use std::{
    convert::Infallible,
    fmt,
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use mcp_wire::SSE_KEEP_ALIVE;
use tokio::{
    sync::mpsc,
    time::{Instant, Sleep, sleep},
};

use super::exchange_stream::ExchangeStream;
use crate::{
    limits::StreamPermit,
    notifications::{SessionQueueReader, Subscription},
    streamable_http::sse::SseStream,
};

/// Body of a response: one message, or a stream of events.
pub struct ResponseBody(Kind);

enum Kind {
    Whole(Bytes),
    Stream(Box<Stream>),
}

struct Stream {
    source: Source,
    /// Permit of a stream that is open without a call.
    _permit: Option<StreamPermit>,
    keep_alive: Pin<Box<Sleep>>,
    /// Time after which a quiet stream is kept alive.
    every: Duration,
}

/// Source of the events of a stream.
pub(super) enum Source {
    /// Request that is being answered.
    Exchange(ExchangeStream),
    /// Stream of a request, which the client resumes.
    Resumed(mpsc::Receiver<Bytes>),
    /// Notifications to a legacy client.
    SessionQueue(SessionQueueReader),
    /// Notifications to a modern client.
    Subscription(Subscription),
    /// All messages to a client of HTTP+SSE.
    SseClient(SseStream),
    Ended,
}

impl ResponseBody {
    /// Creates the body of a response that is not a stream.
    pub(super) fn whole(body: Bytes) -> Self {
        Self(Kind::Whole(body))
    }

    /// Creates the body of a stream, which has a comment after each quiet period of `every`.
    pub(super) fn stream(source: Source, permit: Option<StreamPermit>, every: Duration) -> Self {
        Self(Kind::Stream(Box::new(Stream {
            source,
            _permit: permit,
            keep_alive: Box::pin(sleep(every)),
            every,
        })))
    }

    /// Returns the whole body of a response that is not a stream.
    pub(in crate::streamable_http) fn into_bytes(self) -> Bytes {
        match self.0 {
            Kind::Whole(bytes) => bytes,
            Kind::Stream(_) => Bytes::new(),
        }
    }
}

impl Source {
    /// Returns the next event, or `None` at the end.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self {
            Self::Exchange(stream) => stream.poll_next(cx),
            Self::Resumed(events) => events.poll_recv(cx),
            Self::SessionQueue(reader) => reader.poll_next(cx),
            Self::Subscription(subscription) => subscription.poll_next(cx),
            Self::SseClient(stream) => stream.poll_next(cx),
            Self::Ended => Poll::Ready(None),
        }
    }

    /// Returns `true` if it is known that no event follows.
    fn has_ended(&self) -> bool {
        match self {
            Self::Exchange(stream) => stream.has_ended(),
            Self::Ended => true,
            _ => false,
        }
    }
}

impl Stream {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self.source.poll_next(cx) {
            Poll::Ready(Some(event)) => {
                self.restart_keep_alive();
                Poll::Ready(Some(event))
            }
            Poll::Ready(None) => {
                self.source = Source::Ended;
                Poll::Ready(None)
            }
            Poll::Pending if self.keep_alive.as_mut().poll(cx).is_ready() => {
                self.restart_keep_alive();
                Poll::Ready(Some(Bytes::from_static(SSE_KEEP_ALIVE)))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn restart_keep_alive(&mut self) {
        self.keep_alive.as_mut().reset(Instant::now() + self.every);
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Kind::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(mem::take(bytes))))),
            Kind::Stream(stream) => stream
                .poll_event(cx)
                .map(|event| event.map(|event| Ok(Frame::data(event)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(bytes) => bytes.is_empty(),
            Kind::Stream(stream) => stream.source.has_ended(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Stream(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Whole(bytes) => write!(f, "ResponseBody({} bytes)", bytes.len()),
            Kind::Stream(_) => f.write_str("ResponseBody(events)"),
        }
    }
}
