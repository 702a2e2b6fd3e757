//! Metrics through the OpenTelemetry SDK of the host program.

use std::{sync::Arc, time::Duration};

use opentelemetry_sdk::metrics::{
    InMemoryMetricExporter, PeriodicReader, SdkMeterProvider,
    data::{AggregatedMetrics, MetricData, ScopeMetrics},
};
use serde_json::json;
use tool_core::{ErrorKind, Invoke, Layers, Observe, Observers, ToolError};
use tool_observe::{Gauge, Metrics, OtelMetrics, WatchAttemptLayer, WatchLayer};
use tool_runtime::TokioClock;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call};

struct Host {
    exporter: InMemoryMetricExporter,
    provider: SdkMeterProvider,
}

impl Host {
    fn new() -> Self {
        let exporter = InMemoryMetricExporter::default();
        let provider = SdkMeterProvider::builder()
            .with_reader(PeriodicReader::builder(exporter.clone()).build())
            .build();
        Self { exporter, provider }
    }

    /// Collects once and returns a line for each data point.
    fn points(&self) -> Vec<String> {
        self.provider.force_flush().unwrap();
        let mut points = Vec::new();
        for resource in self.exporter.get_finished_metrics().unwrap() {
            for metric in resource.scope_metrics().flat_map(ScopeMetrics::metrics) {
                let name = format!("{} {}", metric.name(), metric.unit());
                match metric.data() {
                    AggregatedMetrics::U64(data) => points.extend(lines(&name, data)),
                    AggregatedMetrics::F64(data) => points.extend(lines(&name, data)),
                    AggregatedMetrics::I64(data) => points.extend(lines(&name, data)),
                }
            }
        }
        points.sort();
        self.exporter.reset();
        points
    }
}

fn attributes<'a>(attributes: impl Iterator<Item = &'a opentelemetry::KeyValue>) -> String {
    let mut texts: Vec<_> = attributes
        .map(|attribute| format!("{}={}", attribute.key, attribute.value))
        .collect();
    texts.sort();
    texts.join(",")
}

fn lines<T: std::fmt::Display + Copy>(name: &str, data: &MetricData<T>) -> Vec<String> {
    match data {
        MetricData::Sum(sum) => sum
            .data_points()
            .map(|point| format!("{name} {{{}}} {}", attributes(point.attributes()), point.value()))
            .collect(),
        MetricData::Gauge(gauge) => gauge
            .data_points()
            .map(|point| format!("{name} {{{}}} {}", attributes(point.attributes()), point.value()))
            .collect(),
        MetricData::Histogram(histogram) => histogram
            .data_points()
            .map(|point| {
                let labels = attributes(point.attributes());
                format!("{name} {{{labels}}} {} in {}", point.sum(), point.count())
            })
            .collect(),
        MetricData::ExponentialHistogram(_) => Vec::new(),
    }
}

async fn run(observer: &Arc<OtelMetrics>, clock: &Arc<TokioClock>, step: ScriptStep) {
    let observers: Observers = [observer.clone() as Arc<dyn Observe>].into_iter().collect();
    let script = ScriptedExecutor::new([step]);
    let stack = Layers::outermost(WatchLayer::new(observers.clone()))
        .then(WatchAttemptLayer::new(observers))
        .around(script.clone());
    let mut cx = call(
        TestTool::new("echo").build(script),
        json!({"a": 1}),
        clock.clone(),
    );
    let _ = stack.invoke(&mut cx).await;
}

#[tokio::test(start_paused = true)]
async fn calls_reach_the_meter_of_the_host() {
    let (host, clock) = (Host::new(), Arc::new(TokioClock::new()));
    let metrics = Arc::new(Metrics::new());
    let observer = Arc::new(OtelMetrics::from_provider(metrics.clone(), &host.provider));
    run(
        &observer,
        &clock,
        ScriptStep::After(Duration::from_secs(2), json!({})),
    )
    .await;
    run(
        &observer,
        &clock,
        ScriptStep::Fail(ToolError::new(ErrorKind::Timeout, "late")),
    )
    .await;
    let points = host.points();
    for expected in [
        "toolplane.calls  {outcome=ok,tool=echo} 1",
        "toolplane.calls  {outcome=timeout,tool=echo} 1",
        "toolplane.attempts  {outcome=ok,tool=echo} 1",
        "toolplane.calls_running  {tool=echo} 0",
        "toolplane.call_duration s {tool=echo} 2 in 2",
        "toolplane.attempt_duration s {tool=echo} 2 in 2",
        "toolplane.argument By {tool=echo} 14 in 2",
    ] {
        assert!(
            points.iter().any(|point| point == expected),
            "{expected} in {points:#?}"
        );
    }
    let page = metrics.render();
    assert!(page.contains(r#"toolplane_calls_total{tool="echo",outcome="ok"} 1"#));
}

#[tokio::test(start_paused = true)]
async fn a_figure_that_is_added_later_is_exported_too() {
    let (host, clock) = (Host::new(), Arc::new(TokioClock::new()));
    let metrics = Arc::new(Metrics::new());
    let observer = Arc::new(OtelMetrics::from_provider(metrics.clone(), &host.provider));
    run(&observer, &clock, ScriptStep::Echo).await;
    metrics.add_gauge(Gauge {
        name: "toolplane_seats",
        help: "Seats.",
        label: Some("room"),
        read: Box::new(|| vec![("a".to_owned(), 7.0)]),
    });
    tokio::time::advance(Duration::from_secs(1)).await;
    run(&observer, &clock, ScriptStep::Echo).await;
    let points = host.points();
    let seats = "toolplane.seats  {room=a} 7";
    assert!(points.iter().any(|point| point == seats), "{points:#?}");
}
