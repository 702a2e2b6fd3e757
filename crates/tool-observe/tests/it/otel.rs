//! Spans through the OpenTelemetry SDK of the host program.

use std::{sync::Arc, time::Duration};

use opentelemetry::{
    Context, KeyValue, Value,
    trace::{FutureExt, SpanId, SpanKind, Status, TraceContextExt, TraceId, Tracer as _, TracerProvider},
};
use opentelemetry_sdk::trace::{
    IdGenerator, InMemorySpanExporter, RandomIdGenerator, Sampler, SdkTracerProvider, SpanData,
};
use serde_json::json;
use tokio::time::timeout;
use tool_core::{
    Backend, CallContext, ClientKey, CorrelationId, ErrorKind, Event, Invoke, Layers, Outcome, Target, Task,
    TaskRequest, ToolError, TraceContext,
};
use tool_observe::{Tracer, WatchAttemptLayer, WatchLayer, trace_id_of_call};
use tool_runtime::TokioClock;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

struct Host {
    exporter: InMemorySpanExporter,
    provider: SdkTracerProvider,
}

/// Tool that makes a span of its own and sets the received trace context as its attribute.
struct Instrumented<'a> {
    script: &'a ScriptedExecutor,
    host: &'a Host,
}

impl Invoke for Instrumented<'_> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let span = self.host.provider.tracer("host").start("query");
        let context = Context::current_with_span(span);
        context.span().set_attribute(KeyValue::new(
            "traceparent",
            cx.trace.as_ref().unwrap().to_string(),
        ));
        self.script.invoke(cx).with_context(context).await
    }
}

impl Host {
    fn new(sampler: Sampler) -> Self {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder()
            .with_simple_exporter(exporter.clone())
            .with_sampler(sampler)
            .build();
        Self { exporter, provider }
    }

    async fn run(&self, script: &ScriptedExecutor, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let tracer = Tracer::from_provider(&self.provider);
        let stack = Layers::outermost(WatchLayer::default().with_tracer(Some(tracer.clone())))
            .then(WatchAttemptLayer::default().with_tracer(Some(tracer)))
            .around(Instrumented { script, host: self });
        stack.invoke(cx).await
    }

    fn span(&self, name: &str) -> SpanData {
        let spans = self.exporter.get_finished_spans().unwrap();
        spans.into_iter().find(|span| span.name == name).unwrap()
    }
}

fn context(script: &ScriptedExecutor) -> CallContext {
    let tool = TestTool::new("echo").build(script.clone());
    call(tool, json!({}), Arc::new(TokioClock::new()))
}

fn attribute(span: &SpanData, key: &str) -> Option<Value> {
    let found = span.attributes.iter().find(|known| known.key.as_str() == key);
    found.map(|known| known.value.clone())
}

#[tokio::test(start_paused = true)]
async fn spans_hang_below_the_active_span_and_those_of_the_tool_below_them() {
    let host = Host::new(Sampler::AlwaysOn);
    let script = ScriptedExecutor::new([ScriptStep::After(Duration::from_secs(2), json!(1))]);
    let mut cx = context(&script);
    let request = host.provider.tracer("host").start("request");
    let context = Context::current_with_span(request);
    let ran = host.run(&script, &mut cx).with_context(context.clone());
    ran.await.unwrap();
    context.span().end();

    let [request, call, attempt, query] =
        ["request", "tools/call echo", "execute_tool echo", "query"].map(|name| host.span(name));
    assert_eq!(call.parent_span_id, request.span_context.span_id());
    assert_eq!(attempt.parent_span_id, call.span_context.span_id());
    assert_eq!(query.parent_span_id, attempt.span_context.span_id());
    for span in [&call, &attempt, &query] {
        assert_eq!(span.span_context.trace_id(), request.span_context.trace_id());
        assert!(!span.parent_span_is_remote);
    }
    let sent = TraceContext::parse(&attribute(&query, "traceparent").unwrap().as_str(), None).unwrap();
    assert_eq!(SpanId::from(sent.span_id), attempt.span_context.span_id());
    assert!(sent.is_sampled());
    assert_eq!(cx.trace, None, "the caller's context is put back");
}

#[tokio::test(start_paused = true)]
async fn a_span_says_what_was_called_and_how_it_ended() {
    let host = Host::new(Sampler::AlwaysOn);
    let script = ScriptedExecutor::new([ScriptStep::Fail(ToolError::new(ErrorKind::Unavailable, "gone"))]);
    let mut cx = context(&script);
    cx.trace = TraceContext::parse(PARENT, Some("vendor=1"));
    host.run(&script, &mut cx).await.unwrap_err();

    let call = host.span("tools/call echo");
    assert_eq!(call.span_kind, SpanKind::Internal);
    assert!(call.parent_span_is_remote);
    assert_eq!(call.parent_span_id, SpanId::from(0x00f0_67aa_0ba9_02b7));
    assert_eq!(call.span_context.trace_state().header(), "vendor=1");
    assert_eq!(call.status, Status::error("gone"));
    assert_eq!(attribute(&call, "gen_ai.tool.name"), Some("echo".into()));
    assert_eq!(attribute(&call, "toolplane.attempts"), Some(1.into()));
    assert_eq!(attribute(&call, "error.type"), Some("unavailable".into()));
    assert_eq!(call.instrumentation_scope.name(), "toolplane");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_ends_its_spans() {
    let host = Host::new(Sampler::AlwaysOn);
    let script = ScriptedExecutor::new([ScriptStep::Hang(true)]);
    let mut cx = context(&script);
    let ran = timeout(Duration::from_secs(3), host.run(&script, &mut cx));
    ran.await.unwrap_err();
    let call = host.span("tools/call echo");
    let took = call.end_time.duration_since(call.start_time).unwrap();
    assert_eq!(took, Duration::from_secs(3));
    assert_eq!(attribute(&call, "error.type"), Some("cancelled".into()));
}

#[tokio::test(start_paused = true)]
async fn what_the_host_does_not_sample_is_not_exported_and_the_tool_hears_so() {
    let host = Host::new(Sampler::AlwaysOff);
    let script = ScriptedExecutor::new([ScriptStep::After(Duration::ZERO, json!(1))]);
    let mut cx = context(&script);
    let seen = Arc::new(std::sync::Mutex::new(None));
    let tracer = Tracer::from_provider(&host.provider);
    struct TraceRecorder(Arc<std::sync::Mutex<Option<TraceContext>>>, ScriptedExecutor);
    impl Invoke for TraceRecorder {
        async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
            *self.0.lock().unwrap() = cx.trace.clone();
            self.1.invoke(cx).await
        }
    }
    let stack = Layers::outermost(WatchLayer::default().with_tracer(Some(tracer.clone())))
        .then(WatchAttemptLayer::default().with_tracer(Some(tracer)))
        .around(TraceRecorder(seen.clone(), script));
    stack.invoke(&mut cx).await.unwrap();
    assert!(host.exporter.get_finished_spans().unwrap().is_empty());
    let seen = seen.lock().unwrap().take().unwrap();
    assert!(!seen.is_sampled());
}

/// Backend that speaks this protocol, or runs in this process, and fails.
#[derive(Clone, Copy)]
struct FailingBackend(Option<&'static str>);

impl Invoke for FailingBackend {
    async fn invoke(&self, _: &mut CallContext) -> Result<Outcome, ToolError> {
        Err(ToolError::new(ErrorKind::Unavailable, "x".repeat(1000)))
    }
}

impl Backend for FailingBackend {
    fn protocol(&self) -> Option<&'static str> {
        self.0
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_a_clients_only_where_something_leaves_the_process() {
    for (protocol, expected) in [
        (Some("http"), SpanKind::Client),
        (Some("mcp"), SpanKind::Client),
        (None, SpanKind::Internal),
    ] {
        let backend = FailingBackend(protocol);
        // The tool has another backend by now; the backend of the task counts.
        let followed = |tool| Target::Task {
            tool,
            task: Task::new("t1", Arc::new(backend)),
            request: TaskRequest::Get,
        };
        let others = if protocol.is_some() { None } else { Some("mcp") };
        let [own, other] = [backend, FailingBackend(others)].map(|runs| TestTool::new("echo").build_on(runs));
        for target in [Target::Tool(own), followed(other)] {
            let host = Host::new(Sampler::AlwaysOn);
            let tracer = Tracer::from_provider(&host.provider);
            let tool = target.tool().clone();
            let mut cx = call(tool, json!({}), Arc::new(TokioClock::new()));
            cx.target = target;
            let stack =
                Layers::outermost(WatchAttemptLayer::default().with_tracer(Some(tracer))).around(backend);
            stack.invoke(&mut cx).await.unwrap_err();
            let spans = host.exporter.get_finished_spans().unwrap();
            assert_eq!(spans[0].span_kind, expected, "{protocol:?}");
            // The error is cut to 256 characters.
            assert_eq!(spans[0].status, Status::error("x".repeat(256)));
        }
    }
}

/// Emits 33 retry events, then fails.
struct RetryEvents;

impl Invoke for RetryEvents {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let error = ToolError::new(ErrorKind::Unavailable, "nobody answers");
        for _ in 0..33 {
            let pause = Duration::from_millis(1500);
            let error = &error;
            cx.observers.emit(&Event::retried(cx, error, pause));
        }
        Err(error)
    }
}

#[tokio::test(start_paused = true)]
async fn the_events_of_a_call_are_in_its_span_up_to_a_number() {
    let host = Host::new(Sampler::AlwaysOn);
    let tracer = Tracer::from_provider(&host.provider);
    let stack = Layers::outermost(WatchLayer::default().with_tracer(Some(tracer))).around(RetryEvents);
    let mut cx = context(&ScriptedExecutor::new([]));
    cx.origin.client = Some(ClientKey::Principal("p".into()));
    stack.invoke(&mut cx).await.unwrap_err();
    let span = host.span("tools/call echo");
    assert_eq!(span.span_kind, SpanKind::Server);
    assert_eq!(span.events.len(), 32);
    assert_eq!(attribute(&span, "toolplane.more_events"), Some(1.into()));
    for event in span.events.iter() {
        assert_eq!(event.name, "toolplane.retry");
        let expected = [
            KeyValue::new("error.type", "unavailable"),
            KeyValue::new("toolplane.pause_ms", 1500),
        ];
        assert_eq!(event.attributes, expected);
        assert!((span.start_time..=span.end_time).contains(&event.timestamp));
    }
}

/// Id generator whose trace ids are the correlation ids of calls.
#[derive(Debug, Default)]
struct CallIds(RandomIdGenerator);

impl IdGenerator for CallIds {
    fn new_trace_id(&self) -> TraceId {
        TraceId::from(trace_id_of_call().unwrap())
    }

    fn new_span_id(&self) -> SpanId {
        self.0.new_span_id()
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_generator_of_the_host_knows_the_correlation_id() {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exporter.clone())
        .with_id_generator(CallIds::default())
        .build();
    let host = Host { exporter, provider };
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let mut cx = context(&script);
    cx.correlation_id = CorrelationId(7 << 64 | 5);
    host.run(&script, &mut cx).await.unwrap();
    let span = host.span("tools/call echo");
    assert_eq!(span.span_context.trace_id(), TraceId::from(cx.correlation_id.0));
    assert_eq!(trace_id_of_call(), None);
}
