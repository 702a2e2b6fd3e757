//! Child process with all its descendants: a process group that ends as a whole, and processes that left it.

mod command;
#[cfg(target_os = "linux")]
mod descendants;
#[cfg(not(target_os = "linux"))]
#[path = "descendants_unsupported.rs"]
mod descendants;
mod run_once;
mod spawned;
mod spawner;
mod stderr_tail;

use std::{
    fmt,
    process::{ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    process::{Child, ChildStdin, ChildStdout},
    sync::watch,
    time::timeout,
};

pub use self::{
    command::{BASE_VARIABLES, Command, base_environment},
    run_once::CommandOutput,
    spawner::{ProgramControl, SpawnFuture, SpawnedProgram, Spawner},
};
use self::{
    descendants::{Descendants, MARK_VARIABLE},
    stderr_tail::StderrTail,
};
use crate::{ClientError, ClientErrorKind};

/// Running child. Dropping it kills the whole group at once, without a runtime; a program of a spawner is killed by its task.
#[derive(Debug)]
pub(crate) struct Process {
    /// `None` for a program of a spawner.
    group: Option<Arc<ProcessGroup>>,
    stop: watch::Sender<Stop>,
    exit: watch::Receiver<Option<ProcessEnd>>,
    stderr: Arc<StderrTail>,
}

/// Way in which the child is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stop {
    No,
    /// Wait, SIGTERM, wait, SIGKILL.
    Orderly,
    /// SIGKILL at once.
    Now,
}

/// Way in which a program ended, to follow "the server".
#[derive(Debug, Clone)]
enum ProcessEnd {
    /// The child has ended, with this status if the system reported one.
    Child(Option<ExitStatus>),
    /// The program of a spawner has ended, as that says.
    Spawned(String),
}

impl ProcessEnd {
    fn status(&self) -> Option<ExitStatus> {
        match self {
            Self::Child(status) => *status,
            Self::Spawned(_) => None,
        }
    }
}

impl fmt::Display for ProcessEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Child(Some(status)) => write!(f, "has ended with {status}"),
            Self::Child(None) => f.write_str("has ended"),
            Self::Spawned(end) => f.write_str(end),
        }
    }
}

/// Handle for the tasks of a connection. Ends the process, but does not keep it alive.
#[derive(Debug, Clone)]
pub(crate) struct ProcessHandle {
    group: Option<Arc<ProcessGroup>>,
    stop: watch::Sender<Stop>,
    exit: watch::Receiver<Option<ProcessEnd>>,
    stderr: Arc<StderrTail>,
}

/// Process group and the descendants that left it. The id stays reserved while one process of the group lives or waits
/// to be reaped.
#[derive(Debug)]
struct ProcessGroup {
    id: Pid,
    descendants: Descendants,
    is_gone: AtomicBool,
}

impl ProcessGroup {
    fn signal(&self, signal: Signal) {
        if !self.is_gone.load(Ordering::SeqCst) {
            self.descendants.signal(signal);
            // Fails if no process is left, as intended.
            let _ = kill_process_group(self.id, signal);
        }
    }

    /// Kills the remaining processes after the leader was reaped. Afterwards the id may be reused. Blocks briefly.
    fn finish(&self) {
        if !self.is_gone.swap(true, Ordering::SeqCst) {
            let _ = kill_process_group(self.id, Signal::KILL);
            self.descendants.finish();
        }
    }
}

impl Process {
    /// Starts the program. Its tasks run until it has ended.
    pub(crate) fn spawn(
        command: &Command,
        grace: Duration,
    ) -> Result<(Self, ChildStdin, ChildStdout), ClientError> {
        let descendants = Descendants::new();
        let mut child = prepare_command(command)
            .env(MARK_VARIABLE, descendants.mark_value())
            .spawn()
            .map_err(|error| start_failed(command, error))?;
        let id = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        let (Some(id), Some(stdin), Some(stdout), Some(stderr)) =
            (id, child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(ClientError::closed("the process ended immediately"));
        };
        descendants.set_leader(id);
        let group = Arc::new(ProcessGroup {
            id,
            descendants,
            is_gone: AtomicBool::new(false),
        });
        let (stop, stopped) = watch::channel(Stop::No);
        let (exited, exit) = watch::channel(None);
        let tail = StderrTail::drain(stderr, command.program.to_string_lossy().into_owned());
        // The guard is created here, so that it works even if the task is dropped before its first poll.
        let guard = KillOnDrop(Arc::clone(&group));
        tokio::spawn(async move {
            let status = supervise(child, &guard.0, stopped, grace).await;
            let group = Arc::clone(&guard.0);
            // An error means that the runtime is shutting down: then the guard does it.
            let _ = tokio::task::spawn_blocking(move || group.finish()).await;
            exited.send_replace(Some(ProcessEnd::Child(status)));
        });
        Ok((
            Self {
                group: Some(group),
                stop,
                exit,
                stderr: tail,
            },
            stdin,
            stdout,
        ))
    }

    /// Tail of its stderr.
    pub(crate) fn stderr_text(&self) -> String {
        self.stderr.text()
    }

    pub(crate) fn handle(&self) -> ProcessHandle {
        ProcessHandle {
            group: self.group.clone(),
            stop: self.stop.clone(),
            exit: self.exit.clone(),
            stderr: Arc::clone(&self.stderr),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        match &self.group {
            Some(group) => group.signal(Signal::KILL),
            None => self.handle().stop(Stop::Now),
        }
    }
}

/// Kills all remaining processes if the supervising task is dropped with its runtime.
struct KillOnDrop(Arc<ProcessGroup>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.signal(Signal::KILL);
        self.0.finish();
    }
}

impl ProcessHandle {
    /// Records the descendants. Must be called before stdin is closed: the child may end, and its descendants can then
    /// no longer be found by their parent.
    pub(crate) fn record_descendants(&self) {
        // All processes of a spawner end with its program.
        if let Some(group) = &self.group {
            group.descendants.record();
        }
    }

    /// Requests the end of the process. A gentler request never replaces a harder one.
    pub(crate) fn stop(&self, how: Stop) {
        self.stop.send_if_modified(|stop| {
            let harder = how > *stop;
            if harder {
                *stop = how;
            }
            harder
        });
    }

    /// Waits until the child has ended and its group is gone.
    pub(crate) async fn wait(&self) {
        // An error means that the supervising task is gone, and the process with it.
        let _ = self.exit.clone().wait_for(Option::is_some).await;
    }

    /// Describes how the child ended, for an error message. Waits briefly for the exit status.
    pub(crate) async fn exit_description(&self) -> String {
        const EXIT_TIMEOUT: Duration = Duration::from_millis(500);
        let mut exit = self.exit.clone();
        let end = match timeout(EXIT_TIMEOUT, exit.wait_for(Option::is_some)).await {
            Ok(Ok(end)) => end.clone(),
            _ => None,
        };
        let Some(end) = end else {
            return "the server closed its output".to_owned();
        };
        self.stderr.finished(EXIT_TIMEOUT).await;
        format!("the server {end}")
    }
}

fn prepare_command(command: &Command) -> tokio::process::Command {
    let mut prepared = tokio::process::Command::new(&command.program);
    prepared
        .args(&command.args)
        .env_clear()
        .envs(command.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    if let Some(directory) = &command.directory {
        prepared.current_dir(directory);
    }
    prepared
}

fn start_failed(command: &Command, error: std::io::Error) -> ClientError {
    let reason = format!("cannot run `{}`: {error}", command.program.to_string_lossy());
    ClientError::new(ClientErrorKind::StartFailed {
        reason,
        stderr: String::new(),
    })
    .with_quoted_source(error)
}

/// Waits for the leader to end by itself or on request.
async fn supervise(
    mut child: Child,
    group: &ProcessGroup,
    mut stop: watch::Receiver<Stop>,
    grace: Duration,
) -> Option<ExitStatus> {
    let requested = tokio::select! {
        status = child.wait() => return status.ok(),
        requested = stop.wait_for(|stop| *stop > Stop::No) => requested.map_or(Stop::Now, |stop| *stop),
    };
    if requested == Stop::Orderly {
        for signal in [None, Some(Signal::TERM)] {
            if let Some(signal) = signal {
                group.signal(signal);
            }
            tokio::select! {
                status = child.wait() => return status.ok(),
                // Also ready if every handle was dropped.
                _ = stop.wait_for(|stop| *stop == Stop::Now) => break,
                () = tokio::time::sleep(grace) => {}
            }
        }
    }
    group.signal(Signal::KILL);
    child.wait().await.ok()
}
