//! Overhead of workflows: a workflow of many steps, beside the same calls made one after the other. Divide the difference by the
//! number of steps.

use std::fmt::Write as _;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tokio::runtime::Builder;
use toolplane::{CallRequest, Toolplane};

/// Number of steps.
const STEPS: usize = 100;

fn plane() -> Toolplane {
    let mut text = "
tools:
  pass: {description: A., read_only: true, executor: {kind: mock, result: {n: 1}}}
workflows:
"
    .to_owned();
    let mut chain = "  chain:\n    description: A.\n    steps:\n".to_owned();
    let mut beside = "  beside:\n    description: A.\n    window: 100\n    steps:\n".to_owned();
    for step in 0..STEPS {
        let input = match step {
            0 => "{n: $input.n}".to_owned(),
            step => format!("{{n: $results.s{}.n}}", step - 1),
        };
        let _ = writeln!(chain, "      - {{name: s{step}, tool: pass, input: {input}}}");
        let _ = writeln!(
            beside,
            "      - {{name: s{step}, tool: pass, input: {{n: $input.n}}}}"
        );
    }
    text.push_str(&chain);
    text.push_str(&beside);
    Toolplane::from_yaml(text).expect("a configuration")
}

fn overhead(criterion: &mut Criterion) {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let plane = plane();
    let request = |tool: &str| CallRequest::new(tool).json(r#"{"n":1}"#).expect("arguments");
    let mut group = criterion.benchmark_group("workflow");
    group.throughput(Throughput::Elements(STEPS as u64));
    group.bench_function("calls one by one", |bencher| {
        bencher.iter(|| {
            runtime.block_on(async {
                for _ in 0..STEPS {
                    plane.call(request("pass")).await.expect("a reply");
                }
            });
        });
    });
    for workflow in ["chain", "beside"] {
        group.bench_function(workflow, |bencher| {
            bencher.iter(|| runtime.block_on(plane.call(request(workflow))).expect("a reply"));
        });
    }
    group.finish();
}

criterion_group!(benches, overhead);
criterion_main!(benches);
