use std::{process::ExitStatus, time::Duration};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{Command, Process, ProcessEnd, ProcessHandle, Stop};
use crate::ClientError;

/// Time that a program's standard error has to end after the program.
const STDERR_TIMEOUT: Duration = Duration::from_millis(500);

/// Output of a program that has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct CommandOutput {
    /// Standard output, up to the limit.
    pub stdout: Vec<u8>,
    /// `true` if the program wrote more than the limit. It was killed then.
    pub is_truncated: bool,
    /// Tail of its standard error.
    pub stderr: String,
    /// Exit status, if the system reported one. A spawner reports none.
    pub status: Option<ExitStatus>,
}

impl Command {
    /// Runs the program once: writes `input` to its standard input, closes it, and collects its standard output until it has
    /// ended. Descendants that it leaves behind are killed. More than `max_output` bytes end the program.
    ///
    /// # Errors
    /// If the program cannot be started. A program that fails is no error: [`CommandOutput::status`] reports it.
    ///
    /// # Cancellation
    /// Dropping the future kills the program with all its descendants.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), mcp_client::ClientError> {
    /// let output = mcp_client::Command::new("cat").run_once(b"hello", 1024).await?;
    /// assert_eq!(output.stdout, b"hello");
    /// assert!(output.status.is_some_and(|status| status.success()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run_once(&self, input: &[u8], max_output: usize) -> Result<CommandOutput, ClientError> {
        match self.own_spawner() {
            Some(spawner) => {
                let (process, stdin, stdout) = Process::spawn_by(spawner, self, Duration::ZERO).await?;
                Ok(collect(process, (stdin, stdout), input, max_output).await)
            }
            None => {
                let (process, stdin, stdout) = Process::spawn(self, Duration::ZERO)?;
                Ok(collect(process, (stdin, stdout), input, max_output).await)
            }
        }
    }
}

async fn collect(
    process: Process,
    (stdin, stdout): (impl AsyncWrite + Unpin, impl AsyncRead + Unpin),
    input: &[u8],
    max_output: usize,
) -> CommandOutput {
    let handle = process.handle();
    let ((), (stdout, is_truncated)) =
        tokio::join!(write(stdin, input, &handle), read(stdout, max_output, &handle));
    handle.wait().await;
    handle.stderr.finished(STDERR_TIMEOUT).await;
    let status = handle.exit.borrow().as_ref().and_then(ProcessEnd::status);
    CommandOutput {
        stdout,
        is_truncated,
        stderr: process.stderr_text(),
        status,
    }
}

async fn write(mut stdin: impl AsyncWrite + Unpin, input: &[u8], handle: &ProcessHandle) {
    // Fails if the program ends, or closes its input, before it has read everything. Its output tells what it made of it.
    let _ = stdin.write_all(input).await;
    handle.record_descendants();
}

/// Reads up to the limit. Returns `true` if there was more.
async fn read(
    mut stdout: impl AsyncRead + Unpin,
    max_output: usize,
    handle: &ProcessHandle,
) -> (Vec<u8>, bool) {
    let mut output = Vec::new();
    let limit = u64::try_from(max_output).unwrap_or(u64::MAX);
    // The end of the stream and a failure to read it are the same here: the exit status follows.
    let _ = (&mut stdout)
        .take(limit.saturating_add(1))
        .read_to_end(&mut output)
        .await;
    let is_truncated = output.len() > max_output;
    if is_truncated {
        handle.stop(Stop::Now);
        output.truncate(max_output);
    }
    (output, is_truncated)
}
