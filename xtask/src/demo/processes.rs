//! Processes that the demo starts and stops.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// Maximum time for a process to start, and for one to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// Running processes, the newest last.
///
/// Each leads its own process group: Ctrl-C reaches only the demo, which then ends them in order.
#[derive(Debug, Default)]
pub(super) struct Processes(Vec<Process>);

#[derive(Debug)]
struct Process {
    name: String,
    child: Child,
}

impl Processes {
    /// Starts a background process.
    pub(super) fn start(&mut self, name: &str, mut command: Command) -> Result<()> {
        let child = command
            .stdin(Stdio::null())
            .process_group(0)
            // The last resort if the demo itself fails.
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("failed to start `{name}`"))?;
        self.0.push(Process {
            name: name.to_owned(),
            child,
        });
        Ok(())
    }

    /// Waits until the most recently started process listens on a local port.
    pub(super) async fn wait_for_port(&mut self, port: u16) -> Result<()> {
        let process = self.0.last_mut().context("nothing was started")?;
        let up = async {
            while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
                if let Some(status) = process.child.try_wait()? {
                    bail!("`{}` ended with {status} before it listened", process.name);
                }
                sleep(Duration::from_millis(50)).await;
            }
            Ok(())
        };
        let waited = timeout(PATIENCE, up).await;
        waited.with_context(|| format!("`{}` does not listen on port {port}", process.name))?
    }

    /// Runs a process to its end and returns what it wrote to stdout.
    pub(super) async fn output(&mut self, name: &str, mut command: Command) -> Result<(ExitStatus, String)> {
        command.stdout(Stdio::piped());
        self.start(name, command)?;
        // The process stays in the list while it runs, so that it is also stopped on an interrupt.
        let process = self.0.last_mut().context("nothing was started")?;
        let mut stdout = process.child.stdout.take().context("stdout is no pipe")?;
        let mut text = String::new();
        let run = async {
            stdout.read_to_string(&mut text).await?;
            process.child.wait().await
        };
        let status = timeout(2 * PATIENCE, run)
            .await
            .with_context(|| format!("`{name}` does not end"))??;
        self.0.pop();
        Ok((status, text))
    }

    /// Asks every process to end, the newest first, and kills those that do not.
    pub(super) async fn stop(&mut self) {
        while let Some(mut process) = self.0.pop() {
            let id = process
                .child
                .id()
                .and_then(|id| Pid::from_raw(id.try_into().ok()?));
            for ending in [Signal::TERM, Signal::KILL] {
                if let Some(id) = id {
                    // The process may have ended just now.
                    let _ = kill_process_group(id, ending);
                }
                if timeout(PATIENCE, process.child.wait()).await.is_ok() {
                    break;
                }
            }
        }
    }
}
