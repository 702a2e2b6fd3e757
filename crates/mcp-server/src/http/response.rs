use std::{
    convert::Infallible,
    fmt,
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE},
};
use hyper::body::{Body, Frame, SizeHint};
use mcp_wire::{Era, RpcError, SSE_KEEP_ALIVE, code, sse_event};
use raw_json::RawJson;
use tokio::{
    sync::mpsc,
    time::{Instant, Sleep, sleep},
};

use super::{
    RequestRefusal,
    body::BodyFault,
    exchange::{Exchange, Step, pause},
    headers::Accepts,
    news::NewsStream,
    old_clients::OldStream,
    resumable::Resumable,
    seats::{NoSeat, Seat},
    subscription::Subscription,
};
use crate::protocol::Reply;

/// The body of an answer: one message, or a stream of events.
pub struct ResponseBody(Kind);

enum Kind {
    Whole(Bytes),
    Stream(Box<Stream>),
}

struct Stream {
    source: Source,
    /// The place of a stream that stands open without a call.
    _seat: Option<Seat>,
    keep_alive: Pin<Box<Sleep>>,
    every: Duration,
}

enum Source {
    /// A message that is there already, and the exchange that follows it.
    Started(Bytes, Exchange, Option<Arc<Resumable>>),
    /// What is to come, and the stream that the client can come back to.
    Exchange(Exchange, Option<Arc<Resumable>>),
    /// What a client comes back for, as events.
    Resumed(mpsc::Receiver<Bytes>),
    /// What a session is told.
    News(NewsStream),
    Subscription(Subscription),
    OldClient(OldStream),
    Ended,
}

/// One message as JSON.
pub(super) fn json(status: StatusCode, message: Vec<u8>) -> Response<ResponseBody> {
    let mut response = whole(status, message);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// No body at all.
pub(super) fn empty(status: StatusCode) -> Response<ResponseBody> {
    whole(status, Vec::new())
}

/// An error that answers no request in particular, or one whose id is known.
pub(super) fn error(status: StatusCode, id: Option<&RawJson>, error: &RpcError) -> Response<ResponseBody> {
    json(status, mcp_wire::error(id, error))
}

/// A refusal before anything was read.
pub(super) fn refuse(status: StatusCode, message: &str) -> Response<ResponseBody> {
    error(status, None, &RpcError::new(code::INVALID_REQUEST, message))
}

pub(super) fn refusal(refusal: RequestRefusal) -> Response<ResponseBody> {
    let mut response = refuse(refusal.status, &refusal.message);
    if let Some(authenticate) = refusal.authenticate {
        response.headers_mut().insert(WWW_AUTHENTICATE, authenticate);
    }
    response
}

pub(super) fn method_not_allowed() -> Response<ResponseBody> {
    let mut response = refuse(StatusCode::METHOD_NOT_ALLOWED, "the method is not allowed here");
    let allowed = HeaderValue::from_static("POST, GET, DELETE");
    response.headers_mut().insert(ALLOW, allowed);
    response
}

/// Sends an answer that nothing came before.
pub(super) fn finish(reply: Reply, era: Era, accepts: Accepts) -> Response<ResponseBody> {
    let status = match (era, reply.error) {
        (Era::Modern, Some(code::METHOD_NOT_FOUND)) => StatusCode::NOT_FOUND,
        (
            Era::Modern,
            Some(
                code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY | code::UNSUPPORTED_PROTOCOL_VERSION,
            ),
        ) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    };
    if status != StatusCode::OK {
        return json(status, reply.frame);
    }
    whole_or_event(reply.frame, accepts)
}

/// An answer as JSON, or as the only event of a stream for a client that takes nothing else.
pub(super) fn whole_or_event(message: Vec<u8>, accepts: Accepts) -> Response<ResponseBody> {
    if accepts.json {
        json(StatusCode::OK, message)
    } else {
        single_event(&message)
    }
}

/// Says why a body could not be read.
pub(super) fn body_fault(fault: BodyFault, limit: usize) -> Response<ResponseBody> {
    match fault {
        BodyFault::TooLarge => {
            let message = format!("the body is larger than {limit} bytes");
            refuse(StatusCode::PAYLOAD_TOO_LARGE, &message)
        }
        BodyFault::TooSlow => refuse(StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive"),
        BodyFault::Broken => refuse(StatusCode::BAD_REQUEST, "the body broke off"),
    }
}

/// A message as the only event of a stream, for a client that takes no JSON.
fn single_event(message: &[u8]) -> Response<ResponseBody> {
    let mut response = whole(StatusCode::OK, sse_event(message, None, None));
    mark_as_stream(&mut response);
    response
}

/// The rest of an exchange as events, after its first report.
pub(super) fn events(first: &[u8], exchange: Exchange, keep_alive: Duration) -> Response<ResponseBody> {
    let record = exchange.open_stream();
    if let (Some(retry), Some(record)) = (pause(first), &record) {
        let mut response = whole(StatusCode::OK, record.prime(retry).into());
        mark_as_stream(&mut response);
        exchange.park(Arc::clone(record));
        return response;
    }
    let first = event(first, record.as_ref());
    stream(Source::Started(first, exchange, record), None, keep_alive)
}

/// What a client comes back for.
pub(super) fn resumed(
    events: mpsc::Receiver<Bytes>,
    seat: Seat,
    keep_alive: Duration,
) -> Response<ResponseBody> {
    stream(Source::Resumed(events), Some(seat), keep_alive)
}

/// Says that a client cannot go on where it was.
pub(super) fn not_resumable() -> Response<ResponseBody> {
    let message = "`Last-Event-ID` names no event of this session, or one whose stream is no longer kept: what came after \
                   it is lost; open a stream without the header for news, and make an unanswered request again only if \
                   it may run twice";
    refuse(StatusCode::BAD_REQUEST, message)
}

/// Refuses a stream that there is no room for.
pub(super) fn no_seat(reason: NoSeat, id: Option<&RawJson>) -> Response<ResponseBody> {
    let (status, message) = match reason {
        NoSeat::ForPrincipal => (
            StatusCode::TOO_MANY_REQUESTS,
            "you have as many streams open as one principal may have; end one, or come again later",
        ),
        NoSeat::ForAnyone => (
            StatusCode::SERVICE_UNAVAILABLE,
            "there is no room for another stream now; come again later",
        ),
    };
    error(status, id, &RpcError::new(code::INVALID_REQUEST, message))
}

fn event(message: &[u8], record: Option<&Arc<Resumable>>) -> Bytes {
    match record {
        Some(record) => record.push(message),
        None => sse_event(message, None, None).into(),
    }
}

/// What a session is told; the stream has a seat of its own.
pub(super) fn news(news: NewsStream, keep_alive: Duration) -> Response<ResponseBody> {
    stream(Source::News(news), None, keep_alive)
}

/// What a subscription brings.
pub(super) fn subscription(
    subscription: Subscription,
    seat: Seat,
    keep_alive: Duration,
) -> Response<ResponseBody> {
    stream(Source::Subscription(subscription), Some(seat), keep_alive)
}

/// All that a client of 2024-11-05 is told.
pub(super) fn old_client(old: OldStream, seat: Seat, keep_alive: Duration) -> Response<ResponseBody> {
    stream(Source::OldClient(old), Some(seat), keep_alive)
}

/// A stream without an event: what a cancelled request is answered with.
pub(super) fn no_events() -> Response<ResponseBody> {
    let mut response = empty(StatusCode::OK);
    mark_as_stream(&mut response);
    response
}

impl ResponseBody {
    /// The whole body of an answer that is no stream.
    pub(super) fn into_bytes(self) -> Bytes {
        match self.0 {
            Kind::Whole(bytes) => bytes,
            Kind::Stream(_) => Bytes::new(),
        }
    }
}

fn whole(status: StatusCode, body: Vec<u8>) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody(Kind::Whole(body.into())));
    *response.status_mut() = status;
    response
}

fn stream(source: Source, seat: Option<Seat>, every: Duration) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody(Kind::Stream(Box::new(Stream {
        source,
        _seat: seat,
        keep_alive: Box::pin(sleep(every)),
        every,
    }))));
    mark_as_stream(&mut response);
    response
}

fn mark_as_stream(response: &mut Response<ResponseBody>) {
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies that collect a stream before they pass it on would hold back progress.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
}

impl Stream {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let next = match &mut self.source {
            Source::Started(..) => {
                let Source::Started(first, exchange, record) = mem::replace(&mut self.source, Source::Ended)
                else {
                    unreachable!("matched right above");
                };
                self.source = Source::Exchange(exchange, record);
                return Poll::Ready(Some(first));
            }
            Source::Exchange(exchange, record) => match exchange.poll_step(cx) {
                Poll::Ready(Step::Report(report)) => match (pause(&report), &record) {
                    (Some(retry), Some(record)) => {
                        let last = record.prime(retry);
                        // The call goes on elsewhere.
                        self.park();
                        return Poll::Ready(Some(last));
                    }
                    _ => Some(event(&report, record.as_ref())),
                },
                Poll::Ready(Step::End(reply)) => {
                    let last = reply.map(|reply| event(&reply.frame, record.as_ref()));
                    if let Some(record) = record {
                        record.complete();
                    }
                    self.source = Source::Ended;
                    let Some(last) = last else {
                        return Poll::Ready(None);
                    };
                    Some(last)
                }
                Poll::Pending => None,
            },
            Source::Resumed(events) => match events.poll_recv(cx) {
                Poll::Ready(Some(event)) => Some(event),
                Poll::Ready(None) => {
                    self.source = Source::Ended;
                    return Poll::Ready(None);
                }
                Poll::Pending => None,
            },
            Source::News(news) => match news.poll_event(cx) {
                Poll::Ready(Some(event)) => Some(event),
                Poll::Ready(None) => {
                    self.source = Source::Ended;
                    return Poll::Ready(None);
                }
                Poll::Pending => None,
            },
            Source::Subscription(subscription) => match subscription.poll_message(cx) {
                Poll::Ready(Some(message)) => Some(event(&message, None)),
                Poll::Ready(None) => {
                    self.source = Source::Ended;
                    return Poll::Ready(None);
                }
                Poll::Pending => None,
            },
            Source::OldClient(old) => match old.poll_event(cx) {
                Poll::Ready(Some(event)) => Some(event),
                Poll::Ready(None) => {
                    self.source = Source::Ended;
                    return Poll::Ready(None);
                }
                Poll::Pending => None,
            },
            Source::Ended => return Poll::Ready(None),
        };
        let alive_until = Instant::now() + self.every;
        if let Some(event) = next {
            self.keep_alive.as_mut().reset(alive_until);
            return Poll::Ready(Some(event));
        }
        if self.keep_alive.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.keep_alive.as_mut().reset(alive_until);
        Poll::Ready(Some(Bytes::from_static(SSE_KEEP_ALIVE)))
    }
}

impl Stream {
    /// Lets a call go on whose stream ends before it does, if the client can come back for it.
    fn park(&mut self) {
        if let Source::Started(_, exchange, Some(record)) | Source::Exchange(exchange, Some(record)) =
            mem::replace(&mut self.source, Source::Ended)
        {
            exchange.park(record);
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.park();
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
            Kind::Stream(stream) => matches!(stream.source, Source::Ended),
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
