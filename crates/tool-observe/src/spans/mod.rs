//! Spans of calls and attempts, in the terms of OpenTelemetry.

mod event;
mod sampler;
mod template;
mod tracer;

#[cfg(feature = "otel")]
pub(crate) use self::template::{SpanFields, SpanTemplate};
pub(crate) use self::tracer::StartedSpan;
pub use self::{
    event::SpanEvent,
    sampler::Sampler,
    template::AttributeValue,
    tracer::{EndedSpan, SpanKind, SpanProcessor, Tracer},
};
