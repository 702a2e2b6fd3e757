//! Refuses servers with a sandbox if the feature `sandbox` is disabled.

use std::{path::PathBuf, sync::Arc};

use mcp_client::{Command, SpawnFuture, SpawnedProgram, Spawner};

use super::SandboxState;

/// Returns a spawner that starts nothing.
pub(crate) fn spawner(state: Arc<SandboxState>, _: Vec<PathBuf>, _: Vec<PathBuf>) -> Arc<dyn Spawner> {
    Arc::new(NoSandbox(state))
}

struct NoSandbox(Arc<SandboxState>);

impl Spawner for NoSandbox {
    fn spawn<'a>(&'a self, _: &'a Command) -> SpawnFuture<'a, Result<SpawnedProgram, String>> {
        Box::pin(async {
            let refusal = self.0.sandbox().refusal.clone();
            Err(refusal.unwrap_or_else(|| {
                "the server asks for a sandbox, which this build has not: it needs the feature `sandbox`"
                    .to_owned()
            }))
        })
    }
}
