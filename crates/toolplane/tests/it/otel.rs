//! Spans by the global provider of OpenTelemetry, which the host sets when it likes.

use std::time::Duration;

use opentelemetry::{
    Context, global,
    trace::{FutureExt, TraceContextExt, Tracer as _},
};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use toolplane::{CallRequest, Toolplane};

const TOOLS: &str = "tools: {greet: {description: Greets., executor: {kind: mock, result: hello}}}";

/// The only test of this file: the provider is the whole program's.
#[tokio::test(start_paused = true)]
async fn a_global_provider_gets_spans_also_if_it_is_set_late() {
    let plane = Toolplane::from_yaml(TOOLS).unwrap();
    plane.call(CallRequest::new("greet")).await.unwrap();

    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exporter.clone())
        .build();
    global::set_tracer_provider(provider);
    tokio::time::advance(Duration::from_secs(1)).await;

    let context = Context::current_with_span(global::tracer("host").start("turn"));
    let called = plane.call(CallRequest::new("greet"));
    called.with_context(context.clone()).await.unwrap();
    context.span().end();

    let spans = exporter.get_finished_spans().unwrap();
    let turn = context.span().span_context().clone();
    let call = spans.iter().find(|span| span.name == "tools/call greet").unwrap();
    assert_eq!(call.parent_span_id, turn.span_id());
    assert_eq!(call.span_context.trace_id(), turn.trace_id());
    let attempt = spans
        .iter()
        .find(|span| span.name == "execute_tool greet")
        .unwrap();
    assert_eq!(attempt.parent_span_id, call.span_context.span_id());
}
