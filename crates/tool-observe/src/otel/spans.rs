use std::{
    borrow::Cow,
    cell::Cell,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use opentelemetry::{
    Context, KeyValue, Value,
    global::{self, BoxedTracer},
    trace::{
        SpanBuilder, SpanContext, SpanId, SpanKind as OtelKind, Status, TraceContextExt, TraceFlags, TraceId,
        TraceState, Tracer as _, TracerProvider,
    },
};
use parking_lot::RwLock;
use tool_core::{CallContext, Outcome, ToolError, TraceContext};

use super::scope;
use crate::{
    AttributeValue, SpanEvent, SpanKind, conventions,
    spans::{SpanFields, SpanTemplate},
};

/// Interval at which the global provider is polled while it records nothing.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Number of attributes that nearly no span exceeds.
const N_ATTRIBUTES: usize = 8;

thread_local! {
    /// Correlation id of the call whose span this thread begins.
    static CALL: Cell<Option<u128>> = const { Cell::new(None) };
}

/// Returns the correlation id of the call whose span this thread begins, or `None` if it begins no span.
///
/// For id generators of a host's SDK: if a new trace has this id, a trace that begins with a call can be found by the id in
/// the logs.
#[must_use]
pub fn trace_id_of_call() -> Option<u128> {
    CALL.get()
}

/// Tracer of the host program, by the API of OpenTelemetry.
#[derive(Clone)]
pub(crate) struct ApiTracer(Arc<Provider>);

enum Provider {
    /// Tracer of a provider that the host passed.
    Given(BoxedTracer),
    /// Tracer of the global provider, which the host may set at any time.
    Global(GlobalTracer),
}

/// Tracer of the global provider, fetched again while no provider makes spans.
struct GlobalTracer {
    tracer: RwLock<Option<Arc<BoxedTracer>>>,
    /// Time of the next poll, in milliseconds of the clock of calls.
    next_poll: AtomicU64,
}

/// A span that has begun, and the context in which it is active.
#[derive(Debug, Clone)]
pub(crate) struct ApiSpan {
    context: Context,
    start: SystemTime,
}

/// Everything known at the end of a span.
pub(crate) struct SpanEnd<'a> {
    pub(crate) cx: &'a CallContext,
    pub(crate) kind: SpanKind,
    pub(crate) elapsed: Duration,
    pub(crate) result: Option<&'a Result<Outcome, ToolError>>,
    pub(crate) events: Vec<SpanEvent>,
    /// Number of dropped events.
    pub(crate) n_more_events: u32,
}

impl ApiTracer {
    pub(crate) fn from_provider<P>(provider: &P) -> Self
    where
        P: TracerProvider,
        P::Tracer: Send + Sync + 'static,
        <P::Tracer as opentelemetry::trace::Tracer>::Span: Send + Sync + 'static,
    {
        let tracer = BoxedTracer::new(Box::new(provider.tracer_with_scope(scope())));
        Self(Arc::new(Provider::Given(tracer)))
    }

    pub(crate) fn global() -> Self {
        Self(Arc::new(Provider::Global(GlobalTracer {
            tracer: RwLock::new(None),
            next_poll: AtomicU64::new(0),
        })))
    }

    /// Begins a child span of the call's trace context, or of the host's active span if the call has no trace context.
    /// Returns `None` if no provider makes spans.
    pub(crate) fn begin(&self, cx: &CallContext, kind: SpanKind) -> Option<ApiSpan> {
        match &*self.0 {
            Provider::Given(tracer) => begin(tracer, cx, kind),
            Provider::Global(global) => global.begin(cx, kind),
        }
    }
}

impl GlobalTracer {
    fn begin(&self, cx: &CallContext, kind: SpanKind) -> Option<ApiSpan> {
        let known = self.tracer.read().clone();
        if let Some(tracer) = known {
            return begin(&tracer, cx, kind);
        }
        let now = cx.clock.now().since(tool_core::Instant::default());
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        if now < self.next_poll.load(Ordering::Relaxed) {
            return None;
        }
        let next = now.saturating_add(POLL_INTERVAL.as_millis() as u64);
        self.next_poll.store(next, Ordering::Relaxed);
        let tracer = global::tracer_with_scope(scope());
        let span = begin(&tracer, cx, kind)?;
        *self.tracer.write() = Some(Arc::new(tracer));
        Some(span)
    }
}

fn begin(tracer: &BoxedTracer, cx: &CallContext, kind: SpanKind) -> Option<ApiSpan> {
    let start = cx.clock.wall();
    let template = SpanTemplate::new(cx, kind, None);
    let parent = parent(cx.trace.as_ref());
    let builder = SpanBuilder {
        name: Cow::Owned(template.name().concat()),
        span_kind: Some(otel_kind(&template)),
        start_time: Some(start),
        // Capacity for the attributes that are set at the end.
        attributes: Some(Vec::with_capacity(N_ATTRIBUTES)),
        ..SpanBuilder::default()
    };
    CALL.set(Some(cx.correlation_id.0.max(1)));
    let span = tracer.build_with_context(builder, &parent);
    CALL.set(None);
    let context = parent.with_span(span);
    // The no-op tracer returns an invalid context, or the parent's own.
    let is_new = {
        let span = context.span();
        let own = span.span_context();
        own.is_valid() && own.span_id() != parent.span().span_context().span_id()
    };
    is_new.then_some(ApiSpan { context, start })
}

/// Returns the context of the parent span: the active span if the call has no trace context or if it is the active
/// span's, else the call's trace context as a remote parent.
fn parent(trace: Option<&TraceContext>) -> Context {
    let active = Context::current();
    let Some(trace) = trace else { return active };
    let is_active = {
        let span = active.span();
        let active = span.span_context();
        let ids = (trace.trace_id.into(), trace.span_id.into());
        (active.trace_id(), active.span_id()) == ids
    };
    if is_active {
        return active;
    }
    active.with_remote_span_context(SpanContext::new(
        TraceId::from(trace.trace_id),
        SpanId::from(trace.span_id),
        TraceFlags::new(trace.flags),
        true,
        trace
            .tracestate
            .as_deref()
            .and_then(|state| state.parse::<TraceState>().ok())
            .unwrap_or_default(),
    ))
}

fn otel_kind(template: &SpanTemplate) -> OtelKind {
    match template.kind {
        SpanKind::Attempt if template.protocol.is_some() => OtelKind::Client,
        SpanKind::Call if template.has_client => OtelKind::Server,
        SpanKind::Attempt | SpanKind::Call => OtelKind::Internal,
    }
}

impl ApiSpan {
    /// Returns the context in which the span is active.
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    pub(crate) fn is_recording(&self) -> bool {
        self.context.span().is_recording()
    }

    /// Returns the span's ids in the form that is sent to tools.
    pub(crate) fn trace(&self) -> TraceContext {
        let span = self.context.span();
        let context = span.span_context();
        let state = context.trace_state().header();
        TraceContext {
            trace_id: u128::from_be_bytes(context.trace_id().to_bytes()),
            span_id: u64::from_be_bytes(context.span_id().to_bytes()),
            flags: context.trace_flags().to_u8(),
            tracestate: (!state.is_empty()).then(|| state.into()),
        }
    }

    /// Ends the span. Sets its attributes only if the span is recorded.
    pub(crate) fn end(&self, end: &SpanEnd<'_>) {
        let span = self.context.span();
        let at = self.start.checked_add(end.elapsed).unwrap_or(self.start);
        if span.is_recording() {
            let template = SpanTemplate::new(end.cx, end.kind, end.result);
            let fields = SpanFields::new(end.cx, end.kind, end.result);
            let mut set = |key, value: AttributeValue<'_>| span.set_attribute(key_value(key, value));
            template.for_each_attribute(&mut set);
            fields.for_each_attribute(end.kind, &mut set);
            if end.n_more_events > 0 {
                set(
                    conventions::MORE_EVENTS,
                    AttributeValue::Number(end.n_more_events.into()),
                );
            }
            for event in &end.events {
                let attributes = event.attributes().map(|(key, value)| key_value(key, value));
                let at = self.start.checked_add(event.after).unwrap_or(self.start);
                span.add_event_with_timestamp(event.name, at, attributes.collect());
            }
            if let Some(reason) = fields.failure(&template) {
                span.set_status(Status::error(reason.to_owned()));
            }
        }
        span.end_with_timestamp(at);
    }
}

fn key_value(key: &'static str, value: AttributeValue<'_>) -> KeyValue {
    let value = match value {
        AttributeValue::Text(text) => Value::from(text.to_owned()),
        AttributeValue::Static(text) => Value::from(text),
        AttributeValue::Shared(text) => Value::from(text.clone()),
        AttributeValue::Number(number) => Value::I64(number),
    };
    KeyValue::new(key, value)
}

impl fmt::Debug for ApiTracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let provider = match &*self.0 {
            Provider::Given(_) => "given",
            Provider::Global(_) => "global",
        };
        f.debug_tuple("ApiTracer").field(&provider).finish()
    }
}
