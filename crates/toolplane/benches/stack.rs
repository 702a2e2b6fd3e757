//! Cost of the standard stack: a static mock tool through every layer, in process, with and without observers. Traces
//! need the feature `otel`.

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
#[cfg(feature = "otel")]
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{Sampler, SdkTracerProvider, SpanData, SpanExporter},
};
use tokio::runtime::Runtime;
#[cfg(feature = "otel")]
use toolplane::observe::Tracer;
use toolplane::{
    Builder, CallRequest, Toolplane,
    core::Outcome,
    manifest::{LoadOptions, Syntax, load},
    observe::Metrics,
};

const TOOLS: &str = r#"
tools:
  echo:
    description: Answers the same every time.
    input_schema:
      type: object
      properties: {text: {type: string}, n: {type: integer, minimum: 0}}
      required: [text]
      additionalProperties: false
    executor: {kind: mock, result: {ok: true}}
"#;

fn builder() -> Builder {
    let options = LoadOptions::new().text("bench.yaml", Syntax::Yaml, TOOLS);
    Toolplane::builder().loaded(&load(&options).expect("the configuration is usable"))
}

/// Discards all spans.
#[cfg(feature = "otel")]
#[derive(Debug)]
struct Nowhere;

#[cfg(feature = "otel")]
impl SpanExporter for Nowhere {
    async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
        Ok(())
    }
}

/// Creates a tracer that samples a share of all calls and discards its batched spans.
#[cfg(feature = "otel")]
fn tracer(ratio: f64) -> Tracer {
    let provider = SdkTracerProvider::builder()
        .with_sampler(Sampler::TraceIdRatioBased(ratio))
        .with_batch_exporter(Nowhere)
        .build();
    Tracer::from_provider(&provider)
}

/// Returns the configurations of observers and their names.
fn watched() -> Vec<(&'static str, Builder)> {
    vec![
        ("stack", builder()),
        ("stack, counted", builder().observer(Arc::new(Metrics::new()))),
        #[cfg(feature = "otel")]
        ("stack, 1 % traced", builder().tracer(tracer(0.01))),
        #[cfg(feature = "otel")]
        ("stack, traced", builder().tracer(tracer(1.0))),
    ]
}

fn calls(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let _guard = runtime.enter();
    for (name, builder) in watched() {
        let plane = builder.build().expect("can be set up");
        group(criterion, &runtime, name, &plane);
    }
}

fn group(criterion: &mut Criterion, runtime: &Runtime, name: &str, plane: &Toolplane) {
    let mut group = criterion.benchmark_group(name);
    for (name, size) in [("100 B", 100), ("1 KiB", 1024)] {
        let text = format!(r#"{{"text": "{}", "n": 7}}"#, "x".repeat(size - 22));
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let request = CallRequest::new("echo")
                    .json(text.clone())
                    .expect("valid arguments");
                let outcome = runtime.block_on(plane.call(request)).expect("answers");
                assert!(matches!(outcome, Outcome::Reply(_)));
            });
        });
    }
    group.finish();
}

criterion_group!(benches, calls);
criterion_main!(benches);
