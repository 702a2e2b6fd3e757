//! What was called and how it went. [`WatchLayer`] stands outermost and tells of whole calls, [`WatchAttemptLayer`] stands
//! around one attempt; both tell every [`tool_core::Observe`] that they were given, also when the call's future is
//! dropped, log what happens, and have a [`Tracer`] make the spans of traces. [`HealthTracker`] is such an observer: it keeps
//! the figures of the last minutes, which [`AlertMonitor`] looks at; [`AlertLog`] and [`Webhook`] pass on what it finds. [`BreakerLog`] tells of circuit breakers, [`SwitchLog`] of tools that are switched off by hand, [`SourceLog`] tells the
//! log how servers fare. [`Metrics`] is another, for Prometheus.
//!
//! # Features
//! `otel` has spans and metrics made by the SDK that the host program brings: see `Tracer::global` and `OtelMetrics`.

mod alert_log;
mod alerts;
mod attempt;
mod breaker_log;
mod call;
mod conventions;
mod described;
mod exposition;
mod health_book;
mod histogram;
mod journal;
mod log;
mod metrics;
mod milliseconds;
#[cfg(feature = "otel")]
mod otel;
mod record;
mod series;
mod signature;
mod source_log;
mod switch_log;
mod text_format;
mod times;
mod tracer;
mod vitals;
mod watch;
mod webhook;

#[cfg(feature = "otel")]
pub use self::otel::{OtelMetrics, trace_id_of_call};
pub use tool_core::sanitize_arguments;

pub use self::{
    alert_log::AlertLog,
    alerts::{AlertMonitor, AlertSettings},
    attempt::{WatchAttempt, WatchAttemptLayer},
    breaker_log::BreakerLog,
    call::{Watch, WatchLayer},
    conventions::SEMANTIC_CONVENTIONS,
    described::AttributeValue,
    health_book::HealthTracker,
    journal::SpanEvent,
    metrics::{Gauge, Metrics},
    record::health_record,
    signature::InvalidWebhookSecret,
    source_log::SourceLog,
    switch_log::SwitchLog,
    tracer::{EndedSpan, Sampler, SpanKind, SpanProcessor, Tracer},
    webhook::{WebhookTransport, WebhookError, Webhook, WebhookMessage, webhook},
};
