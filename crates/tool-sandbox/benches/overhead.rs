//! Cost of a sandbox: a program that does nothing, bare and at each level.

use std::time::Duration;

use criterion::Criterion;
use tokio::process::Command;
use tokio::runtime::Runtime;
use tool_sandbox::{Sandbox, SandboxCommand, SandboxLevel};

const PROGRAM: &str = "/usr/bin/true";

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let mut criterion = Criterion::default()
        .measurement_time(Duration::from_secs(10))
        .configure_from_args();
    let mut group = criterion.benchmark_group("overhead");
    group.bench_function("bare", |bencher| {
        bencher.iter(|| {
            runtime
                .block_on(async { Command::new(PROGRAM).output().await })
                .expect("the program runs")
        });
    });
    for level in [
        SandboxLevel::Bwrap,
        SandboxLevel::Landlock,
        SandboxLevel::Unsandboxed,
    ] {
        // A level that this machine lacks has no figure.
        let Ok(sandbox) = runtime.block_on(Sandbox::at(level)) else {
            continue;
        };
        group.bench_function(level.as_str(), |bencher| {
            bencher.iter(|| {
                let output = runtime.block_on(sandbox.run(SandboxCommand::new(PROGRAM)));
                assert!(output.expect("the sandbox starts").exit.is_success());
            });
        });
    }
    group.finish();
    criterion.final_summary();
}
