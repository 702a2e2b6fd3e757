//! Spans in the words of OTLP: `opentelemetry/proto/trace/v1/trace.proto`, version 1.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::protobuf::{begin, bytes, bytes_length, fixed32, fixed64, message, number, number_length};
use crate::{AttributeValue, EndedSpan, SpanKind, described::Form};

/// Spans one after another, each as a field of `ScopeSpans`: the list that is sent.
#[derive(Debug, Default)]
pub(super) struct SpanList {
    out: Vec<u8>,
    /// What spans of one form have in common, written once.
    blocks: Vec<(Form, Vec<u8>)>,
}

/// How many forms are kept in mind. With more in one batch, blocks are written again.
const MAX_BLOCKS: usize = 64;

impl SpanList {
    pub(super) fn push(&mut self, span: &EndedSpan) {
        let known = self.blocks.iter().position(|(form, _)| *form == span.form);
        let at = known.unwrap_or_else(|| {
            if self.blocks.len() == MAX_BLOCKS {
                self.blocks.clear();
            }
            self.blocks.push((span.form.clone(), block(&span.form)));
            self.blocks.len() - 1
        });
        let block = &self.blocks[at].1;
        message(&mut self.out, 2, |out| write(out, span, block));
    }
}

/// Writes what a span says, of which the block is a part. Fields of a message may stand in any order.
fn write(out: &mut Vec<u8>, span: &EndedSpan, block: &[u8]) {
    let context = &span.context;
    bytes(out, 1, &context.trace_id.to_be_bytes());
    bytes(out, 2, &context.span_id.to_be_bytes());
    if let Some(state) = &context.tracestate {
        bytes(out, 3, state.as_bytes());
    }
    if let Some(parent) = &span.parent {
        bytes(out, 4, &parent.span_id.to_be_bytes());
    }
    out.extend_from_slice(block);
    let start = since_epoch(span.start);
    fixed64(out, 7, nanoseconds(start));
    fixed64(out, 8, nanoseconds(start.saturating_add(span.elapsed)));
    let kind = span.form.kind;
    span.details
        .attributes(kind, &mut |key, value| attribute(out, 9, key, value));
    for event in &span.events {
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
    fixed32(out, 16, flags(span));
}

/// The name, the kind and the attributes that all spans of a form have.
fn block(form: &Form) -> Vec<u8> {
    let mut out = Vec::new();
    bytes(&mut out, 5, form.name().concat().as_bytes());
    number(&mut out, 6, kind(form));
    form.attributes(&mut |key, value| attribute(&mut out, 9, key, value));
    out
}

const KIND_INTERNAL: u64 = 1;
const KIND_SERVER: u64 = 2;
const KIND_CLIENT: u64 = 3;
const STATUS_ERROR: u64 = 2;
/// The bits that tell that it is known whether the parent is of another process, and that it is.
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

fn kind(form: &Form) -> u64 {
    match form.kind {
        SpanKind::Attempt if form.protocol.is_some() => KIND_CLIENT,
        // Nothing leaves the process.
        SpanKind::Attempt => KIND_INTERNAL,
        // It came over a connection.
        SpanKind::Call if form.has_client => KIND_SERVER,
        SpanKind::Call => KIND_INTERNAL,
    }
}

fn flags(span: &EndedSpan) -> u32 {
    let is_remote = span.form.kind == SpanKind::Call && span.parent.is_some();
    let remote = if is_remote { IS_REMOTE } else { 0 };
    u32::from(span.context.flags) | HAS_IS_REMOTE | remote
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

/// What all spans of a process have in common, ready to be put before them.
#[derive(Debug, Clone)]
pub(super) struct Resource {
    resource: Vec<u8>,
    scope: Vec<u8>,
}

impl Resource {
    pub(super) fn new(attributes: &[(String, String)]) -> Self {
        let (mut resource, mut scope) = (Vec::new(), Vec::new());
        message(&mut resource, 1, |out| {
            for (key, value) in attributes {
                attribute(out, 1, key, AttributeValue::Text(value));
            }
        });
        message(&mut scope, 1, |out| {
            bytes(out, 1, b"toolplane");
            bytes(out, 2, env!("CARGO_PKG_VERSION").as_bytes());
        });
        Self { resource, scope }
    }

    /// The request that hands over these spans.
    pub(super) fn request(&self, SpanList { out: spans, .. }: &SpanList) -> Vec<u8> {
        let of_scope = self.scope.len() + spans.len();
        let of_resource = self.resource.len() + bytes_length(of_scope);
        let mut out = Vec::with_capacity(bytes_length(of_resource));
        begin(&mut out, 1, of_resource);
        out.extend_from_slice(&self.resource);
        begin(&mut out, 2, of_scope);
        out.extend_from_slice(&self.scope);
        out.extend_from_slice(spans);
        out
    }
}
