//! Cost of recording the usage of one call, which every call pays whose usage is recorded: the end of its attempt, and its own.

use std::{hint::black_box, sync::Arc, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::json;
use tool_core::{Caller, Event, Observe, Outcome};
use tool_observe::{MemoryUsage, Metrics, UsageRecorder, UsageSettings};
use tool_runtime::TokioClock;
use tool_testkit::{ScriptedExecutor, TestTool, call};

fn usage(criterion: &mut Criterion) {
    let recorder = UsageRecorder::new(Arc::new(MemoryUsage::default()), UsageSettings::default());
    // 100 principals with 10 tools each.
    let tools: Vec<_> = (0..10)
        .map(|n| TestTool::new(&format!("tool{n}")).build(ScriptedExecutor::new([])))
        .collect();
    let calls: Vec<_> = (0..1000)
        .map(|n| {
            let mut cx = call(
                tools[n % 10].clone(),
                json!({"a": 1}),
                Arc::new(TokioClock::new()),
            );
            cx.origin.caller = Arc::new(Caller::new(format!("p{}", n / 10)));
            cx.begin_attempt();
            cx.dispatch().sent();
            cx
        })
        .collect();
    let result = Ok(Outcome::from(json!("done")));
    let elapsed = Duration::from_millis(3);
    let mut group = criterion.benchmark_group("usage");
    let observers: [(&str, &dyn Observe); 2] =
        [("recorder", &recorder), ("metrics, to compare", &Metrics::new())];
    for (name, observer) in observers {
        let mut next = calls.iter().cycle();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let Some(cx) = next.next() else { return };
                observer.observe(black_box(&Event::attempt_finished(
                    cx,
                    Some(&result),
                    elapsed,
                    cx.clock.now(),
                )));
                observer.observe(black_box(&Event::call_finished(cx, Some(&result), elapsed)));
            });
        });
    }
    group.finish();
}

criterion_group!(benches, usage);
criterion_main!(benches);
