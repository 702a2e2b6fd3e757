//! Runs that stay within their limits.

use std::time::Duration;

use tool_sandbox::{Sandbox, SandboxCommand, SandboxExit, SandboxLevel, SandboxLimits};

async fn sandbox() -> Sandbox {
    Sandbox::at(SandboxLevel::Bwrap).await.unwrap()
}

fn shell(script: &str) -> SandboxCommand {
    SandboxCommand::new("/bin/sh").args(["-c", script])
}

#[tokio::test]
async fn program_reads_its_input_and_its_files() {
    let command = shell("cat; cat a/b.txt; pwd; id -u; echo $X")
        .stdin("input\n")
        .file("a/b.txt", "file\n")
        .env("X", "x y");
    let output = sandbox().await.run(command).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "input\nfile\n/job\n65534\nx y\n"
    );
    assert_eq!(output.exit, SandboxExit::Code(0));
    assert_eq!(output.level, SandboxLevel::Bwrap);
}

#[tokio::test]
async fn deadline_ends_the_run() {
    let limits = SandboxLimits::default().with_wall_time(Duration::from_millis(300));
    let output = sandbox()
        .await
        .run(shell("echo a; sleep 60").limits(limits))
        .await
        .unwrap();
    assert_eq!(output.exit, SandboxExit::TimedOut);
    assert_eq!(output.stdout, b"a\n");
}

#[tokio::test]
async fn output_is_capped() {
    let output = sandbox()
        .await
        .run(shell("yes").limits(SandboxLimits::default().with_output(1000)))
        .await
        .unwrap();
    assert_eq!(output.exit, SandboxExit::OutputLimit);
    assert_eq!(output.stdout.len(), 1000);
    assert!(output.stdout_truncated && !output.stderr_truncated);
}
