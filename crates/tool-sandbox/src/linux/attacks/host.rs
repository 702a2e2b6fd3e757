//! Targets of the attacks.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::{Sandbox, SandboxCommand, SandboxEnforcement, SandboxLimits, SandboxOutput};

/// Interpreter of the attacks that make system calls. Debian and its kin always have it.
const PERL: &str = "/usr/bin/perl";

/// Sandbox that is attacked, and a directory with a secret.
pub(super) struct Host {
    sandbox: Sandbox,
    folder: TempDir,
    secret: String,
}

impl Host {
    pub(super) fn new(sandbox: Sandbox) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("tool-sandbox-probe-").tempdir()?;
        let secret = format!("canary-{}", nonce());
        fs::write(folder.path().join("secret"), &secret)?;
        Ok(Self {
            sandbox,
            folder,
            secret,
        })
    }

    /// Returns the scopes of the limits of the sandbox.
    pub(super) fn enforcement(&self) -> &SandboxEnforcement {
        self.sandbox.enforcement()
    }

    /// Returns the directory of the probe.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path of a file that no sandbox may read.
    pub(super) fn secret_path(&self) -> PathBuf {
        self.folder().join("secret")
    }

    /// Returns `true` if `bytes` contain the secret.
    pub(super) fn is_leaked(&self, bytes: &[u8]) -> bool {
        contains(bytes, self.secret.as_bytes())
    }

    /// Runs a command with a limit of time that suits an attack.
    pub(super) async fn run(&self, command: SandboxCommand) -> Result<SandboxOutput, String> {
        self.sandbox.run(command).await.map_err(|error| error.to_string())
    }

    /// Runs a shell script.
    pub(super) async fn shell(&self, script: &str, args: &[&str]) -> Result<SandboxOutput, String> {
        self.run(shell(script, args)).await
    }

    /// Runs a Perl program, or says that there is no Perl.
    pub(super) async fn perl(&self, program: &str, limits: SandboxLimits) -> Result<SandboxOutput, String> {
        if !Path::new(PERL).is_file() {
            return Err(format!("the attack needs `{PERL}`"));
        }
        let command = SandboxCommand::new(PERL).args(["-e", program]).limits(limits);
        self.run(command).await
    }
}

/// Returns a command that runs a shell script.
pub(super) fn shell(script: &str, args: &[&str]) -> SandboxCommand {
    SandboxCommand::new("/bin/sh")
        .args(["-c", script, "sh"])
        .args(args.iter().copied())
        .limits(limits())
}

/// Returns limits that suit an attack.
pub(super) fn limits() -> SandboxLimits {
    SandboxLimits::default().with_wall_time(Duration::from_secs(30))
}

/// Returns a number that appears nowhere else.
pub(super) fn nonce() -> String {
    let number: u64 = RandomState::new().hash_one(std::process::id());
    format!("{number:020}")
}

pub(super) fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    !wanted.is_empty() && bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// Returns `true` if a process of the machine has `text` among its arguments.
pub(super) fn is_running(text: &str) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .any(|line| contains(&line, text.as_bytes()))
}

/// Returns the standard output as text.
pub(super) fn text(output: &SandboxOutput) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
