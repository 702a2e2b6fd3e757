use std::sync::Arc;

use raw_json::RawJson;
use tool_core::{Descriptor, DynBackend, Executor, InProcess, Invoke, PrepareError};

/// Returns an executor of this kind that runs every tool by the same backend and reads no settings.
#[must_use]
pub fn executor(kind: &'static str, runs: impl Invoke + 'static) -> Arc<dyn Executor> {
    Arc::new(SharedBackendExecutor {
        kind,
        runs: Arc::new(InProcess(runs)),
    })
}

struct SharedBackendExecutor {
    kind: &'static str,
    runs: Arc<dyn DynBackend>,
}

impl Executor for SharedBackendExecutor {
    fn kind(&self) -> &str {
        self.kind
    }

    fn prepare(&self, _: &Descriptor) -> Result<Arc<dyn DynBackend>, Vec<PrepareError>> {
        Ok(self.runs.clone())
    }

    fn config_schema(&self) -> RawJson {
        RawJson::object()
    }
}
