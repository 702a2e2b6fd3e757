//! A program with its own OpenTelemetry SDK: spans of calls are children of its spans, and its meters count calls,
//! without any setup in toolplane.
//!
//! Run it with `cargo run -p toolplane-examples --example otel-host`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use opentelemetry::{
    Context, global,
    trace::{FutureExt, TraceContextExt, Tracer},
};
use opentelemetry_sdk::{
    metrics::{
        InMemoryMetricExporter, PeriodicReader, SdkMeterProvider,
        data::{Metric, ResourceMetrics, ScopeMetrics},
    },
    trace::{InMemorySpanExporter, SdkTracerProvider},
};
use toolplane::{CallRequest, Toolplane};

const CONFIGURATION: &str = r"
tools:
  greet:
    description: Greets somebody.
    executor: {kind: mock, result: hello}
";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A real program exports to its collector; this one stores spans and metrics to print them.
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exporter.clone())
        .build();
    global::set_tracer_provider(provider);
    let figures = InMemoryMetricExporter::default();
    let meters = SdkMeterProvider::builder()
        .with_reader(PeriodicReader::builder(figures.clone()).build())
        .build();
    global::set_meter_provider(meters.clone());

    let plane = Toolplane::from_yaml(CONFIGURATION)?;
    let turn = global::tracer("agent").start("turn");
    let context = Context::current_with_span(turn);
    let call = plane.call(CallRequest::new("greet"));
    call.with_context(context.clone()).await?;
    context.span().end();

    let spans = exporter.get_finished_spans()?;
    for span in &spans {
        let parent = spans
            .iter()
            .find(|other| other.span_context.span_id() == span.parent_span_id)
            .map_or("nothing", |parent| &parent.name);
        println!("{} below {parent}", span.name);
    }
    assert_eq!(spans.len(), 3, "an attempt, its call, and the turn of the agent");

    meters.force_flush()?;
    let collected = figures.get_finished_metrics()?;
    let scopes = collected.iter().flat_map(ResourceMetrics::scope_metrics);
    let mut names: Vec<_> = scopes.flat_map(ScopeMetrics::metrics).map(Metric::name).collect();
    names.sort_unstable();
    println!("metrics: {}", names.join(", "));
    assert!(names.contains(&"toolplane.calls"), "the call was counted");
    Ok(())
}
