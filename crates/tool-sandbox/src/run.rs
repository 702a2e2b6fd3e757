//! Whole run of a command: input written, output read up to its limit, tree killed at the deadline.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use crate::child::{SandboxChild, TreeEnd};
use crate::{SandboxError, SandboxExit, SandboxLimits, SandboxOutput};

/// Time that is granted to read what is left in a pipe after the tree is gone.
const DRAIN_TIME: Duration = Duration::from_millis(500);

/// Stream as far as it was kept.
struct Captured {
    bytes: Vec<u8>,
    is_truncated: bool,
}

/// Follows `child` to its end.
pub(crate) async fn run(
    mut child: SandboxChild,
    input: Vec<u8>,
    limits: &SandboxLimits,
) -> Result<SandboxOutput, SandboxError> {
    let started = Instant::now();
    let (exceeded, mut exceeds) = mpsc::channel(2);
    let writer = tokio::spawn(write_input(child.stdin.take(), input));
    let stdout = tokio::spawn(capture(child.stdout.take(), limits.output, exceeded.clone()));
    let stderr = tokio::spawn(capture(child.stderr.take(), limits.output, exceeded));
    let (end, forced) = follow(&mut child, limits.wall_time, &mut exceeds).await;
    writer.abort();
    let stdout = drain(stdout).await;
    let stderr = drain(stderr).await;
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

/// Keeps the first `limit` bytes, and reports once when there are more.
async fn capture(stream: Option<impl AsyncRead + Unpin>, limit: u64, exceeded: mpsc::Sender<()>) -> Captured {
    let mut captured = Captured {
        bytes: Vec::new(),
        is_truncated: false,
    };
    let Some(mut stream) = stream else {
        return captured;
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        let space = limit.saturating_sub(captured.bytes.len());
        captured.bytes.extend_from_slice(&buffer[..length.min(space)]);
        if length > space {
            captured.is_truncated = true;
            let _ = exceeded.send(()).await;
            break;
        }
    }
    captured
}

/// Returns what `reader` has kept. Only a process that left an unsandboxed tree can hold the pipe open any longer.
async fn drain(mut reader: tokio::task::JoinHandle<Captured>) -> Captured {
    if let Ok(Ok(captured)) = timeout(DRAIN_TIME, &mut reader).await {
        return captured;
    }
    reader.abort();
    Captured {
        bytes: Vec::new(),
        is_truncated: true,
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
