use std::{
    collections::HashMap,
    ffi::OsString,
    fs,
    io::Read as _,
    os::unix::process::CommandExt as _,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use super::time::{LIMIT, Stopwatch, eventually};

/// Variables of our environment that a server inherits, as the configuration's reference promises. A directly started
/// server needs the same, or the two could not be compared.
const BASE: [&str; 7] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER", "TMPDIR"];

pub(crate) fn base_environment() -> Vec<(OsString, OsString)> {
    BASE.iter()
        .filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)))
        .collect()
}

/// A running program. Dropping it kills it and all its descendants.
pub(crate) struct Process {
    child: Child,
    stderr: Arc<Mutex<Vec<u8>>>,
}

/// Identity of a process: its id may be reused later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub(crate) pid: i32,
    start: u64,
}

impl Process {
    /// Starts a program with piped input and output; its stderr is recorded.
    pub(crate) fn spawn(command: &mut Command) -> (Self, ChildStdin, ChildStdout) {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let stderr = keep(child.stderr.take().unwrap());
        (Self { child, stderr }, stdin, stdout)
    }

    /// Starts a program whose output is read and dropped, so that the program can go on writing.
    pub(crate) fn run(command: &mut Command) -> Self {
        let (process, _, mut output) = Self::spawn(command);
        thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        process
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    /// Returns `true` if the program has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Returns the program's stderr, or its end.
    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr.lock().unwrap()).into_owned()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.pid()).unwrap(), signal).unwrap();
    }

    /// Waits for the end of the program.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the end of the process", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Returns all descendants.
    pub(crate) fn descendants(&self) -> Vec<Identity> {
        descendants(self.pid())
    }

    /// Returns the peak memory of the program.
    pub(crate) fn peak_memory(&self) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        let kilobytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kilobytes * 1024
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Its children have their own process groups, so they are collected before their parent is killed.
        let family = descendants(self.pid());
        let _ = self.child.kill();
        family.iter().for_each(Identity::kill);
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("stderr of process {}:\n{}", self.pid(), self.stderr());
        }
    }
}

impl Identity {
    fn kill(&self) {
        if self.is_running() {
            let _ = kill_process(Pid::from_raw(self.pid).unwrap(), Signal::KILL);
        }
    }

    /// Returns `true` if the process runs; a zombie does not.
    pub(crate) fn is_running(&self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.start == self.start && stat.state != "Z")
    }
}

/// Checks that these processes end soon.
pub(crate) fn assert_all_end(processes: &[Identity]) {
    let watch = Stopwatch::start();
    while processes.iter().any(Identity::is_running) {
        if watch.elapsed() > LIMIT {
            let left: Vec<_> = processes.iter().filter(|process| process.is_running()).collect();
            let names: Vec<_> = left
                .iter()
                .map(|process| fs::read_to_string(format!("/proc/{}/cmdline", process.pid)))
                .collect();
            left.iter().for_each(|process| process.kill());
            panic!("left behind: {names:?}");
        }
        thread::sleep(Duration::from_millis(20));
    }
}

struct Stat {
    state: String,
    parent: i32,
    start: u64,
}

fn stat(pid: i32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses and may contain anything.
    let fields: Vec<&str> = text[text.rfind(')')? + 1..].split_whitespace().collect();
    Some(Stat {
        state: (*fields.first()?).to_owned(),
        parent: fields.get(1)?.parse().ok()?,
        start: fields.get(19)?.parse().ok()?,
    })
}

fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn descendants(root: i32) -> Vec<Identity> {
    let mut children: HashMap<i32, Vec<Identity>> = HashMap::new();
    for pid in pids() {
        if let Some(stat) = stat(pid) {
            let start = stat.start;
            children
                .entry(stat.parent)
                .or_default()
                .push(Identity { pid, start });
        }
    }
    let (mut found, mut next) = (Vec::new(), vec![root]);
    while let Some(parent) = next.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            next.push(child.pid);
            found.push(child);
        }
    }
    found
}

/// Reads all of a program's stderr in a thread and keeps its end.
fn keep(mut stderr: ChildStderr) -> Arc<Mutex<Vec<u8>>> {
    const KEPT: usize = 64 * 1024;
    let kept = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&kept);
    thread::spawn(move || {
        let mut chunk = [0; 8192];
        while let Ok(length @ 1..) = stderr.read(&mut chunk) {
            let mut kept = shared.lock().unwrap();
            kept.extend_from_slice(&chunk[..length]);
            let excess = kept.len().saturating_sub(KEPT);
            kept.drain(..excess);
        }
    });
    kept
}
