//! Throughput of validation and member access: a message of many small values, one of long strings, and a tool call.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use raw_json::{JsonLimits, RawJson, canonical, validate};

fn records() -> String {
    let items: Vec<String> = (0..1_000)
        .map(|id| {
            format!(
                r#"{{"id": {id}, "name": "someone {id}", "score": {id}.25, "tags": ["a", "b"], "active": true, "note": null}}"#
            )
        })
        .collect();
    format!(r#"{{"items": [{}], "total": 1000}}"#, items.join(", "))
}

fn texts() -> String {
    let line = "The quick brown fox jumps over the lazy dog, again and again.\\n".repeat(100);
    let items: Vec<String> = (0..50)
        .map(|_| format!(r#"{{"type": "text", "text": "{line}"}}"#))
        .collect();
    format!(r#"{{"content": [{}]}}"#, items.join(","))
}

/// Tool call with a long text among its arguments, and members after it.
fn call() -> String {
    let line = "The quick brown fox jumps over \\\"the lazy dog\\\".\\n".repeat(1_300);
    format!(r#"{{"arguments": {{"text": "{line}", "n": 1}}, "name": "echo"}}"#)
}

fn scan(criterion: &mut Criterion) {
    for (name, text) in [("records", records()), ("texts", texts()), ("call", call())] {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function("check", |bencher| {
            bencher.iter(|| validate(black_box(&text), JsonLimits::RELAY));
        });
        group.bench_function("check, no duplicates", |bencher| {
            bencher.iter(|| validate(black_box(&text), JsonLimits::STRICT));
        });
        let raw = RawJson::parse(text.clone()).expect("the text is JSON");
        group.bench_function("members", |bencher| {
            bencher.iter(|| black_box(&raw).members().count());
        });
        // Validated text jumps over its large values by the index; a copy has no index.
        let copy = raw.detached();
        group.bench_function("members, unmarked", |bencher| {
            bencher.iter(|| black_box(&copy).members().count());
        });
        group.bench_function("canonical", |bencher| {
            bencher.iter_batched(|| raw.clone(), |raw| canonical(&raw), BatchSize::SmallInput);
        });
        group.finish();
    }
}

criterion_group!(benches, scan);
criterion_main!(benches);
