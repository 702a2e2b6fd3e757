//! Sandboxes of this machine, and commands for them.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::sleep;
use tool_sandbox::{Sandbox, SandboxCommand, SandboxLevel};
use tool_testkit::skip;

/// Returns the sandbox at `level`; `None`, and a report, if this machine lacks it.
pub(crate) async fn at(level: SandboxLevel) -> Option<Sandbox> {
    match Sandbox::at(level).await {
        Ok(sandbox) => Some(sandbox),
        Err(error) => {
            skip(error.to_string());
            None
        }
    }
}

/// Returns a sandbox at each level that isolates.
pub(crate) async fn isolating() -> Vec<Sandbox> {
    let mut found = Vec::new();
    for level in [SandboxLevel::Bwrap, SandboxLevel::Landlock] {
        found.extend(at(level).await);
    }
    found
}

/// Returns a sandbox at each level.
pub(crate) async fn levels() -> Vec<Sandbox> {
    let mut found = isolating().await;
    found.extend(at(SandboxLevel::Unsandboxed).await);
    found
}

/// Returns a command that runs a script.
pub(crate) fn shell(script: &str) -> SandboxCommand {
    SandboxCommand::new("/bin/sh").args(["-c", script])
}

/// Returns `true` if the tests run as root.
pub(crate) fn is_root() -> bool {
    fs::read_to_string("/proc/self/status")
        .unwrap()
        .lines()
        .any(|line| line.starts_with("Uid:\t0\t"))
}

/// Returns a number of seconds that no other process sleeps for.
pub(crate) fn mark() -> String {
    let number: u64 = RandomState::new().hash_one(std::process::id());
    format!("86400.{number:020}")
}

/// Waits until `sleep` with this mark runs, or until it is gone. The wait has an end so that a failure is one.
pub(crate) async fn becomes(mark: &str, is_wanted: bool) -> bool {
    for _ in 0..1000 {
        if is_asleep(mark) == is_wanted {
            return true;
        }
        sleep(Duration::from_millis(20)).await;
    }
    false
}

fn is_asleep(mark: &str) -> bool {
    let line = format!("sleep\0{mark}\0");
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .any(|found| found == line.as_bytes())
}

/// Returns the folder of the examples, which is beside that of the tests.
pub(crate) fn examples() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    folder.join("examples")
}
