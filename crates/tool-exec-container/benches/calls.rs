//! Latency of a call in a container, against the engine's own program for the same container.

use std::{
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::json;
use tokio::runtime::Runtime;
use tool_core::{
    Arguments, CallContext, Descriptor, Executor, ExecutorSpec, Invoke, NoSecrets, TargetBackend, Tool,
    ToolBuilder,
};
use tool_exec_container::{ContainerExecutor, ContainerOptions, ContainerRuntime, EngineSockets};
use tp_containers::{EngineKind, TestEngine};

fn tool(engine: &TestEngine) -> (Arc<Tool>, ContainerRuntime) {
    let options = ContainerOptions::default().with_sockets(EngineSockets::written(engine.socket()));
    let runtime = ContainerRuntime::new(options, Arc::new(NoSecrets));
    let executor = ContainerExecutor::new(runtime.clone());
    let settings = json!({"image": engine.image(), "command": ["echo", "1"]});
    let descriptor = Descriptor::new("tool", ExecutorSpec::new("docker").with_config(settings));
    let backend = executor.prepare(&descriptor).expect("the settings are usable");
    (
        ToolBuilder::from_descriptor(descriptor).run_on_dyn(backend),
        runtime,
    )
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn call(runtime: &Runtime, tool: &Arc<Tool>) -> Duration {
    runtime.block_on(async {
        let arguments = Arguments::from_value(json!({"n": 1})).expect("an object");
        let mut cx = CallContext::local(tool, arguments);
        let started = Instant::now();
        TargetBackend.invoke(&mut cx).await.expect("a result");
        started.elapsed()
    })
}

/// Runs the same container by the engine's own program.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn run(engine: &TestEngine) -> Duration {
    let options = "run --rm --interactive --init --network none --read-only --cap-drop ALL --security-opt no-new-privileges \
                   --memory 512m --memory-swap 512m --pids-limit 64 --cpus 1 --user 65534:65534 --tmpfs /tmp:noexec,size=64m \
                   --ulimit nofile=256:256 --ulimit nproc=1024:1024 --log-driver none";
    let mut words: Vec<&str> = options.split_whitespace().collect();
    words.extend([engine.image(), "echo", "1"]);
    let started = Instant::now();
    let status = engine
        .command(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.expect("the program runs").success());
    started.elapsed()
}

fn calls(c: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let mut group = c.benchmark_group("container");
    group.sample_size(20).measurement_time(Duration::from_secs(12));
    for kind in EngineKind::ALL {
        let engine = TestEngine::start(*kind).unwrap_or_else(|reason| panic!("{kind:?}: {reason}"));
        let (tool, containers) = tool(&engine);
        // Finds the engine and the image.
        call(&runtime, &tool);
        group.bench_function(format!("{kind:?}, a call"), |bencher| {
            bencher.iter_custom(|n| (0..n).map(|_| call(&runtime, &tool)).sum());
        });
        group.bench_function(format!("{kind:?}, its own program"), |bencher| {
            bencher.iter_custom(|n| (0..n).map(|_| run(&engine)).sum());
        });
        runtime.block_on(containers.shutdown());
    }
    group.finish();
}

criterion_group!(benches, calls);
criterion_main!(benches);
