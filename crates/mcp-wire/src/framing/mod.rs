//! Framing of messages: one per line over stdio, one per event over HTTP.

mod line_decoder;
mod sse_decoder;
mod write;

pub(crate) use self::write::push_string;
pub use self::{
    line_decoder::{Line, LineDecoder},
    sse_decoder::{SSE_KEEP_ALIVE, SseDecoder, SseEvent, SseItem, sse_event},
    write::{batch_response, end_line, error, into_line, notification, request, result},
};
