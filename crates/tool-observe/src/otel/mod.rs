//! Spans and metrics through the API of OpenTelemetry, for programs that bring their own SDK.

mod instruments;
mod spans;

pub use self::instruments::OtelMetrics;
pub(crate) use self::spans::{ApiSpan, ApiTracer, End};
