use std::{
    fmt,
    mem::take,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tool_core::{CallContext, Instant, Outcome, ToolError, TraceContext};

use super::{
    Sampler, SpanEvent,
    event::SpanEventRecorder,
    template::{SpanFields, SpanTemplate},
};
#[cfg(feature = "otel")]
use crate::otel::{ApiSpan, ApiTracer, SpanEnd};

/// Makes the spans of calls and attempts, for the traces that its [`Sampler`] chooses, and passes ended spans to a
/// [`SpanProcessor`].
///
/// A span consists of ids alone until it ends, so it costs little more than writing its attributes then, and a call that
/// is not sampled costs almost nothing. Spans of `tracing` are for logs and are independent of these.
///
/// With the feature `otel`, a tracer can use the host program's provider through the API of OpenTelemetry: see
/// `Tracer::from_provider` and `Tracer::global`.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use tool_observe::{EndedSpan, Sampler, SpanProcessor, Tracer};
///
/// struct Printer;
///
/// impl SpanProcessor for Printer {
///     fn on_end(&self, span: EndedSpan) {
///         println!("{} took {:?}", span.name(), span.elapsed);
///     }
/// }
///
/// let tracer = Tracer::new(Sampler::DEFAULT, Arc::new(Printer));
/// # let _ = tracer;
/// ```
#[derive(Clone)]
pub struct Tracer(Inner);

#[derive(Clone)]
enum Inner {
    /// Our own spans, which consist of ids until they end.
    Own {
        sampler: Sampler,
        processor: Arc<dyn SpanProcessor>,
    },
    /// Spans of the host's SDK, which samples and exports them.
    #[cfg(feature = "otel")]
    Api(ApiTracer),
}

/// Receiver of ended spans, such as an exporter.
pub trait SpanProcessor: Send + Sync {
    /// Takes a span that has ended. Every call runs this method: return at once and never block. The span's attributes
    /// can be read later, when no call waits.
    fn on_end(&self, span: EndedSpan);
}

/// A span that has ended, with its attributes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EndedSpan {
    /// Trace id, and the span's own id.
    pub context: TraceContext,
    /// Parent span: the caller's, or the call's for an attempt.
    pub parent: Option<TraceContext>,
    /// Time at which the span began.
    pub start: SystemTime,
    /// Duration of the span.
    pub elapsed: Duration,
    /// Events of layers during the call, oldest first, up to 32. An attempt has none.
    pub events: Vec<SpanEvent>,
    /// Number of events that were dropped since there were more.
    pub n_more_events: u32,
    pub(crate) template: SpanTemplate,
    pub(crate) fields: SpanFields,
}

/// Kind of a span: a call or an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpanKind {
    /// A whole call.
    Call,
    /// One attempt of a call.
    Attempt,
}

/// A span that has begun and not ended.
#[derive(Debug)]
pub(crate) struct StartedSpan {
    is_recorded: bool,
    /// Recorder of the events of a call that is recorded.
    recorder: Option<Arc<SpanEventRecorder>>,
    /// Trace context of the call before the span, restored when the span ends.
    outer: Option<TraceContext>,
    /// Span of the host's SDK, if the SDK makes the spans.
    #[cfg(feature = "otel")]
    api: Option<ApiSpan>,
}

impl StartedSpan {
    /// Returns `true` if the span is exported when it ends.
    pub(crate) fn is_recorded(&self) -> bool {
        self.is_recorded
    }

    /// Returns the OpenTelemetry context in which the span is active, if the host's SDK made it.
    #[cfg(feature = "otel")]
    pub(crate) fn api_context(&self) -> Option<&opentelemetry::Context> {
        self.api.as_ref().map(ApiSpan::context)
    }
}

impl Tracer {
    /// Creates a tracer that passes the spans of sampled traces to `processor`.
    #[must_use]
    pub fn new(sampler: Sampler, processor: Arc<dyn SpanProcessor>) -> Self {
        Self(Inner::Own { sampler, processor })
    }

    /// Creates a tracer from a provider of the host program. The provider's SDK samples and exports the spans. A call
    /// without a trace context becomes a child of the span that is active where the call is made.
    #[cfg(feature = "otel")]
    #[must_use]
    pub fn from_provider<P>(provider: &P) -> Self
    where
        P: opentelemetry::trace::TracerProvider,
        P::Tracer: Send + Sync + 'static,
        <P::Tracer as opentelemetry::trace::Tracer>::Span: Send + Sync + 'static,
    {
        Self(Inner::Api(ApiTracer::from_provider(provider)))
    }

    /// Creates a tracer from the global provider of OpenTelemetry. A provider that the host sets later is found within a
    /// second. Until then, trace contexts of callers are forwarded unchanged.
    #[cfg(feature = "otel")]
    #[must_use]
    pub fn global() -> Self {
        Self(Inner::Api(ApiTracer::global()))
    }

    /// Begins a span and makes it the call's trace context. If it is a recorded span of a whole call, it records the
    /// events of layers from now on.
    pub(crate) fn begin(&self, cx: &mut CallContext, kind: SpanKind, start: Instant) -> StartedSpan {
        let mut span = match &self.0 {
            Inner::Own { sampler, .. } => begin(*sampler, cx, kind),
            #[cfg(feature = "otel")]
            Inner::Api(tracer) => begin_by_api(tracer, cx, kind),
        };
        let has_events = span.is_recorded && kind == SpanKind::Call;
        span.recorder = has_events.then(|| Arc::new(SpanEventRecorder::new(start)));
        if let Some(recorder) = &span.recorder {
            cx.observers = take(&mut cx.observers).with_call_observer(recorder.clone());
        }
        span
    }

    /// Passes an ended span on, and restores the call's trace context.
    pub(crate) fn end(
        &self,
        cx: &mut CallContext,
        started: &mut StartedSpan,
        kind: SpanKind,
        elapsed: Duration,
        result: Option<&Result<Outcome, ToolError>>,
    ) {
        let own = cx.trace.take();
        let (events, n_more_events) = started
            .recorder
            .take()
            .map(|recorder| recorder.close())
            .unwrap_or_default();
        match &self.0 {
            Inner::Own { processor, .. } => {
                if let Some(context) = own.filter(|_| started.is_recorded) {
                    let now = cx.clock.wall();
                    processor.on_end(EndedSpan {
                        context,
                        parent: started.outer.clone(),
                        start: now.checked_sub(elapsed).unwrap_or(now),
                        elapsed,
                        events,
                        n_more_events,
                        template: SpanTemplate::new(cx, kind, result),
                        fields: SpanFields::new(cx, kind, result),
                    });
                }
            }
            #[cfg(feature = "otel")]
            Inner::Api(_) => {
                if let Some(span) = started.api.take() {
                    span.end(&SpanEnd {
                        cx,
                        kind,
                        elapsed,
                        result,
                        events,
                        n_more_events,
                    });
                }
            }
        }
        cx.trace = started.outer.take();
    }
}

fn begin(sampler: Sampler, cx: &mut CallContext, kind: SpanKind) -> StartedSpan {
    let outer = cx.trace.take();
    let parent = outer.as_ref();
    let trace_id = parent.map_or(cx.correlation_id.0.max(1), |parent| parent.trace_id);
    let is_recorded = match (kind, parent) {
        (SpanKind::Attempt, Some(call)) => call.is_sampled(),
        _ => sampler.is_sampled(parent, trace_id),
    };
    let other_flags = parent.map_or(0, |parent| parent.flags & !TraceContext::SAMPLED);
    cx.trace = Some(TraceContext {
        trace_id,
        span_id: span_id(cx, parent),
        flags: other_flags | u8::from(is_recorded),
        tracestate: parent.and_then(|parent| parent.tracestate.clone()),
    });
    StartedSpan {
        is_recorded,
        recorder: None,
        outer,
        #[cfg(feature = "otel")]
        api: None,
    }
}

/// Begins a span of the host's SDK. If the SDK makes none, the caller's trace context stays.
#[cfg(feature = "otel")]
fn begin_by_api(tracer: &ApiTracer, cx: &mut CallContext, kind: SpanKind) -> StartedSpan {
    let api = tracer.begin(cx, kind);
    let outer = match &api {
        Some(span) => cx.trace.replace(span.trace()),
        None => cx.trace.clone(),
    };
    StartedSpan {
        is_recorded: api.as_ref().is_some_and(ApiSpan::is_recording),
        recorder: None,
        outer,
        api,
    }
}

/// Returns a unique span id, mixed from the call's random id, the parent span, the attempt and the time.
fn span_id(cx: &CallContext, parent: Option<&TraceContext>) -> u64 {
    let correlation = cx.correlation_id.0;
    let parent_id = parent.map_or(0, |parent| parent.span_id);
    let now = cx.clock.now().since(tool_core::Instant::default()).as_nanos() as u64;
    let seed =
        (correlation as u64) ^ ((correlation >> 64) as u64).rotate_left(32) ^ parent_id.rotate_left(16);
    mix(mix(seed.wrapping_add(u64::from(cx.attempt))) ^ now).max(1)
}

/// Finalizer of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators"): every bit of the
/// result depends on every bit of the number.
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Inner::Own { sampler, .. } => f
                .debug_struct("Tracer")
                .field("sampler", sampler)
                .finish_non_exhaustive(),
            #[cfg(feature = "otel")]
            Inner::Api(tracer) => tracer.fmt(f),
        }
    }
}
