//! Spans and metrics by the global providers of OpenTelemetry, which the host sets when it likes.

use std::{sync::Arc, time::Duration};

use opentelemetry::{
    Context, global,
    trace::{FutureExt, TraceContextExt, Tracer as _},
};
use opentelemetry_sdk::{
    metrics::{
        InMemoryMetricExporter, PeriodicReader, SdkMeterProvider,
        data::{AggregatedMetrics, HistogramDataPoint, MetricData, ScopeMetrics, SumDataPoint},
    },
    trace::{InMemorySpanExporter, SdkTracerProvider},
};
use toolplane::{
    CallRequest, Toolplane,
    manifest::{LoadOptions, Syntax, load},
    observe::OtelMetrics,
};

const TOOLS: &str = "tools: {greet: {description: Greets., executor: {kind: mock, result: hello}}}";

/// The only test that sets this provider, which is the whole program's.
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

/// Creates a meter provider that stores its exports.
fn meters() -> (SdkMeterProvider, InMemoryMetricExporter) {
    let exporter = InMemoryMetricExporter::default();
    let reader = PeriodicReader::builder(exporter.clone()).build();
    (SdkMeterProvider::builder().with_reader(reader).build(), exporter)
}

/// Returns the number of calls by the counter, and by the histogram of durations.
fn counts(provider: &SdkMeterProvider, exporter: &InMemoryMetricExporter) -> (u64, u64) {
    exporter.reset();
    provider.force_flush().expect("it flushes");
    let (mut n_calls, mut n_durations) = (0, 0);
    for resource in exporter.get_finished_metrics().expect("it keeps them") {
        for metric in resource.scope_metrics().flat_map(ScopeMetrics::metrics) {
            match (metric.name(), metric.data()) {
                ("toolplane.calls", AggregatedMetrics::U64(MetricData::Sum(sum))) => {
                    n_calls += sum.data_points().map(SumDataPoint::value).sum::<u64>();
                }
                ("toolplane.call_duration", AggregatedMetrics::F64(MetricData::Histogram(histogram))) => {
                    n_durations += histogram
                        .data_points()
                        .map(HistogramDataPoint::count)
                        .sum::<u64>();
                }
                _ => {}
            }
        }
    }
    (n_calls, n_durations)
}

/// The only test that sets this provider. Counters know the calls before it; durations are recorded from then on.
#[tokio::test(start_paused = true)]
async fn a_global_provider_gets_metrics_also_if_it_is_set_late() {
    let plane = Toolplane::from_yaml(TOOLS).unwrap();
    plane.call(CallRequest::new("greet")).await.unwrap();
    let (provider, exporter) = meters();
    global::set_meter_provider(provider.clone());
    tokio::time::advance(Duration::from_secs(1)).await;
    plane.call(CallRequest::new("greet")).await.unwrap();
    assert_eq!(counts(&provider, &exporter), (2, 1));

    // One that was set before needs no call to be found.
    let plane = Toolplane::from_yaml(TOOLS).unwrap();
    plane.call(CallRequest::new("greet")).await.unwrap();
    assert_eq!(counts(&provider, &exporter), (3, 2));
}

#[tokio::test(start_paused = true)]
async fn metrics_reach_the_given_provider() {
    let (provider, exporter) = meters();
    let metrics = OtelMetrics::from_provider(Arc::default(), &provider);
    let plane = Toolplane::builder()
        .loaded(&load(&LoadOptions::new().text("test.yaml", Syntax::Yaml, TOOLS)).unwrap())
        .metrics(metrics)
        .build()
        .unwrap();
    plane.call(CallRequest::new("greet")).await.unwrap();
    assert_eq!(counts(&provider, &exporter), (1, 1));
}
