//! Cost and gain of the cache, in process: a cache hit beside the call that it replaces, and concurrent calls for the
//! same result.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures_util::future::join_all;
use tokio::runtime::Runtime;
use toolplane::{CallRequest, Toolplane, core::Outcome};

const CONFIGURATION: &str = r#"
defaults:
  call_timeout: 1h
tools:
  plain:
    description: Answers the same every time, after a millisecond.
    executor: {kind: mock, result: {ok: true}, latency_ms: 1}
  cached:
    description: The same, kept for an hour.
    cache: {ttl: 1h}
    executor: {kind: mock, result: {ok: true}, latency_ms: 1}
  shared:
    description: The same, but for calls at the same time only.
    cache: {ttl: 0s}
    executor: {kind: mock, result: {ok: true}, latency_ms: 1}
"#;

/// Creates a call as a caller does: its arguments are read and digested once.
fn request(tool: &str, size: usize) -> CallRequest {
    let text = format!(r#"{{"text": "{}", "n": 7}}"#, "x".repeat(size - 22));
    CallRequest::new(tool).json(text).expect("valid arguments")
}

fn call(runtime: &Runtime, plane: &Toolplane, request: CallRequest) {
    let outcome = runtime.block_on(plane.call(request)).expect("answers");
    assert!(matches!(outcome, Outcome::Reply(_)));
}

fn calls(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let _guard = runtime.enter();
    let plane = Toolplane::from_yaml(CONFIGURATION).expect("the configuration is usable");
    let mut group = criterion.benchmark_group("cache");
    for (name, size) in [("hit, 100 B", 100), ("hit, 1 KiB", 1024)] {
        call(&runtime, &plane, request("cached", size));
        group.bench_function(name, |bencher| {
            bencher.iter(|| call(&runtime, &plane, request("cached", size)));
        });
    }
    group.bench_function("direct, 1 ms", |bencher| {
        bencher.iter(|| call(&runtime, &plane, request("plain", 100)));
    });
    for (name, tool) in [
        ("64 at once, hot key", "shared"),
        ("64 at once, each for itself", "plain"),
    ] {
        group.throughput(Throughput::Elements(64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let calls = (0..64).map(|_| plane.call(request(tool, 100)));
                let results = runtime.block_on(join_all(calls));
                assert!(results.iter().all(Result::is_ok));
            });
        });
    }
    group.finish();
}

criterion_group!(benches, calls);
criterion_main!(benches);
