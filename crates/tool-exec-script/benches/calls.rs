//! Latency of calls of code: a bare process, a script, Python cold and warm.

use std::{
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tool_core::{
    Arguments, CallContext, Descriptor, Executor, ExecutorSpec, Invoke, TargetBackend, Tool, ToolBuilder,
};
use tool_exec_script::{ScriptExecutor, ScriptLanguage, ScriptRuntime};

/// Time that an interpreter gets to load the code before the next call.
const PAUSE: Duration = Duration::from_millis(300);

const CODE: &str = "import json, re, datetime\ndef run(n):\n    return {'n': n}\n";

fn tool(language: ScriptLanguage, config: Value) -> Arc<Tool> {
    let executor = ScriptExecutor::new(language, ScriptRuntime::default());
    let descriptor = Descriptor::new("tool", ExecutorSpec::new(language.kind()).with_config(config));
    let backend = executor.prepare(&descriptor).expect("the settings are usable");
    ToolBuilder::from_descriptor(descriptor).run_on_dyn(backend)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn call(runtime: &Runtime, tool: &Arc<Tool>, pause: Duration) -> Duration {
    runtime.block_on(async {
        tokio::time::sleep(pause).await;
        let arguments = Arguments::from_value(json!({"n": 1})).expect("an object");
        let mut cx = CallContext::local(tool, arguments);
        let started = Instant::now();
        TargetBackend.invoke(&mut cx).await.expect("a result");
        started.elapsed()
    })
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn spawn(program: &str, args: &[&str]) -> Duration {
    let started = Instant::now();
    let status = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    assert!(status.expect("the program runs").success());
    started.elapsed()
}

fn calls(c: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let mut group = c.benchmark_group("code");
    group.sample_size(20).measurement_time(Duration::from_secs(8));
    let bare = [
        ("bash, bare process", "/usr/bin/bash", &["-c", "echo 1"][..]),
        (
            "python, bare process",
            "/usr/bin/python3",
            &["-I", "-c", "import json, re, datetime"],
        ),
    ];
    for (name, program, args) in bare {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|n| (0..n).map(|_| spawn(program, args)).sum());
        });
    }
    let tools = [
        (
            "bash",
            ScriptLanguage::Bash,
            json!({"code": "echo 1"}),
            Duration::ZERO,
        ),
        (
            "bash without a sandbox",
            ScriptLanguage::Bash,
            json!({"code": "echo 1", "sandbox": "none"}),
            Duration::ZERO,
        ),
        (
            "python, cold",
            ScriptLanguage::Python,
            json!({"code": CODE}),
            Duration::ZERO,
        ),
        (
            "python, warm",
            ScriptLanguage::Python,
            json!({"code": CODE, "stateless": true}),
            PAUSE,
        ),
    ];
    for (name, language, config, pause) in tools {
        let tool = tool(language, config);
        // Finds the sandbox, and starts what waits for the next call.
        call(&runtime, &tool, Duration::ZERO);
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|n| (0..n).map(|_| call(&runtime, &tool, pause)).sum());
        });
    }
    group.finish();
}

criterion_group!(benches, calls);
criterion_main!(benches);
