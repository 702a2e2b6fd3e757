use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE},
};
use mcp_wire::{Era, RpcError, code, sse_event};
use raw_json::RawJson;
use tokio::sync::mpsc;

use super::{
    body::{ResponseBody, Source},
    exchange_stream::ExchangeStream,
};
use crate::{
    client::Outgoing,
    limits::{NoStreamPermit, StreamPermit},
    notifications::{SessionQueueReader, Subscription},
    protocol::Reply,
    streamable_http::{
        RequestRefusal,
        endpoint::{BodyError, Exchange},
        head::Accepts,
        sse::SseStream,
    },
};

/// Responds with one message as JSON.
fn json(status: StatusCode, message: Vec<u8>) -> Response<ResponseBody> {
    let mut response = whole(status, message);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Responds without a body.
pub(in crate::streamable_http) fn empty(status: StatusCode) -> Response<ResponseBody> {
    whole(status, Vec::new())
}

/// Responds with an error; `id` is that of the request, if it is known.
pub(in crate::streamable_http) fn error(
    status: StatusCode,
    id: Option<&RawJson>,
    error: &RpcError,
) -> Response<ResponseBody> {
    json(status, mcp_wire::error(id, error))
}

/// Refuses a request before its message is read.
pub(in crate::streamable_http) fn refuse(status: StatusCode, message: &str) -> Response<ResponseBody> {
    error(status, None, &RpcError::new(code::INVALID_REQUEST, message))
}

/// Refuses a request whose principal cannot be identified.
pub(in crate::streamable_http) fn refusal(refusal: RequestRefusal) -> Response<ResponseBody> {
    let mut response = refuse(refusal.status, &refusal.message);
    if let Some(authenticate) = refusal.authenticate {
        response.headers_mut().insert(WWW_AUTHENTICATE, authenticate);
    }
    response
}

pub(in crate::streamable_http) fn method_not_allowed() -> Response<ResponseBody> {
    let mut response = refuse(StatusCode::METHOD_NOT_ALLOWED, "the method is not allowed here");
    let allowed = HeaderValue::from_static("POST, GET, DELETE");
    response.headers_mut().insert(ALLOW, allowed);
    response
}

/// Responds with a reply that no event precedes.
pub(in crate::streamable_http) fn finish(reply: Reply, era: Era, accepts: Accepts) -> Response<ResponseBody> {
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

/// Responds with a message as JSON, or as the only event of a stream to a client that accepts nothing else.
pub(in crate::streamable_http) fn whole_or_event(
    message: Vec<u8>,
    accepts: Accepts,
) -> Response<ResponseBody> {
    if accepts.json {
        json(StatusCode::OK, message)
    } else {
        event_stream(sse_event(&message, None, None))
    }
}

/// Explains why a body could not be read.
pub(in crate::streamable_http) fn body_error(error: BodyError, limit: usize) -> Response<ResponseBody> {
    match error {
        BodyError::TooLarge => {
            let message = format!("the body is larger than {limit} bytes");
            refuse(StatusCode::PAYLOAD_TOO_LARGE, &message)
        }
        BodyError::TooSlow => refuse(StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive"),
        BodyError::Broken => refuse(StatusCode::BAD_REQUEST, "the body is incomplete"),
    }
}

/// Streams an exchange, whose first event is `first`.
pub(in crate::streamable_http) fn events(
    first: Outgoing,
    exchange: Exchange,
    keep_alive: Duration,
) -> Response<ResponseBody> {
    let resumable = exchange.open_stream();
    if let (Outgoing::Pause(retry), Some(resumable)) = (&first, &resumable) {
        let response = event_stream(resumable.prime(*retry).into());
        exchange.park(resumable);
        return response;
    }
    let source = Source::Exchange(ExchangeStream::new(first, exchange, resumable));
    stream(source, None, keep_alive)
}

/// Streams the events that a client resumes.
pub(in crate::streamable_http) fn resumed(
    events: mpsc::Receiver<Bytes>,
    permit: StreamPermit,
    keep_alive: Duration,
) -> Response<ResponseBody> {
    stream(Source::Resumed(events), Some(permit), keep_alive)
}

/// Refuses to resume a stream of which events are lost.
pub(in crate::streamable_http) fn not_resumable() -> Response<ResponseBody> {
    let message = "`Last-Event-ID` names no event of this session, or its stream is no longer kept: later events are \
                   lost; open a stream without the header for notifications, and repeat an unanswered request only if \
                   it may run twice";
    refuse(StatusCode::BAD_REQUEST, message)
}

/// Refuses a stream for which there is no permit.
pub(in crate::streamable_http) fn no_stream_permit(
    reason: NoStreamPermit,
    id: Option<&RawJson>,
) -> Response<ResponseBody> {
    let (status, message) = match reason {
        NoStreamPermit::ForPrincipal => (
            StatusCode::TOO_MANY_REQUESTS,
            "too many streams are open for one principal; end one, or retry later",
        ),
        NoStreamPermit::ForAnyone => (
            StatusCode::SERVICE_UNAVAILABLE,
            "too many streams are open; retry later",
        ),
    };
    error(status, id, &RpcError::new(code::INVALID_REQUEST, message))
}

/// Streams the notifications of a session, whose queue has a permit of its own.
pub(in crate::streamable_http) fn session_queue(
    reader: SessionQueueReader,
    keep_alive: Duration,
) -> Response<ResponseBody> {
    stream(Source::SessionQueue(reader), None, keep_alive)
}

/// Streams a subscription.
pub(in crate::streamable_http) fn subscription(
    subscription: Subscription,
    permit: StreamPermit,
    keep_alive: Duration,
) -> Response<ResponseBody> {
    stream(Source::Subscription(subscription), Some(permit), keep_alive)
}

/// Streams all messages to a client of HTTP+SSE.
pub(in crate::streamable_http) fn sse_client(
    client: SseStream,
    permit: StreamPermit,
    keep_alive: Duration,
) -> Response<ResponseBody> {
    stream(Source::SseClient(client), Some(permit), keep_alive)
}

/// Responds to a cancelled request with a stream without events.
pub(in crate::streamable_http) fn no_events() -> Response<ResponseBody> {
    event_stream(Vec::new())
}

fn whole(status: StatusCode, body: Vec<u8>) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::whole(body.into()));
    *response.status_mut() = status;
    response
}

/// Responds with a stream whose events are known.
fn event_stream(events: Vec<u8>) -> Response<ResponseBody> {
    let mut response = whole(StatusCode::OK, events);
    mark_as_stream(&mut response);
    response
}

fn stream(source: Source, permit: Option<StreamPermit>, keep_alive: Duration) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::stream(source, permit, keep_alive));
    mark_as_stream(&mut response);
    response
}

fn mark_as_stream(response: &mut Response<ResponseBody>) {
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Buffering proxies would delay progress.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
}
