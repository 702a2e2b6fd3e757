//! Telemetry of calls: events, spans, logs, metrics, usage, health and alerts.
//!
//! - [`WatchLayer`] reports whole calls and [`WatchAttemptLayer`] single attempts. Both notify every
//!   [`Observe`](tool_core::Observe) that they were given, also if the call's future is dropped, write log lines, and have
//!   a [`Tracer`] make spans.
//! - [`Metrics`] is an observer that counts for Prometheus.
//! - [`HealthTracker`] is an observer that keeps a sliding window of attempts for each tool and upstream. [`AlertMonitor`]
//!   compares these numbers with thresholds and raises alerts; [`AlertLog`] and [`Webhook`] forward them.
//! - [`UsageRecorder`] is an observer that counts for each day, tool and principal, into a storage.
//! - [`AccessLog`] logs what sandboxes decide about the accesses of programs, [`AuthoringLog`] what agents make. [`BreakerLog`], [`DefinitionLog`], [`SourceLog`] and [`SwitchLog`] log changes of circuit breakers, of servers, and of tools that an
//!   operator switches off.
//!
//! The two layers need no settings and no other layer. Metrics of calls need [`WatchLayer`]; metrics of attempts, health and
//! alerts need [`WatchAttemptLayer`].
//!
//! # Examples
//! ```
//! use std::sync::Arc;
//!
//! use tool_core::{
//!     Arguments, CallContext, Invoke, Layers, Observe, Observers, RawJson, TargetBackend, Tool, ToolError, invoke_fn,
//! };
//! use tool_observe::{Metrics, WatchAttemptLayer, WatchLayer};
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), ToolError> {
//!     let metrics = Arc::new(Metrics::new());
//!     let observers: Observers = [metrics.clone() as Arc<dyn Observe>].into_iter().collect();
//!     let stack = Layers::outermost(WatchLayer::new(observers.clone()))
//!         .then(WatchAttemptLayer::new(observers))
//!         .around(TargetBackend);
//!     let tool = Tool::builder("hello").run(invoke_fn(|_| async { Ok::<_, ToolError>(RawJson::from("hello")) }));
//!     stack.invoke(&mut CallContext::local(&tool, Arguments::none())).await?;
//!     assert!(metrics.render().contains(r#"tool="hello""#));
//!     Ok(())
//! }
//! ```
//!
//! # Features
//! `otel` adds spans and metrics by the OpenTelemetry SDK of the host program: see `Tracer::global` and `OtelMetrics`.

mod alerts;
mod conventions;
mod health;
mod logs;
mod metrics;
mod milliseconds;
#[cfg(feature = "otel")]
mod otel;
mod record;
mod spans;
mod usage;
mod watch;

#[cfg(feature = "otel")]
pub use self::otel::{OtelMetrics, trace_id_of_call};
#[cfg(feature = "otel")]
pub use opentelemetry;
pub use tool_core::{sanitize_arguments, serde_json};

pub use self::{
    alerts::{
        AlertMonitor, AlertSettings, InvalidWebhookSecret, Webhook, WebhookError, WebhookMessage,
        WebhookTransport, webhook,
    },
    conventions::SEMANTIC_CONVENTIONS,
    health::HealthTracker,
    logs::{AccessLog, AlertLog, AuthoringLog, BreakerLog, DefinitionLog, SourceLog, SwitchLog},
    metrics::{Gauge, Metrics},
    record::health_record,
    spans::{AttributeValue, EndedSpan, Sampler, SpanEvent, SpanKind, SpanProcessor, Tracer},
    usage::{MemoryUsage, UsageRecorder, UsageSettings},
    watch::{Watch, WatchAttempt, WatchAttemptLayer, WatchLayer},
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
