//! Spans by the SDK of the host program.

use std::{sync::Arc, time::Duration};

use opentelemetry::{
    Context, KeyValue, Value,
    trace::{FutureExt, SpanId, SpanKind, Status, TraceContextExt, Tracer as _, TracerProvider},
};
use opentelemetry_sdk::trace::{InMemorySpanExporter, Sampler, SdkTracerProvider, SpanData};
use serde_json::json;
use tokio::time::timeout;
use tool_core::{CallContext, ErrorKind, Invoke, Layers, Outcome, ToolError, TraceContext};
use tool_observe::{Tracer, Watch, WatchAttempt};
use tool_runtime::TokioClock;
use tool_testkit::{Script, Step, TestTool, call};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

struct Host {
    exporter: InMemorySpanExporter,
    provider: SdkTracerProvider,
}

/// A tool whose code makes a span of its own and keeps the trace context that it was called in.
struct Instrumented<'a> {
    script: &'a Script,
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

    async fn run(&self, script: &Script, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let tracer = Tracer::from_provider(&self.provider);
        let stack = Layers::outermost(Watch::default().tracer(Some(tracer.clone())))
            .then(WatchAttempt::default().tracer(Some(tracer)))
            .around(Instrumented { script, host: self });
        stack.invoke(cx).await
    }

    fn span(&self, name: &str) -> SpanData {
        let spans = self.exporter.get_finished_spans().unwrap();
        spans.into_iter().find(|span| span.name == name).unwrap()
    }
}

fn context(script: &Script) -> CallContext {
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
    let script = Script::new([Step::After(Duration::from_secs(2), json!(1))]);
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
    let script = Script::new([Step::Fail(ToolError::new(ErrorKind::Unavailable, "gone"))]);
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
    let script = Script::new([Step::Hang(true)]);
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
    let script = Script::new([Step::After(Duration::ZERO, json!(1))]);
    let mut cx = context(&script);
    let seen = Arc::new(std::sync::Mutex::new(None));
    let tracer = Tracer::from_provider(&host.provider);
    struct Look(Arc<std::sync::Mutex<Option<TraceContext>>>, Script);
    impl Invoke for Look {
        async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
            *self.0.lock().unwrap() = cx.trace.clone();
            self.1.invoke(cx).await
        }
    }
    let stack = Layers::outermost(Watch::default().tracer(Some(tracer.clone())))
        .then(WatchAttempt::default().tracer(Some(tracer)))
        .around(Look(seen.clone(), script));
    stack.invoke(&mut cx).await.unwrap();
    assert!(host.exporter.get_finished_spans().unwrap().is_empty());
    let seen = seen.lock().unwrap().take().unwrap();
    assert!(!seen.is_sampled());
}
