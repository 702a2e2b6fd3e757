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
    AttributeValue, SpanKind, conventions,
    described::{Details, Form},
    journal::SpanEvent,
};

/// Pause between two looks at the global provider while it records nothing.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Number of attributes that nearly no span exceeds.
const N_ATTRIBUTES: usize = 8;

thread_local! {
    /// The correlation id of the call whose span this thread begins.
    static CALL: Cell<Option<u128>> = const { Cell::new(None) };
}

/// Returns the correlation id of the call whose span this thread begins, if it begins one.
///
/// It is for id generators of a host's SDK: with it as the id of new traces, a trace that begins with a call is found by the
/// id that logs have.
#[must_use]
pub fn trace_id_of_call() -> Option<u128> {
    CALL.get()
}

/// A tracer of the host program, by the API of OpenTelemetry.
#[derive(Clone)]
pub(crate) struct ApiTracer(Arc<Source>);

enum Source {
    /// The tracer of a provider that the host passed.
    Given(BoxedTracer),
    /// The tracer of the global provider, which the host may set at any time.
    Global(GlobalTracer),
}

/// The tracer of the global provider, fetched again while there is no provider that makes spans.
struct GlobalTracer {
    tracer: RwLock<Option<Arc<BoxedTracer>>>,
    /// When the provider is looked at next, in milliseconds of the clock of calls.
    next_look: AtomicU64,
}

/// A span that has begun, and the context in which it is active.
#[derive(Debug, Clone)]
pub(crate) struct ApiSpan {
    context: Context,
    start: SystemTime,
}

/// The end of a span: all that is known of it then.
pub(crate) struct End<'a> {
    pub(crate) cx: &'a CallContext,
    pub(crate) kind: SpanKind,
    pub(crate) elapsed: Duration,
    pub(crate) result: Option<&'a Result<Outcome, ToolError>>,
    pub(crate) events: Vec<SpanEvent>,
    /// Number of events that were not kept.
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
        Self(Arc::new(Source::Given(tracer)))
    }

    pub(crate) fn global() -> Self {
        Self(Arc::new(Source::Global(GlobalTracer {
            tracer: RwLock::new(None),
            next_look: AtomicU64::new(0),
        })))
    }

    /// Begins a span below the call's trace context, or below the host's active span where the call has none. Returns
    /// `None` if no provider makes spans.
    pub(crate) fn begin(&self, cx: &CallContext, kind: SpanKind) -> Option<ApiSpan> {
        match &*self.0 {
            Source::Given(tracer) => begin(tracer, cx, kind),
            Source::Global(global) => global.begin(cx, kind),
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
        if now < self.next_look.load(Ordering::Relaxed) {
            return None;
        }
        let next = now.saturating_add(LOOK_INTERVAL.as_millis() as u64);
        self.next_look.store(next, Ordering::Relaxed);
        let tracer = global::tracer_with_scope(scope());
        let begun = begin(&tracer, cx, kind)?;
        *self.tracer.write() = Some(Arc::new(tracer));
        Some(begun)
    }
}

fn begin(tracer: &BoxedTracer, cx: &CallContext, kind: SpanKind) -> Option<ApiSpan> {
    let start = cx.clock.wall();
    let form = Form::of(cx, kind, None);
    let parent = parent(cx.trace.as_ref());
    let builder = SpanBuilder {
        name: Cow::Owned(form.name().concat()),
        span_kind: Some(otel_kind(&form)),
        start_time: Some(start),
        // Room for those at the end.
        attributes: Some(Vec::with_capacity(N_ATTRIBUTES)),
        ..SpanBuilder::default()
    };
    CALL.set(Some(cx.correlation_id.0.max(1)));
    let span = tracer.build_with_context(builder, &parent);
    CALL.set(None);
    let context = parent.with_span(span);
    // The no-op tracer gives an invalid context, or the parent's own.
    let is_new = {
        let span = context.span();
        let own = span.span_context();
        own.is_valid() && own.span_id() != parent.span().span_context().span_id()
    };
    is_new.then_some(ApiSpan { context, start })
}

/// Returns the context of the span that the next one belongs to: the active one if the call's trace context is its own or
/// there is none, else the call's trace context as a remote parent.
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

fn otel_kind(form: &Form) -> OtelKind {
    match form.kind {
        SpanKind::Attempt if form.protocol.is_some() => OtelKind::Client,
        SpanKind::Call if form.has_client => OtelKind::Server,
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

    /// Returns the span's ids as they are sent to tools.
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

    /// Ends the span. Its attributes are set only if somebody records them.
    pub(crate) fn end(&self, end: &End<'_>) {
        let span = self.context.span();
        let at = self.start.checked_add(end.elapsed).unwrap_or(self.start);
        if span.is_recording() {
            let form = Form::of(end.cx, end.kind, end.result);
            let details = Details::of(end.cx, end.kind, end.result);
            let mut add = |key, value: AttributeValue<'_>| span.set_attribute(key_value(key, value));
            form.attributes(&mut add);
            details.attributes(end.kind, &mut add);
            if end.n_more_events > 0 {
                add(
                    conventions::MORE_EVENTS,
                    AttributeValue::Number(end.n_more_events.into()),
                );
            }
            for event in &end.events {
                let attributes = event.attributes().map(|(key, value)| key_value(key, value));
                let at = self.start.checked_add(event.after).unwrap_or(self.start);
                span.add_event_with_timestamp(event.name, at, attributes.collect());
            }
            if let Some(reason) = details.failure(&form) {
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
        let source = match &*self.0 {
            Source::Given(_) => "given",
            Source::Global(_) => "global",
        };
        f.debug_tuple("ApiTracer").field(&source).finish()
    }
}
