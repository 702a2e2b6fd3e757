use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    sync::mpsc,
    task::JoinHandle,
    time::{sleep, timeout},
};
use tool_sandbox::{SandboxChild, SandboxError, SandboxExit, SandboxLevel, SandboxLimits, SandboxOutput};

/// Time after which an interpreter that no call used is stopped.
const IDLE_TIME: Duration = Duration::from_secs(300);
/// Time that is granted to read what is left in a pipe after the process is gone.
const DRAIN_TIME: Duration = Duration::from_millis(500);

/// Interpreter that has loaded the code of a tool and waits for the arguments of one call. Each answers one call, in a sandbox
/// of its own, so that no call sees anything of another.
#[derive(Default)]
pub(crate) struct WarmWorkers {
    idle: Mutex<Option<Worker>>,
    n_started: AtomicU64,
}

struct Worker {
    child: SandboxChild,
    /// Digest of the variables that it was started with.
    key: u64,
    number: u64,
}

/// A run that has ended.
pub(crate) struct Finished {
    pub(crate) exit: SandboxExit,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) level: SandboxLevel,
}

impl WarmWorkers {
    /// Takes the waiting interpreter, if it was started with these variables and still runs.
    pub(crate) async fn take(&self, key: u64) -> Option<SandboxChild> {
        let worker = self.idle.lock().take()?;
        let mut child = worker.child;
        let is_alive = tokio::select! {
            biased;
            _ = child.wait() => false,
            () = std::future::ready(()) => true,
        };
        (is_alive && worker.key == key).then_some(child)
    }

    /// Keeps an interpreter for the next call, and stops it if none comes.
    pub(crate) fn keep(self: &Arc<Self>, child: SandboxChild, key: u64) {
        let number = self.n_started.fetch_add(1, Ordering::Relaxed);
        *self.idle.lock() = Some(Worker { child, key, number });
        let workers = Arc::downgrade(self);
        tokio::spawn(stop_later(workers, number));
    }

    /// Returns `true` if an interpreter waits.
    pub(crate) fn has_one(&self) -> bool {
        self.idle.lock().is_some()
    }
}

async fn stop_later(workers: Weak<WarmWorkers>, number: u64) {
    sleep(IDLE_TIME).await;
    if let Some(workers) = workers.upgrade() {
        let mut idle = workers.idle.lock();
        // Dropping it ends its process.
        if idle.as_ref().is_some_and(|worker| worker.number == number) {
            *idle = None;
        }
    }
}

impl From<SandboxOutput> for Finished {
    fn from(output: SandboxOutput) -> Self {
        Self {
            exit: output.exit,
            stdout: output.stdout,
            stderr: output.stderr,
            level: output.level,
        }
    }
}

impl Finished {
    /// Gives a waiting interpreter its arguments, and follows it to its end.
    pub(crate) async fn of(
        mut child: SandboxChild,
        arguments: Vec<u8>,
        limits: &SandboxLimits,
    ) -> Result<Self, SandboxError> {
        let level = child.level();
        let stdin = child.stdin.take();
        let writer = tokio::spawn(async move {
            if let Some(mut stdin) = stdin {
                // The code may end without reading its arguments.
                let _ = stdin.write_all(&arguments).await;
                let _ = stdin.shutdown().await;
            }
        });
        let (exceeded, mut exceeds) = mpsc::channel(2);
        let stdout = tokio::spawn(capture(child.stdout.take(), limits.output, exceeded.clone()));
        let stderr = tokio::spawn(capture(child.stderr.take(), limits.output, exceeded));
        let forced = tokio::select! {
            end = child.wait() => { end?; None }
            () = sleep(limits.wall_time) => Some(SandboxExit::TimedOut),
            Some(()) = exceeds.recv() => Some(SandboxExit::OutputLimit),
        };
        child.kill();
        let ended = child.wait().await?;
        writer.abort();
        let (stdout, stderr) = (rest(stdout).await, rest(stderr).await);
        let is_limited = stdout.is_cut || stderr.is_cut;
        let exit = match (forced, ended) {
            (_, SandboxExit::OutOfMemory) => SandboxExit::OutOfMemory,
            (Some(forced), _) => forced,
            (None, _) if is_limited => SandboxExit::OutputLimit,
            (None, ended) => ended,
        };
        Ok(Self {
            exit,
            stdout: stdout.bytes,
            stderr: stderr.bytes,
            level,
        })
    }
}

/// Stream, as far as it was kept.
#[derive(Default)]
struct Captured {
    bytes: Vec<u8>,
    is_cut: bool,
}

/// Keeps the first `limit` bytes, and reports once when there are more.
async fn capture(stream: Option<impl AsyncRead + Unpin>, limit: u64, exceeded: mpsc::Sender<()>) -> Captured {
    let mut captured = Captured::default();
    let Some(mut stream) = stream else {
        return captured;
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut buffer = vec![0; 16 << 10];
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        let space = limit - captured.bytes.len();
        captured.bytes.extend_from_slice(&buffer[..length.min(space)]);
        if length > space {
            captured.is_cut = true;
            // Nobody listens once the process is gone.
            let _ = exceeded.send(()).await;
            break;
        }
    }
    captured
}

/// Returns what a reader has kept.
async fn rest(mut reader: JoinHandle<Captured>) -> Captured {
    let read = timeout(DRAIN_TIME, &mut reader).await;
    reader.abort();
    match read {
        Ok(Ok(captured)) => captured,
        _ => Captured {
            is_cut: true,
            ..Captured::default()
        },
    }
}
