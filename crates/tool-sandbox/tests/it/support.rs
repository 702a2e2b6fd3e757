//! Sandboxes of this machine, and commands for them.

use tool_sandbox::{Sandbox, SandboxCommand, SandboxLevel};

/// Returns a sandbox at each level that isolates.
pub(crate) async fn isolating() -> Vec<Sandbox> {
    let mut found = Vec::new();
    for level in [SandboxLevel::Bwrap, SandboxLevel::Landlock] {
        found.push(Sandbox::at(level).await.unwrap());
    }
    found
}

/// Returns a sandbox at each level.
pub(crate) async fn levels() -> Vec<Sandbox> {
    let mut found = isolating().await;
    found.push(Sandbox::at(SandboxLevel::Unsandboxed).await.unwrap());
    found
}

/// Returns a command that runs a script.
pub(crate) fn shell(script: &str) -> SandboxCommand {
    SandboxCommand::new("/bin/sh").args(["-c", script])
}

/// Returns `true` if the tests run as root.
pub(crate) fn is_root() -> bool {
    std::fs::read_to_string("/proc/self/status")
        .unwrap()
        .lines()
        .any(|line| line.starts_with("Uid:\t0\t"))
}
