use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use opentelemetry::{
    KeyValue, global,
    metrics::{Histogram, Meter, MeterProvider},
};
use parking_lot::{Mutex, RwLock};
use tool_core::{CallContext, Event, Observe, Outcome, SourceState, Target};

use super::scope;
use crate::{
    Metrics, conventions,
    metrics::{BYTES, BucketBounds, Family, FamilyKind, MetricsPage, SECONDS, SampleValue},
};

/// Interval at which the global provider is polled.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const SCOPE: &str = "toolplane";

/// Exports [`Metrics`] to the meters of the host program, by the API of OpenTelemetry.
///
/// Counters and gauges are read from the metrics when the host's SDK collects; durations and sizes are recorded when they
/// are observed. An instrument has the name of the metric in `/metrics` without the unit: `toolplane.call_duration` in
/// seconds is `toolplane_call_duration_seconds` there, with the same attributes as labels.
///
/// # Cardinality
/// By default the SDK keeps 2,000 attribute sets for each instrument and counts the rest together. Programs with more than
/// about 300 tools raise that limit with a view.
pub struct OtelMetrics {
    metrics: Arc<Metrics>,
    provider: Provider,
    instruments: RwLock<Option<Arc<Recorder>>>,
    /// Number of registered gauges that have an instrument.
    n_gauges: AtomicUsize,
    /// Time of the next poll, in milliseconds of the clock of calls.
    next_poll: AtomicU64,
}

enum Provider {
    Given,
    /// Global provider as of the last poll.
    Global(Mutex<Option<Arc<dyn MeterProvider + Send + Sync>>>),
}

/// Instruments of one meter. Callbacks read counters and gauges; OpenTelemetry has no observable histograms, so those are
/// recorded.
struct Recorder {
    meter: Meter,
    call_seconds: Histogram<f64>,
    attempt_seconds: Histogram<f64>,
    queue_seconds: Histogram<f64>,
    start_seconds: Histogram<f64>,
    argument_bytes: Histogram<u64>,
    result_bytes: Histogram<u64>,
}

impl OtelMetrics {
    /// Creates instruments from a meter of this provider.
    #[must_use]
    pub fn from_provider(metrics: Arc<Metrics>, provider: &dyn MeterProvider) -> Self {
        let this = Self::new(metrics, Provider::Given);
        this.instrument(provider.meter_with_scope(scope()));
        this
    }

    /// Creates instruments from the global provider. A provider that the host sets later gets them within a second of the
    /// next call.
    #[must_use]
    pub fn global(metrics: Arc<Metrics>) -> Self {
        let this = Self::new(metrics, Provider::Global(Mutex::default()));
        this.poll();
        this
    }

    fn new(metrics: Arc<Metrics>, provider: Provider) -> Self {
        Self {
            metrics,
            provider,
            instruments: RwLock::default(),
            n_gauges: AtomicUsize::new(0),
            next_poll: AtomicU64::new(0),
        }
    }

    /// Creates all instruments from this meter, instead of earlier ones.
    fn instrument(&self, meter: Meter) {
        self.n_gauges.store(self.metrics.n_gauges(), Ordering::Relaxed);
        let mut page = MetricsPage::default();
        self.metrics.read(&mut page);
        for family in page.families() {
            observe(&meter, &family, Arc::downgrade(&self.metrics));
        }
        *self.instruments.write() = Some(Arc::new(Recorder::new(meter)));
    }

    /// Creates instruments for what was added since the last poll: a provider, or gauges.
    fn poll(&self) {
        if let Provider::Global(known) = &self.provider {
            let provider = global::meter_provider();
            let mut known = known.lock();
            if !known.as_ref().is_some_and(|known| Arc::ptr_eq(known, &provider)) {
                *known = Some(provider.clone());
                drop(known);
                return self.instrument(provider.meter_with_scope(scope()));
            }
        }
        let n_gauges = self.metrics.n_gauges();
        let n_known = self.n_gauges.swap(n_gauges, Ordering::Relaxed);
        if let Some(recorder) = self.recorder().filter(|_| n_known < n_gauges) {
            let mut page = MetricsPage::default();
            self.metrics.read_gauges(&mut page, n_known);
            for family in page.families() {
                observe(&recorder.meter, &family, Arc::downgrade(&self.metrics));
            }
        }
    }

    fn poll_if_due(&self, cx: &CallContext) {
        let now = cx.clock.now().since(tool_core::Instant::default());
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let next = now.saturating_add(POLL_INTERVAL.as_millis() as u64);
        // Calls may use different clocks: a time far ahead is another clock's.
        let known = self.next_poll.load(Ordering::Relaxed);
        if known <= now || known > next {
            self.next_poll.store(next, Ordering::Relaxed);
            self.poll();
        }
    }

    fn recorder(&self) -> Option<Arc<Recorder>> {
        self.instruments.read().clone()
    }
}

impl Observe for OtelMetrics {
    fn observe(&self, event: &Event<'_>) {
        if let Event::CallStarted { cx, .. } = event {
            self.poll_if_due(cx);
        }
        self.metrics.observe(event);
        if Recorder::records(event)
            && let Some(recorder) = self.recorder()
        {
            recorder.record(event);
        }
    }
}

/// Creates the observable instrument of a counter or a gauge.
fn observe(meter: &Meter, family: &Family, metrics: Weak<Metrics>) {
    let (name, unit) = instrument(&family.name);
    let source = family.name.clone();
    let samples = move |observe: &mut dyn FnMut(f64, &[KeyValue])| {
        let Some(metrics) = metrics.upgrade() else { return };
        let mut page = MetricsPage::only(&source);
        metrics.read(&mut page);
        for family in page.families().iter().filter(|family| family.name == source) {
            for sample in &family.samples {
                let labels = sample.labels.iter();
                let attributes: Vec<_> = labels
                    .map(|(label, value)| KeyValue::new(label.clone(), value.clone()))
                    .collect();
                if let SampleValue::Number(value) = sample.value {
                    observe(value, &attributes);
                }
            }
        }
    };
    let help = family.help.clone();
    match family.kind {
        FamilyKind::Counter => {
            let _ = meter
                .u64_observable_counter(name)
                .with_description(help)
                .with_unit(unit)
                .with_callback(move |observer| {
                    samples(&mut |value, attributes| observer.observe(value as u64, attributes));
                })
                .build();
        }
        FamilyKind::Gauge => {
            let _ = meter
                .f64_observable_gauge(name)
                .with_description(help)
                .with_unit(unit)
                .with_callback(move |observer| {
                    samples(&mut |value, attributes| observer.observe(value, attributes));
                })
                .build();
        }
        FamilyKind::Histogram => {}
    }
}

/// Returns the name and unit of the instrument for a metric of Prometheus.
fn instrument(family: &str) -> (String, &'static str) {
    let name = family.strip_suffix("_total").unwrap_or(family);
    let (name, unit) = if let Some(name) = name.strip_suffix("_seconds") {
        (name, "s")
    } else if let Some(name) = name.strip_suffix("_bytes") {
        (name, "By")
    } else {
        (name, "")
    };
    (format!("{SCOPE}.{name}"), unit)
}

impl Recorder {
    fn new(meter: Meter) -> Self {
        let bounds = |bounds: &BucketBounds| {
            bounds
                .upper
                .iter()
                .map(|bound| *bound as f64 / bounds.scale)
                .collect()
        };
        let seconds = |family: &str| {
            let (name, unit) = instrument(family);
            meter
                .f64_histogram(name)
                .with_unit(unit)
                .with_boundaries(bounds(&SECONDS))
                .build()
        };
        let bytes = |family: &str| {
            let (name, unit) = instrument(family);
            meter
                .u64_histogram(name)
                .with_unit(unit)
                .with_boundaries(bounds(&BYTES))
                .build()
        };
        Self {
            call_seconds: seconds("call_duration_seconds"),
            attempt_seconds: seconds("attempt_duration_seconds"),
            queue_seconds: seconds("queue_wait_seconds"),
            start_seconds: seconds("source_start_seconds"),
            argument_bytes: bytes("argument_bytes"),
            result_bytes: bytes("result_bytes"),
            meter,
        }
    }

    /// Returns `true` if the event has a duration or a size.
    fn records(event: &Event<'_>) -> bool {
        matches!(
            event,
            Event::CallStarted { .. }
                | Event::CallFinished { .. }
                | Event::AttemptFinished { .. }
                | Event::Queued { .. }
                | Event::SourceChanged { .. }
        )
    }

    fn record(&self, event: &Event<'_>) {
        let tool = |cx: &CallContext| [tool(&cx.target)];
        match event {
            Event::CallStarted { cx, .. } => {
                self.argument_bytes
                    .record(cx.arguments.raw().len() as u64, &tool(cx));
            }
            Event::CallFinished {
                cx, result, elapsed, ..
            } => {
                let attributes = tool(cx);
                self.call_seconds.record(elapsed.as_secs_f64(), &attributes);
                if let Some(Ok(Outcome::Reply(reply))) = result {
                    self.result_bytes.record(reply.raw().len() as u64, &attributes);
                }
            }
            Event::AttemptFinished { cx, elapsed, .. } => {
                self.attempt_seconds.record(elapsed.as_secs_f64(), &tool(cx));
            }
            Event::Queued { cx, waited, .. } => self.queue_seconds.record(waited.as_secs_f64(), &tool(cx)),
            Event::SourceChanged { change, .. } if change.from == SourceState::Starting => {
                let source = [KeyValue::new("source", change.source.to_string())];
                self.start_seconds.record(change.after.as_secs_f64(), &source);
            }
            _ => {}
        }
    }
}

/// Returns the attribute `tool`. Its value is the tool's name, or the method if the target is not a tool.
fn tool(target: &Target) -> KeyValue {
    match target {
        Target::Tool(tool) => KeyValue::new("tool", tool.name().clone()),
        target => KeyValue::new("tool", conventions::method(target)),
    }
}

impl fmt::Debug for OtelMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtelMetrics").finish_non_exhaustive()
    }
}
