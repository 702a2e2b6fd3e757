//! Spans in the words of OTLP: `opentelemetry/proto/trace/v1/trace.proto`, version 1.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tool_core::TraceContext;

use super::protobuf::{begin, bytes, bytes_length, fixed32, fixed64, message, number, number_length};
use crate::{AttributeValue, EndedSpan, SpanKind};

/// Appends a span as a field of `ScopeSpans`, so that spans one after another are the list that is sent.
pub(super) fn span(out: &mut Vec<u8>, span: &EndedSpan<'_>) {
    let Some(context) = &span.cx.trace else { return };
    message(out, 2, |out| {
        bytes(out, 1, &context.trace_id.to_be_bytes());
        bytes(out, 2, &context.span_id.to_be_bytes());
        if let Some(state) = &context.tracestate {
            bytes(out, 3, state.as_bytes());
        }
        if let Some(parent) = span.parent {
            bytes(out, 4, &parent.span_id.to_be_bytes());
        }
        let (what, subject) = span.name_parts();
        let name = [
            what,
            if subject.is_some() { " " } else { "" },
            subject.unwrap_or_default(),
        ];
        begin(out, 5, name.iter().map(|part| part.len()).sum());
        name.iter()
            .for_each(|part| out.extend_from_slice(part.as_bytes()));
        number(out, 6, kind(span));
        let start = since_epoch(span.start);
        fixed64(out, 7, nanoseconds(start));
        fixed64(out, 8, nanoseconds(start.saturating_add(span.elapsed)));
        span.attributes(|key, value| attribute(out, 9, key, value));
        for event in span.events {
            message(out, 11, |out| {
                fixed64(out, 1, nanoseconds(start.saturating_add(event.after)));
                bytes(out, 2, event.name.as_bytes());
                for (key, value) in event.attributes() {
                    attribute(out, 3, key, value);
                }
            });
        }
        if span.n_more_events > 0 {
            number(out, 12, span.n_more_events.into());
        }
        if let Some(reason) = span.failure() {
            message(out, 15, |out| {
                bytes(out, 2, reason.as_bytes());
                number(out, 3, STATUS_ERROR);
            });
        }
        fixed32(out, 16, flags(span, context));
    });
}

const KIND_INTERNAL: u64 = 1;
const KIND_SERVER: u64 = 2;
const KIND_CLIENT: u64 = 3;
const STATUS_ERROR: u64 = 2;
/// The bits that tell that it is known whether the parent is of another process, and that it is.
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

fn kind(span: &EndedSpan<'_>) -> u64 {
    match span.kind {
        SpanKind::Attempt if span.spoken_protocol().is_some() => KIND_CLIENT,
        // Nothing leaves the process.
        SpanKind::Attempt => KIND_INTERNAL,
        // It came over a connection.
        SpanKind::Call if span.cx.client.is_some() => KIND_SERVER,
        SpanKind::Call => KIND_INTERNAL,
    }
}

fn flags(span: &EndedSpan<'_>, context: &TraceContext) -> u32 {
    let is_remote = span.kind == SpanKind::Call && span.parent.is_some();
    let remote = if is_remote { IS_REMOTE } else { 0 };
    u32::from(context.flags) | HAS_IS_REMOTE | remote
}

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Appends a `KeyValue`, of which a call has a dozen and more.
fn attribute(out: &mut Vec<u8>, field: u64, key: &str, value: AttributeValue<'_>) {
    let any = match value {
        AttributeValue::Text(text) => bytes_length(text.len()),
        AttributeValue::Number(value) => number_length(value as u64),
    };
    begin(out, field, bytes_length(key.len()) + bytes_length(any));
    bytes(out, 1, key.as_bytes());
    begin(out, 2, any);
    match value {
        AttributeValue::Text(text) => bytes(out, 1, text.as_bytes()),
        AttributeValue::Number(value) => number(out, 3, value as u64),
    }
}

/// What all spans of a process have in common: the resource, ready to be put before them.
#[derive(Debug, Clone)]
pub(super) struct Resource(Vec<u8>);

impl Resource {
    pub(super) fn new(attributes: &[(String, String)]) -> Self {
        let mut out = Vec::new();
        message(&mut out, 1, |out| {
            for (key, value) in attributes {
                attribute(out, 1, key, AttributeValue::Text(value));
            }
        });
        Self(out)
    }

    /// The request that hands over these spans.
    pub(super) fn request(&self, spans: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.0.len() + spans.len() + 64);
        message(&mut out, 1, |out| {
            out.extend_from_slice(&self.0);
            message(out, 2, |out| {
                message(out, 1, |out| {
                    bytes(out, 1, b"toolplane");
                    bytes(out, 2, env!("CARGO_PKG_VERSION").as_bytes());
                });
                out.extend_from_slice(spans);
            });
        });
        out
    }
}
