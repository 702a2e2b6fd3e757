use std::sync::Arc;
#[cfg(feature = "otel")]
use std::sync::OnceLock;

use tool_core::Observe;
#[cfg(feature = "otel")]
use tool_observe::OtelMetrics;
use tool_observe::Tracer;

use crate::Builder;

/// Tracer and metrics of a toolplane. Default: those of the global providers of OpenTelemetry with the feature
/// `otel`, else none.
#[cfg_attr(not(feature = "otel"), derive(Default))]
pub(crate) struct Telemetry {
    pub(crate) tracer: Option<Tracer>,
    #[cfg(feature = "otel")]
    pub(crate) metrics: Meters,
}

/// Meters that count calls.
#[cfg(feature = "otel")]
#[derive(Default)]
pub(crate) enum Meters {
    /// Meters of the global provider. Instruments are created when the toolplane is built.
    #[default]
    Global,
    Given(Option<Box<OtelMetrics>>),
}

#[cfg(feature = "otel")]
impl Default for Telemetry {
    fn default() -> Self {
        Self {
            tracer: Some(Tracer::global()),
            metrics: Meters::default(),
        }
    }
}

impl Telemetry {
    /// Returns the tracer and the observer that counts.
    pub(crate) fn into_parts(self) -> (Option<Tracer>, Option<Arc<dyn Observe>>) {
        #[cfg(feature = "otel")]
        let observer = match self.metrics {
            Meters::Global => Some(global_metrics() as Arc<dyn Observe>),
            Meters::Given(metrics) => {
                metrics.map(|metrics| Arc::<OtelMetrics>::from(metrics) as Arc<dyn Observe>)
            }
        };
        #[cfg(not(feature = "otel"))]
        let observer = None;
        (self.tracer, observer)
    }
}

/// Returns the metrics that all toolplanes of this program share unless they have their own: instruments with equal
/// names are one for the meter provider, and the figures of one toolplane would replace those of another.
#[cfg(feature = "otel")]
fn global_metrics() -> Arc<OtelMetrics> {
    static METRICS: OnceLock<Arc<OtelMetrics>> = OnceLock::new();
    METRICS
        .get_or_init(|| Arc::new(OtelMetrics::global(Arc::default())))
        .clone()
}

impl Builder {
    /// Sets the tracer of calls and attempts. Outgoing requests then carry the trace context of its spans. With
    /// `None` no spans are created, and a caller's trace context is forwarded unchanged. Default: the global tracer
    /// provider of OpenTelemetry with the feature `otel`, else `None`.
    pub fn tracer(mut self, tracer: impl Into<Option<Tracer>>) -> Self {
        self.telemetry.tracer = tracer.into();
        self
    }

    /// Sets the metrics of calls and the meters that they use. With `None` nothing is counted. Default: the global
    /// meter provider of OpenTelemetry; one that is set later is used within a second of the next call.
    #[cfg(feature = "otel")]
    pub fn metrics(mut self, metrics: impl Into<Option<OtelMetrics>>) -> Self {
        self.telemetry.metrics = Meters::Given(metrics.into().map(Box::new));
        self
    }
}
