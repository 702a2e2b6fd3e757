//! Runs the binary in its own directory, with only `PATH` of this process's environment.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::Duration,
};

use tempfile::TempDir;

/// The tested binary.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_toolplane");
/// Time after which anything counts as hanging.
const PATIENCE: Duration = Duration::from_secs(30);

/// A directory in which the binary runs.
pub(crate) struct Place {
    directory: TempDir,
    variables: Vec<(&'static str, String)>,
}

/// Result of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn empty() -> Self {
        Self {
            directory: TempDir::new().unwrap(),
            variables: Vec::new(),
        }
    }

    /// Creates a directory with this text as its `toolplane.yaml`.
    pub(crate) fn with(configuration: &str) -> Self {
        let place = Self::empty();
        place.write("toolplane.yaml", configuration);
        place
    }

    pub(crate) fn variable(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        Run::new(self.command(arguments).output().unwrap())
    }

    /// Runs with this stdin.
    pub(crate) fn run_with(&self, arguments: &[&str], stdin: &str) -> Run {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
        Run::new(child.wait_with_output().unwrap())
    }
}

impl Run {
    pub(crate) fn new(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Returns stdout of a successful run without messages.
    #[track_caller]
    pub(crate) fn data(&self) -> &str {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{self:?}");
        &self.stdout
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns all output, for snapshots.
    pub(crate) fn transcript(&self, arguments: &[&str]) -> String {
        let Self { code, stdout, stderr } = self;
        let command = arguments.join(" ");
        format!("$ toolplane {command}\n--- stdout\n{stdout}--- stderr\n{stderr}--- exit {code}\n")
    }
}

/// Waits until a condition holds; fails if it takes too long.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    const STEP: Duration = Duration::from_millis(5);
    for _ in 0..PATIENCE.as_millis() / STEP.as_millis() {
        if holds() {
            return;
        }
        thread::sleep(STEP);
    }
    panic!("{what} did not come about");
}

/// Returns the exit code of a process, or the negative number of the signal that ended it.
#[track_caller]
pub(crate) fn end_of(child: &mut Child) -> i32 {
    use std::os::unix::process::ExitStatusExt;

    let mut status = None;
    eventually("the end of the process", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    let status = status.unwrap();
    status.code().unwrap_or_else(|| -status.signal().unwrap())
}

/// Returns the children of a process that were not reaped.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    let mut children = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // After the name, which may contain anything: the state, then the parent.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        if fields.split_whitespace().nth(1) == Some(&parent.to_string()) {
            children.push(pid);
        }
    }
    children
}

/// Returns `true` if a process exists and runs.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .trim_start()
        .chars()
        .next();
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Waits until a process handles SIGINT and SIGTERM: before, they end it at once.
pub(crate) fn until_it_listens(pid: u32) {
    const INTERRUPT_AND_TERMINATE: u64 = 1 << 1 | 1 << 14;
    eventually("the handling of signals", || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        caught.is_some_and(|mask| mask & INTERRUPT_AND_TERMINATE == INTERRUPT_AND_TERMINATE)
    });
}

pub(crate) fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}
