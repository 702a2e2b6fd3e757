//! Bodies of answers, delivered as their script asks.

use std::{convert::Infallible, future, pin::Pin, sync::Arc};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use http::{
    HeaderMap, HeaderName, HeaderValue, Response, StatusCode,
    header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE},
};
use http_body_util::{BodyExt, BodyStream, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Body, Frame};
use mcp_server::ResponseBody;
use mcp_wire::{Message, RpcError, SseDecoder, SseItem, code};
use tokio::{task::yield_now, time::sleep};

use crate::{
    Misbehavior,
    reply::plan::ReplyPlan,
    server::state::State,
    transport::delivery::{Delivery, Framing, SendStep},
};

/// Error that closes the connection because the script asks for it.
#[derive(Debug, thiserror::Error)]
#[error("the script closes the connection")]
pub(crate) struct ClosedByScript;

/// Reason why a body ends.
#[derive(Clone, Copy)]
pub(super) enum BodyEnd {
    /// The connection breaks off.
    Cut,
    /// The body is complete.
    End,
}

pub(super) type AnswerBody = UnsyncBoxBody<Bytes, ClosedByScript>;
pub(super) fn is_stream(response: &Response<ResponseBody>) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// Sets the media type that the script declares.
pub(super) fn retype(response: &mut Response<AnswerBody>, misbehaviors: &[Misbehavior]) {
    for misbehavior in misbehaviors {
        if let Misbehavior::ContentType(kind) = misbehavior
            && let Ok(kind) = HeaderValue::from_str(kind)
        {
            response.headers_mut().insert(CONTENT_TYPE, kind);
        }
    }
}

/// Returns an answer in one piece, or as an event stream if several messages have to be sent.
pub(super) async fn whole(
    plan: &ReplyPlan,
    response: Response<ResponseBody>,
    takes_events: bool,
) -> Response<AnswerBody> {
    let (mut head, body) = response.into_parts();
    let Ok(body) = body.collect().await;
    let delivery = Delivery::new(plan, body.to_bytes().to_vec());
    head.headers.remove(CONTENT_LENGTH);
    let pieces = if takes_events && delivery.needs_events() {
        let kind = HeaderValue::from_static("text/event-stream");
        head.headers.insert(CONTENT_TYPE, kind);
        delivery.pieces(Framing::Event(None))
    } else {
        delivery.pieces(Framing::Whole)
    };
    Response::from_parts(head, boxed(sent(pieces)))
}

/// Returns an event stream, in which the answer to its request and scripted notifications may misbehave.
pub(super) fn events(state: Arc<State>, plan: Option<Arc<ReplyPlan>>, body: ResponseBody) -> AnswerBody {
    boxed(told(state, plan, body))
}

pub(super) fn told(state: Arc<State>, plan: Option<Arc<ReplyPlan>>, body: ResponseBody) -> FrameStream {
    let frames = BodyStream::new(body).filter_map(|frame| {
        let Ok(frame) = frame;
        future::ready(frame.into_data().ok())
    });
    Box::pin(frames.flat_map(move |event| sent_event(&state, plan.as_deref(), event)))
}

/// Returns the frames of one event. The inner server sends each event as one frame.
fn sent_event(state: &State, plan: Option<&ReplyPlan>, event: Bytes) -> FrameStream {
    let mut decoder = SseDecoder::new(usize::MAX);
    decoder.push(&event);
    let Some(SseItem::Event(decoded)) = decoder.next_item() else {
        return sent(vec![SendStep::Bytes(event)]);
    };
    let framing = Framing::Event(decoded.id.as_deref());
    if let Some(reply) = state.notification(&decoded.data) {
        if reply.misbehaviors.contains(&Misbehavior::EmptyStream) {
            return stopped(BodyEnd::End);
        }
        let delivery = Delivery::notification(&reply, decoded.data.to_vec());
        let pieces = delivery.map(|delivery| delivery.pieces(framing));
        let wait = SendStep::Pause(reply.delays());
        return sent([vec![wait], pieces.unwrap_or_default()].concat());
    }
    let message = Message::from_server(decoded.data.clone());
    let (Some(plan), Ok(Message::Response(_))) = (plan, message) else {
        return sent(vec![SendStep::Bytes(event)]);
    };
    if plan.never_answers() {
        return Box::pin(stream::pending());
    }
    if plan.misbehaves(&Misbehavior::EmptyStream) {
        return sent(Vec::new());
    }
    sent(Delivery::new(plan, decoded.data.to_vec()).pieces(framing))
}

pub(super) type FrameStream = Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, BodyEnd>> + Send>>;

/// Returns the end of a body.
fn stopped(how: BodyEnd) -> FrameStream {
    Box::pin(stream::once(future::ready(Err(how))))
}

/// Limits a body to `most` bytes.
pub(super) fn limited(frames: FrameStream, most: usize, stop: BodyEnd) -> FrameStream {
    let start = (frames, most, false);
    Box::pin(stream::unfold(
        start,
        move |(mut frames, left, is_over)| async move {
            if is_over {
                return None;
            }
            if left == 0 {
                // Yields, so that earlier frames are written first.
                yield_now().await;
                return Some((Err(stop), (frames, 0, true)));
            }
            let data = match frames.next().await? {
                Ok(frame) => frame.into_data().unwrap_or_default(),
                Err(stop) => return Some((Err(stop), (frames, 0, true))),
            };
            let part = data.slice(..data.len().min(left));
            let left = left - part.len();
            Some((Ok(Frame::data(part)), (frames, left, false)))
        },
    ))
}

/// Returns the frames of the steps, with the pauses between them.
fn sent(pieces: Vec<SendStep>) -> FrameStream {
    let frames = stream::iter(pieces).filter_map(async |piece| match piece {
        SendStep::Bytes(bytes) => Some(Ok(Frame::data(bytes))),
        SendStep::Pause(time) => {
            sleep(time).await;
            None
        }
        SendStep::Close => {
            // Yields, so that earlier frames are written first.
            yield_now().await;
            Some(Err(BodyEnd::Cut))
        }
    });
    Box::pin(frames)
}

pub(super) fn boxed(
    frames: impl Stream<Item = Result<Frame<Bytes>, BodyEnd>> + Send + 'static,
) -> AnswerBody {
    let frames = frames.take_while(|frame| future::ready(!matches!(frame, Err(BodyEnd::End))));
    StreamBody::new(frames.map_err(|_| ClosedByScript)).boxed_unsync()
}

pub(super) fn unchanged<B>(body: B) -> AnswerBody
where
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    body.map_err(|never| match never {}).boxed_unsync()
}

pub(super) fn answer(status: StatusCode, body: Bytes) -> Response<AnswerBody> {
    let mut answer = Response::new(unchanged(Full::new(body)));
    *answer.status_mut() = status;
    answer
}

pub(super) fn json(status: StatusCode, body: Bytes) -> Response<AnswerBody> {
    with_type("application/json", answer(status, body))
}

pub(super) fn with_type(kind: &'static str, mut answer: Response<AnswerBody>) -> Response<AnswerBody> {
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

pub(super) fn not_found() -> Response<AnswerBody> {
    let error = RpcError::new(code::INVALID_REQUEST, "the session is unknown");
    json(StatusCode::NOT_FOUND, mcp_wire::error(None, &error).into())
}

/// Returns a scripted status. Invalid status codes become 500, invalid headers are dropped.
pub(super) fn refusal(status: u16, headers: &[(String, String)], body: &str) -> Response<AnswerBody> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = answer(status, body.to_owned().into());
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            answer.headers_mut().append(name, value);
        }
    }
    answer
}

pub(super) fn takes_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter();
    accepted
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("text/event-stream"))
}
