//! Whole run of a command: input written, output read up to its limit, tree killed at the deadline.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::child::{SandboxChild, TreeEnd};
use crate::event::StdoutObserver;
use crate::{SandboxError, SandboxExit, SandboxLimits, SandboxOutput};

/// Time that is granted to read what is left in a pipe after the tree is gone.
const DRAIN_TIME: Duration = Duration::from_millis(500);

/// Stream as far as it was kept.
#[derive(Default)]
struct Captured {
    bytes: Vec<u8>,
    is_truncated: bool,
}

/// Follows `child` to its end.
pub(crate) async fn run(
    mut child: SandboxChild,
    input: Vec<u8>,
    limits: &SandboxLimits,
    on_stdout: Option<StdoutObserver>,
) -> Result<SandboxOutput, SandboxError> {
    let started = Instant::now();
    let (exceeded, mut exceeds) = mpsc::channel(2);
    let writer = tokio::spawn(write_input(child.stdin.take(), input));
    let stdout = Reader::start(child.stdout.take(), limits.output, exceeded.clone(), on_stdout);
    let stderr = Reader::start(child.stderr.take(), limits.output, exceeded, None);
    let (end, forced) = follow(&mut child, limits.wall_time, &mut exceeds).await;
    writer.abort();
    let stdout = stdout.finish().await;
    let stderr = stderr.finish().await;
    let end = end.map_err(|error| with_diagnostics(error, &stderr))?;
    let is_limited = stdout.is_truncated || stderr.is_truncated;
    Ok(SandboxOutput {
        exit: match forced {
            Some(exit) => exit,
            None if is_limited => SandboxExit::OutputLimit,
            None => end.exit,
        },
        stdout: stdout.bytes,
        stderr: stderr.bytes,
        stdout_truncated: stdout.is_truncated,
        stderr_truncated: stderr.is_truncated,
        level: child.level(),
        files: end.files,
        skipped_files: end.skipped_files,
        elapsed: started.elapsed(),
    })
}

/// Waits for the end of the tree and kills it at its limits. The second value is the limit that was reached.
async fn follow(
    child: &mut SandboxChild,
    wall_time: Duration,
    exceeds: &mut mpsc::Receiver<()>,
) -> (Result<TreeEnd, SandboxError>, Option<SandboxExit>) {
    let forced = tokio::select! {
        end = child.wait_end() => return (end, None),
        () = sleep(wall_time) => SandboxExit::TimedOut,
        Some(()) = exceeds.recv() => SandboxExit::OutputLimit,
    };
    child.kill();
    let end = child.wait_end().await;
    // A tree that was out of memory is reported as such, even if its deadline passed while it was killed.
    let forced = match &end {
        Ok(end) if end.exit == SandboxExit::OutOfMemory => SandboxExit::OutOfMemory,
        _ => forced,
    };
    (end, Some(forced))
}

async fn write_input(stdin: Option<ChildStdin>, input: Vec<u8>) {
    if let Some(mut stdin) = stdin {
        // A program may end without reading its input.
        let _ = stdin.write_all(&input).await;
        let _ = stdin.shutdown().await;
    }
}

/// Task that reads a stream.
struct Reader {
    task: JoinHandle<Captured>,
    stop: oneshot::Sender<()>,
}

impl Reader {
    fn start(
        stream: Option<impl AsyncRead + Send + Unpin + 'static>,
        limit: u64,
        exceeded: mpsc::Sender<()>,
        observer: Option<StdoutObserver>,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(capture(stream, limit, exceeded, stopped, observer));
        Self { task, stop }
    }

    /// Returns what was kept, after the tree is gone. Only a process that left an unsandboxed tree can hold the pipe open
    /// any longer; its output is not waited for.
    async fn finish(mut self) -> Captured {
        let captured = match timeout(DRAIN_TIME, &mut self.task).await {
            Ok(captured) => captured,
            Err(_) => {
                // The task may have ended just now.
                let _ = self.stop.send(());
                self.task.await
            }
        };
        captured.unwrap_or_default()
    }
}

/// Keeps the first `limit` bytes, and reports once when there are more.
async fn capture(
    stream: Option<impl AsyncRead + Unpin>,
    limit: u64,
    exceeded: mpsc::Sender<()>,
    mut stop: oneshot::Receiver<()>,
    observer: Option<StdoutObserver>,
) -> Captured {
    let mut captured = Captured::default();
    let Some(mut stream) = stream else {
        return captured;
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let length = tokio::select! {
            read = stream.read(&mut buffer) => read.unwrap_or_default(),
            _ = &mut stop => 0,
        };
        if length == 0 {
            return captured;
        }
        let space = limit.saturating_sub(captured.bytes.len());
        let kept = &buffer[..length.min(space)];
        captured.bytes.extend_from_slice(kept);
        if let Some(observer) = &observer {
            (observer.0)(kept);
        }
        if length > space {
            captured.is_truncated = true;
            // The receiver is gone if the tree is.
            let _ = exceeded.send(()).await;
            return captured;
        }
    }
}

/// Adds what the sandbox wrote to the standard error before it failed.
fn with_diagnostics(error: SandboxError, stderr: &Captured) -> SandboxError {
    match error {
        SandboxError::Spawn { reason, source } if !stderr.bytes.is_empty() => {
            let text = String::from_utf8_lossy(&stderr.bytes);
            SandboxError::Spawn {
                reason: format!("{reason}: {}", text.trim()),
                source,
            }
        }
        error => error,
    }
}
