use std::{
    fmt,
    mem::take,
    sync::Arc,
    time::{Duration, SystemTime},
};

use tool_core::{CallContext, Instant, Outcome, ToolError, TraceContext};

#[cfg(feature = "otel")]
use crate::otel::{ApiSpan, ApiTracer, End};
use crate::{
    described::{Details, Form},
    journal::{Journal, SpanEvent},
};

/// Makes the spans of calls and attempts, of the traces that its [`Sampler`] chooses, and hands those that have ended to
/// whoever exports them.
///
/// A span is nothing but ids until it ends, so one costs little more than what is written of it then, and a call that is
/// not sampled costs next to nothing. Spans of `tracing` are for logs and know nothing of these.
///
/// With the feature `otel` a tracer can also be that of the host program, by the API of OpenTelemetry: see
/// `Tracer::from_provider` and `Tracer::global`.
#[derive(Clone)]
pub struct Tracer(Source);

#[derive(Clone)]
enum Source {
    /// Spans that are ids until they end.
    Own { sampler: Sampler, spans: Arc<dyn SpanProcessor> },
    /// Spans of the host's SDK, which samples and exports them.
    #[cfg(feature = "otel")]
    Api(ApiTracer),
}

/// Where spans go.
pub trait SpanProcessor: Send + Sync {
    /// Takes a span that has ended. It is called on the path of every call: return at once and never block. What the span
    /// says can be asked of it later, when no call waits.
    fn on_end(&self, span: EndedSpan);
}

/// A span that has ended, with what it says of its call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EndedSpan {
    /// Its trace, and its own id in it.
    pub context: TraceContext,
    /// The span that it belongs to: the caller's, or the call's for an attempt.
    pub parent: Option<TraceContext>,
    /// When it began.
    pub start: SystemTime,
    /// How long it took.
    pub elapsed: Duration,
    /// What layers did in the meantime, in the order of time: the first of it. An attempt has none.
    pub events: Vec<SpanEvent>,
    /// How many more of these there were.
    pub n_more_events: u32,
    pub(crate) form: Form,
    pub(crate) details: Details,
}

/// What a span is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpanKind {
    /// A whole call.
    Call,
    /// One attempt of a call.
    Attempt,
}

/// Chooses which traces are recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampler {
    /// Whether the choice of the caller holds, if it made one.
    pub follows_caller: bool,
    /// The share of the other traces that is recorded, from 0 to 1. The choice goes by the trace's id, so that everyone
    /// who chooses by it chooses the same.
    pub ratio: f64,
}

impl Sampler {
    /// Records what the caller records, and whatever begins here.
    pub const DEFAULT: Self = Self {
        follows_caller: true,
        ratio: 1.0,
    };

    fn takes(self, parent: Option<&TraceContext>, trace_id: u128) -> bool {
        if let Some(parent) = parent.filter(|_| self.follows_caller) {
            return parent.is_sampled();
        }
        // The last 63 bits as a share of all that they could be.
        let share = (trace_id as u64 >> 1) as f64 / (1_u64 << 63) as f64;
        share < self.ratio
    }
}

/// A span that has begun.
#[derive(Debug)]
pub(crate) struct Begun {
    is_recorded: bool,
    /// What happens to a call that is recorded.
    journal: Option<Arc<Journal>>,
    /// The context before, which holds again when the span has ended.
    outer: Option<TraceContext>,
    /// The span of the host's SDK, if it makes them.
    #[cfg(feature = "otel")]
    api: Option<ApiSpan>,
}

impl Begun {
    /// Whether anybody is told when the span ends.
    pub(crate) fn is_recorded(&self) -> bool {
        self.is_recorded
    }

    /// Returns the context of OpenTelemetry in which the span is active, if the host's SDK made it.
    #[cfg(feature = "otel")]
    pub(crate) fn api_context(&self) -> Option<&opentelemetry::Context> {
        self.api.as_ref().map(ApiSpan::context)
    }
}

impl Tracer {
    /// A tracer of the traces that this chooses.
    #[must_use]
    pub fn new(sampler: Sampler, spans: Arc<dyn SpanProcessor>) -> Self {
        Self(Source::Own { sampler, spans })
    }

    /// A tracer of a provider of the host program. Its SDK samples, and exports the spans; a call without a trace of its
    /// own belongs to the span that is active where it is made.
    #[cfg(feature = "otel")]
    #[must_use]
    pub fn from_provider<P>(provider: &P) -> Self
    where
        P: opentelemetry::trace::TracerProvider,
        P::Tracer: Send + Sync + 'static,
        <P::Tracer as opentelemetry::trace::Tracer>::Span: Send + Sync + 'static,
    {
        Self(Source::Api(ApiTracer::from_provider(provider)))
    }

    /// A tracer of the global provider of OpenTelemetry. A provider that the host sets later is found within a second;
    /// until then a caller's trace is passed on as it came.
    #[cfg(feature = "otel")]
    #[must_use]
    pub fn global() -> Self {
        Self(Source::Api(ApiTracer::global()))
    }

    /// Puts a span in the place of the call's trace context. If it is recorded and of a whole call, what layers tell of the
    /// call is kept for it from now on.
    pub(crate) fn begin(&self, cx: &mut CallContext, kind: SpanKind, start: Instant) -> Begun {
        let mut begun = match &self.0 {
            Source::Own { sampler, .. } => begin(*sampler, cx, kind),
            #[cfg(feature = "otel")]
            Source::Api(tracer) => begin_by_api(tracer, cx, kind),
        };
        let is_kept = begun.is_recorded && kind == SpanKind::Call;
        begun.journal = is_kept.then(|| Arc::new(Journal::new(start)));
        if let Some(journal) = &begun.journal {
            cx.observers = take(&mut cx.observers).with_call_observer(journal.clone());
        }
        begun
    }

    /// Hands on a span that has ended, and puts back the context before.
    pub(crate) fn end(
        &self,
        cx: &mut CallContext,
        begun: &mut Begun,
        kind: SpanKind,
        elapsed: Duration,
        result: Option<&Result<Outcome, ToolError>>,
    ) {
        let own = cx.trace.take();
        let (events, n_more_events) = begun
            .journal
            .take()
            .map(|journal| journal.close())
            .unwrap_or_default();
        match &self.0 {
            Source::Own { spans, .. } => {
                if let Some(context) = own.filter(|_| begun.is_recorded) {
                    let now = cx.clock.wall();
                    spans.ended(EndedSpan {
                        context,
                        parent: begun.outer.clone(),
                        start: now.checked_sub(elapsed).unwrap_or(now),
                        elapsed,
                        events,
                        n_more_events,
                        form: Form::of(cx, kind, result),
                        details: Details::of(cx, kind, result),
                    });
                }
            }
            #[cfg(feature = "otel")]
            Source::Api(_) => {
                if let Some(span) = begun.api.take() {
                    span.end(&End {
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
        cx.trace = begun.outer.take();
    }
}

fn begin(sampler: Sampler, cx: &mut CallContext, kind: SpanKind) -> Begun {
    let outer = cx.trace.take();
    let parent = outer.as_ref();
    let trace_id = parent.map_or(cx.correlation_id.0.max(1), |parent| parent.trace_id);
    let is_recorded = match (kind, parent) {
        (SpanKind::Attempt, Some(call)) => call.is_sampled(),
        _ => sampler.takes(parent, trace_id),
    };
    let others = parent.map_or(0, |parent| parent.flags & !TraceContext::SAMPLED);
    cx.trace = Some(TraceContext {
        trace_id,
        span_id: span_id(cx, parent),
        flags: others | u8::from(is_recorded),
        tracestate: parent.and_then(|parent| parent.tracestate.clone()),
    });
    Begun {
        is_recorded,
        journal: None,
        outer,
        #[cfg(feature = "otel")]
        api: None,
    }
}

/// Begins a span of the host's SDK. Without one the caller's trace context stays.
#[cfg(feature = "otel")]
fn begin_by_api(tracer: &ApiTracer, cx: &mut CallContext, kind: SpanKind) -> Begun {
    let api = tracer.begin(cx, kind);
    let outer = match &api {
        Some(span) => cx.trace.replace(span.trace()),
        None => cx.trace.clone(),
    };
    Begun {
        is_recorded: api.as_ref().is_some_and(ApiSpan::is_recording),
        journal: None,
        outer,
        api,
    }
}

/// An id that no other span has: of the call's random one, the span around it, the attempt, and the time.
fn span_id(cx: &CallContext, parent: Option<&TraceContext>) -> u64 {
    let correlation = cx.correlation_id.0;
    let around = parent.map_or(0, |parent| parent.span_id);
    let now = cx.clock.now().since(tool_core::Instant::default()).as_nanos() as u64;
    let seed = (correlation as u64) ^ ((correlation >> 64) as u64).rotate_left(32) ^ around.rotate_left(16);
    mixed(mixed(seed.wrapping_add(u64::from(cx.attempt))) ^ now).max(1)
}

/// The finalizer of splitmix64: every bit of the result depends on every bit of the number.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Own { sampler, .. } => f
                .debug_struct("Tracer")
                .field("sampler", sampler)
                .finish_non_exhaustive(),
            #[cfg(feature = "otel")]
            Source::Api(tracer) => tracer.fmt(f),
        }
    }
}
