//! What the standard stack costs: a static mock tool through every layer, in process.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use toolplane::{CallRequest, Toolplane, core::Outcome};

fn plane() -> Toolplane {
    Toolplane::from_yaml(
        r#"
tools:
  echo:
    description: Answers the same every time.
    input_schema:
      type: object
      properties: {text: {type: string}, n: {type: integer, minimum: 0}}
      required: [text]
      additionalProperties: false
    executor: {kind: mock, result: {ok: true}}
"#,
    )
    .expect("the configuration is usable")
}

fn calls(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let _guard = runtime.enter();
    let plane = plane();
    let mut group = criterion.benchmark_group("stack");
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
