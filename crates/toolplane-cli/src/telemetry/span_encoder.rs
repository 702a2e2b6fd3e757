//! Encoder of spans for OTLP over HTTP.
//!
//! The exporter is the library's; only the bytes of its requests are made here. The library's encoder builds a tree of messages
//! first and costs three times as much, see ADR 040. The random test compares both.
//!
//! Source: `opentelemetry/proto/trace/v1/trace.proto` of opentelemetry-proto 1.7.

use std::time::{SystemTime, UNIX_EPOCH};

use opentelemetry::{
    Array, InstrumentationScope, KeyValue, SpanId, StringValue, Value,
    trace::{Event, Link, SpanKind, Status},
};
use opentelemetry_sdk::{Resource, trace::SpanData};

use super::protobuf::{begin, bytes, bytes_length, fixed32, fixed64, message, number, number_length};

/// Flag bits that say whether the parent is in another process, and that this is known.
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

/// Encodes an `ExportTraceServiceRequest`.
pub(super) fn encode(spans: &[SpanData], resource: &Resource) -> Vec<u8> {
    let mut scopes: Vec<(&InstrumentationScope, Vec<u8>)> = Vec::new();
    for span in spans {
        let scope = &span.instrumentation_scope;
        let at = scopes.iter().position(|(known, _)| *known == scope);
        let at = at.unwrap_or_else(|| {
            scopes.push((scope, Vec::with_capacity(spans.len() * 384)));
            scopes.len() - 1
        });
        message(&mut scopes[at].1, 2, |out| write_span(out, span));
    }
    let mut of_resource = Vec::new();
    message(&mut of_resource, 1, |out| {
        resource
            .iter()
            .for_each(|(key, value)| attribute(out, 1, key.as_str(), value));
    });
    if let Some(url) = resource.schema_url() {
        bytes(&mut of_resource, 3, url.as_bytes());
    }
    let scopes: Vec<(Vec<u8>, Vec<u8>)> = scopes
        .into_iter()
        .map(|(scope, spans)| (scope_fields(scope), spans))
        .collect();
    let length: usize = scopes
        .iter()
        .map(|(fields, spans)| bytes_length(fields.len() + spans.len()))
        .sum();
    let mut out = Vec::with_capacity(of_resource.len() + length + 16);
    begin(&mut out, 1, of_resource.len() + length);
    out.extend_from_slice(&of_resource);
    for (fields, spans) in &scopes {
        begin(&mut out, 2, fields.len() + spans.len());
        out.extend_from_slice(fields);
        out.extend_from_slice(spans);
    }
    out
}

/// Encodes the fields of `ScopeSpans` other than the spans.
fn scope_fields(scope: &InstrumentationScope) -> Vec<u8> {
    let mut out = Vec::new();
    message(&mut out, 1, |out| {
        text(out, 1, scope.name());
        text(out, 2, scope.version().unwrap_or_default());
        attributes(out, 3, scope.attributes());
    });
    text(&mut out, 3, scope.schema_url().unwrap_or_default());
    out
}

fn write_span(out: &mut Vec<u8>, span: &SpanData) {
    let context = &span.span_context;
    bytes(out, 1, &context.trace_id().to_bytes());
    bytes(out, 2, &context.span_id().to_bytes());
    text(out, 3, &context.trace_state().header());
    if span.parent_span_id != SpanId::INVALID {
        bytes(out, 4, &span.parent_span_id.to_bytes());
    }
    text(out, 5, &span.name);
    number(out, 6, kind(&span.span_kind));
    fixed64(out, 7, nanoseconds(span.start_time));
    fixed64(out, 8, nanoseconds(span.end_time));
    attributes(out, 9, span.attributes.iter());
    count(out, 10, span.dropped_attributes_count);
    for event in span.events.iter() {
        message(out, 11, |out| write_event(out, event));
    }
    count(out, 12, span.events.dropped_count);
    for link in span.links.iter() {
        message(out, 13, |out| write_link(out, link));
    }
    count(out, 14, span.links.dropped_count);
    message(out, 15, |out| match &span.status {
        Status::Unset => {}
        Status::Ok => number(out, 3, 1),
        Status::Error { description } => {
            text(out, 2, description);
            number(out, 3, 2);
        }
    });
    fixed32(
        out,
        16,
        flags(context.trace_flags().to_u8(), span.parent_span_is_remote),
    );
}

fn write_event(out: &mut Vec<u8>, event: &Event) {
    fixed64(out, 1, nanoseconds(event.timestamp));
    text(out, 2, &event.name);
    attributes(out, 3, event.attributes.iter());
    count(out, 4, event.dropped_attributes_count);
}

fn write_link(out: &mut Vec<u8>, link: &Link) {
    let context = &link.span_context;
    bytes(out, 1, &context.trace_id().to_bytes());
    bytes(out, 2, &context.span_id().to_bytes());
    text(out, 3, &context.trace_state().header());
    attributes(out, 4, link.attributes.iter());
    count(out, 5, link.dropped_attributes_count);
    fixed32(out, 6, flags(context.trace_flags().to_u8(), context.is_remote()));
}

fn kind(kind: &SpanKind) -> u64 {
    match kind {
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
        SpanKind::Producer => 4,
        SpanKind::Consumer => 5,
    }
}

fn flags(flags: u8, is_remote: bool) -> u32 {
    u32::from(flags) | HAS_IS_REMOTE | if is_remote { IS_REMOTE } else { 0 }
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Appends a text unless it is empty, which is the default of its field.
fn text(out: &mut Vec<u8>, field: u64, value: &str) {
    if !value.is_empty() {
        bytes(out, field, value.as_bytes());
    }
}

/// Appends a number unless it is 0, which is the default of its field.
fn count(out: &mut Vec<u8>, field: u64, value: u32) {
    if value > 0 {
        number(out, field, value.into());
    }
}

fn attributes<'a>(out: &mut Vec<u8>, field: u64, pairs: impl Iterator<Item = &'a KeyValue>) {
    pairs.for_each(|pair| attribute(out, field, pair.key.as_str(), &pair.value));
}

/// Appends a `KeyValue`.
fn attribute(out: &mut Vec<u8>, field: u64, key: &str, value: &Value) {
    // Texts and integers are nearly all of them: their lengths are known beforehand.
    let length = match value {
        Value::String(text) => bytes_length(text.as_str().len()),
        Value::I64(value) => number_length(*value as u64),
        _ => {
            return message(out, field, |out| {
                text(out, 1, key);
                message(out, 2, |out| any_value(out, value));
            });
        }
    };
    let of_key = if key.is_empty() {
        0
    } else {
        bytes_length(key.len())
    };
    begin(out, field, of_key + bytes_length(length));
    text(out, 1, key);
    begin(out, 2, length);
    any_value(out, value);
}

/// Appends the field of an `AnyValue`.
fn any_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::String(text) => bytes(out, 1, text.as_str().as_bytes()),
        Value::Bool(value) => number(out, 2, u64::from(*value)),
        Value::I64(value) => number(out, 3, *value as u64),
        Value::F64(value) => fixed64(out, 4, value.to_bits()),
        Value::Array(array) => message(out, 5, |out| any_values(out, array)),
        // The enum may grow; the library writes the text of what it does not know.
        other => bytes(out, 1, other.as_str().as_bytes()),
    }
}

/// Appends the values of an `ArrayValue`.
fn any_values(out: &mut Vec<u8>, array: &Array) {
    let mut add = |value: Value| message(out, 1, |out| any_value(out, &value));
    match array {
        Array::Bool(values) => values.iter().for_each(|value| add(Value::Bool(*value))),
        Array::I64(values) => values.iter().for_each(|value| add(Value::I64(*value))),
        Array::F64(values) => values.iter().for_each(|value| add(Value::F64(*value))),
        Array::String(values) => {
            let texts = values.iter().cloned();
            texts.for_each(|value: StringValue| add(Value::String(value)));
        }
        _ => {}
    }
}
