//! Refuses servers with a sandbox if the feature `sandbox` is disabled.

use std::{path::PathBuf, sync::Arc};

use mcp_client::{Command, SpawnFuture, SpawnedProgram, Spawner};

use super::SandboxState;

/// Returns a spawner that starts nothing.
pub(crate) fn spawner(_: Arc<SandboxState>, _: Vec<PathBuf>, _: Vec<PathBuf>) -> Arc<dyn Spawner> {
    Arc::new(NoSandbox)
}

struct NoSandbox;

impl Spawner for NoSandbox {
    fn spawn<'a>(&'a self, _: &'a Command) -> SpawnFuture<'a, Result<SpawnedProgram, String>> {
        Box::pin(async {
            let reason =
                "the server asks for a sandbox, which this build has not: it needs the feature `sandbox`";
            Err(reason.to_owned())
        })
    }
}
