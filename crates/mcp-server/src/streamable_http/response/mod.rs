//! Responses over HTTP: one message, or a stream of events.

mod body;
mod exchange_stream;
mod responses;

pub use self::body::ResponseBody;
pub(super) use self::responses::{
    body_error, empty, error, events, finish, method_not_allowed, no_events, no_stream_permit, not_resumable,
    refusal, refuse, resumed, session_queue, sse_client, subscription, whole_or_event,
};
