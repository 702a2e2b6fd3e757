//! Starts servers in a sandbox.

use std::{
    path::PathBuf,
    sync::{Arc, LazyLock},
};

use mcp_client::{Command, ProgramControl, SpawnFuture, SpawnedProgram, Spawner};
use tokio::task::spawn_blocking;
use tool_core::{AccessVerdict, AccessedResource};
use tool_sandbox::{Sandbox, SandboxChild, SandboxExit, SandboxLevel, Sandboxes};

use super::{SandboxState, ServerSandboxLevel, command::sandbox_command};

/// Sandboxes of this machine, which all servers share.
static SANDBOXES: LazyLock<Sandboxes> = LazyLock::new(Sandboxes::default);

/// Returns the spawner of programs that may use these paths of the machine.
pub(crate) fn spawner(
    state: Arc<SandboxState>,
    reads: Vec<PathBuf>,
    writes: Vec<PathBuf>,
) -> Arc<dyn Spawner> {
    Arc::new(SandboxSpawner { state, reads, writes })
}

struct SandboxSpawner {
    state: Arc<SandboxState>,
    reads: Vec<PathBuf>,
    writes: Vec<PathBuf>,
}

impl Spawner for SandboxSpawner {
    fn spawn<'a>(&'a self, command: &'a Command) -> SpawnFuture<'a, Result<SpawnedProgram, String>> {
        Box::pin(async move {
            let sandbox = self.sandbox().await?;
            let description = self.state.sandbox();
            let prepared = sandbox_command(description, command, &self.reads, &self.writes, &sandbox)?;
            let state = self.state.clone();
            let prepared = prepared.on_event(Arc::new(move |event| {
                let verdict = match event.denial() {
                    Some(reason) => AccessVerdict::Denied(reason.to_owned()),
                    None => AccessVerdict::Allowed,
                };
                state.report(AccessedResource::host(event.host(), event.port()), verdict);
            }));
            // The start of a process takes some milliseconds, in which other tasks of this thread go on.
            let started = spawn_blocking(move || sandbox.spawn(prepared)).await;
            let mut child = started
                .map_err(|error| error.to_string())?
                .map_err(|error| error.to_string())?;
            let (Some(stdin), Some(stdout), Some(stderr)) =
                (child.stdin.take(), child.stdout.take(), child.stderr.take())
            else {
                return Err("the program has no standard streams".to_owned());
            };
            self.state.set_level(child.level().as_str());
            Ok(SpawnedProgram::new(stdin, stdout, stderr, Control(child)))
        })
    }
}

impl SandboxSpawner {
    async fn sandbox(&self) -> Result<Sandbox, String> {
        let level = match self.state.sandbox().level {
            ServerSandboxLevel::Strongest => None,
            ServerSandboxLevel::Bwrap => Some(SandboxLevel::Bwrap),
            ServerSandboxLevel::Landlock => Some(SandboxLevel::Landlock),
            ServerSandboxLevel::Unsandboxed => Some(SandboxLevel::Unsandboxed),
        };
        SANDBOXES.get(level).await.map_err(|error| error.to_string())
    }
}

/// Program in a sandbox. Dropping it kills the process tree.
struct Control(SandboxChild);

impl ProgramControl for Control {
    fn kill(&mut self) {
        self.0.kill();
    }

    fn wait(&mut self) -> SpawnFuture<'_, String> {
        Box::pin(async {
            match self.0.wait().await {
                Ok(SandboxExit::Code(code)) => format!("has ended with exit status: {code}"),
                Ok(SandboxExit::Signal(signal)) => format!("has ended by signal {signal}"),
                Ok(SandboxExit::OutOfMemory) => {
                    "was ended by its sandbox: it used more than its limit `memory`".to_owned()
                }
                Ok(SandboxExit::TimedOut) => {
                    "was ended by its sandbox: it used more than its limit `cpu_time`".to_owned()
                }
                Ok(_) => "was ended by its sandbox".to_owned(),
                Err(error) => format!("did not start: {error}"),
            }
        })
    }
}
