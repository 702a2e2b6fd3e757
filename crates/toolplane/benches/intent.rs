//! Cost of intents: a static mock tool through every layer, with and without a record in an SQLite file before each call, one
//! call at a time and 32 at once. The figures depend on how fast the disk confirms a commit.

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tempfile::TempDir;
use tokio::{runtime::Runtime, task::JoinSet};
use tool_store_sqlite::{SqlLedger, SqliteOptions, sqlite_store};
use toolplane::{CallRequest, Toolplane};

const N_AT_ONCE: u64 = 32;

fn plane(directory: &TempDir, is_on: bool) -> Toolplane {
    let store = sqlite_store(SqliteOptions::new(directory.path().join("toolplane.db")));
    let tools = "tools: {pay: {description: Pays., executor: {kind: mock, result: {ok: true}}}}";
    Toolplane::builder()
        .yaml(format!("defaults: {{intent: {is_on}}}\n{tools}"))
        .expect("the configuration is usable")
        .ledger(Arc::new(SqlLedger::new(Arc::new(store))))
        .build()
        .expect("can be set up")
}

async fn call_many(plane: &Toolplane, n_calls: u64) {
    let mut calls = JoinSet::new();
    for _ in 0..n_calls {
        let plane = plane.clone();
        calls.spawn(async move { plane.call(CallRequest::new("pay")).await.expect("answers") });
    }
    calls.join_all().await;
}

fn intents(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let directory = tempfile::tempdir().expect("a directory");
    for (name, is_on) in [("without intents", false), ("with intents", true)] {
        let plane = {
            let _guard = runtime.enter();
            plane(&directory, is_on)
        };
        let mut group = criterion.benchmark_group(name);
        for n_calls in [1, N_AT_ONCE] {
            group.throughput(Throughput::Elements(n_calls));
            group.bench_function(format!("{n_calls} at once"), |bencher| {
                bencher.iter(|| runtime.block_on(call_many(&plane, n_calls)));
            });
        }
        group.finish();
        runtime.block_on(plane.shutdown());
    }
}

criterion_group!(benches, intents);
criterion_main!(benches);
