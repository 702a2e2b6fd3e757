//! Spans and metrics through the API of OpenTelemetry, for programs that bring their own SDK.

use opentelemetry::{InstrumentationScope, KeyValue};

use crate::conventions::{CONVENTIONS, SEMANTIC_CONVENTIONS};

mod instruments;
mod spans;

pub(crate) use self::spans::{ApiSpan, ApiTracer, SpanEnd};
pub use self::{instruments::OtelMetrics, spans::trace_id_of_call};

/// Returns the instrumentation scope of all spans and metrics.
fn scope() -> InstrumentationScope {
    InstrumentationScope::builder("toolplane")
        .with_version(env!("CARGO_PKG_VERSION"))
        .with_attributes([KeyValue::new(CONVENTIONS, SEMANTIC_CONVENTIONS)])
        .build()
}
