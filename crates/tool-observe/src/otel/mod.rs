//! Spans and metrics through the API of OpenTelemetry, for programs that bring their own SDK.

mod spans;

pub(crate) use self::spans::{ApiSpan, ApiTracer, End};
