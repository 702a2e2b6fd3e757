use std::{fmt, sync::Arc};

use raw_json::RawJson;
use tool_core::{Descriptor, DynBackend, Executor, NoSecrets, PrepareError, Reach, SecretUse, Secrets};

use crate::{
    ContainerEngine, ContainerOptions, EngineError,
    backend::ContainerBackend,
    engine::{Engine, Engines, Gateways, Runs},
    plan::Plan,
    settings::schema,
};

/// Executor of kind `docker`: a command in a container, with Docker or podman.
///
/// Each call runs in a container of its own, which is made of a closed set of options: no network, a read-only root file system, no
/// capabilities, no path or device of the host. The level `container` is in the `_meta` of the reply: see
/// [`Reply::sandbox_level`](tool_core::Reply::sandbox_level).
///
/// # When a call counts as sent
/// A call is [`Sent`](tool_core::DispatchState::Sent) right before its container starts, and
/// [`Answered`](tool_core::DispatchState::Answered) when the container has ended by itself. A container that was stopped at its
/// time limit has not answered.
///
/// # Errors by end
///
/// | end | kind |
/// |---|---|
/// | exit code 64 or 65 (`EX_USAGE`, `EX_DATAERR`) | `invalid_arguments` |
/// | exit code 69 or 75 (`EX_UNAVAILABLE`, `EX_TEMPFAIL`) | `unavailable` |
/// | another exit code, a signal | `upstream_error` |
/// | more memory than the limit | `upstream_error`, never tried again |
/// | time limit | `timeout` |
/// | more output than the limit | `result_too_large` |
/// | output that is not what was declared | `protocol` |
/// | no engine, or the connection to it was lost | `unavailable` |
/// | no image, no such program, limits that the engine does not enforce | `unavailable`, never tried again |
///
/// # Examples
/// ```
/// use tool_core::{Descriptor, Executor, ExecutorSpec, serde_json::json};
/// use tool_exec_container::ContainerExecutor;
///
/// let executor = ContainerExecutor::default();
/// let image = format!("alpine@sha256:{}", "0".repeat(64));
/// let settings = json!({"image": image, "command": ["sort", "--reverse"]});
/// let tool = Descriptor::new("sort", ExecutorSpec::new("docker").with_config(settings));
/// assert!(executor.prepare(&tool).is_ok());
/// ```
#[derive(Default)]
pub struct ContainerExecutor {
    runtime: ContainerRuntime,
}

/// Parts that outlive an executor: options, the connection to the engine, the containers of this process. Clones share them.
#[derive(Clone)]
pub struct ContainerRuntime {
    pub(crate) parts: Arc<RuntimeParts>,
}

pub(crate) struct RuntimeParts {
    pub(crate) options: ContainerOptions,
    pub(crate) secrets: Arc<dyn Secrets>,
    pub(crate) gateways: Arc<Gateways>,
    pub(crate) runs: Arc<Runs>,
    engines: Engines,
}

impl RuntimeParts {
    /// Returns the engine. The first call that finds it has the containers removed whose gateway is gone.
    pub(crate) async fn engine(&self) -> Result<Arc<Engine>, EngineError> {
        let (engine, is_new) = self.engines.get().await?;
        if is_new {
            let (engine, gateways) = (engine.clone(), self.gateways.clone());
            tokio::spawn(async move { gateways.reap(&engine).await });
        }
        Ok(engine)
    }

    /// Forgets an engine whose connection was lost.
    pub(crate) async fn forget(&self, engine: &Arc<Engine>) {
        self.engines.forget(engine).await;
    }
}

impl ContainerRuntime {
    /// Creates a runtime. Nothing is connected to before its first use.
    #[must_use]
    pub fn new(options: ContainerOptions, secrets: Arc<dyn Secrets>) -> Self {
        let gateways = Gateways::new(options.lock_directory.clone());
        Self {
            parts: Arc::new(RuntimeParts {
                engines: Engines::new(options.sockets.clone()),
                options,
                secrets,
                gateways: Arc::new(gateways),
                runs: Arc::new(Runs::new()),
            }),
        }
    }

    /// Finds the engine of this machine.
    ///
    /// # Errors
    /// If none answers.
    ///
    /// # Cancellation
    /// Dropping the future ends the search.
    pub async fn engine(&self) -> Result<ContainerEngine, EngineError> {
        let (engine, _) = self.parts.engines.get().await?;
        Ok(engine.about.clone())
    }

    /// Removes the containers of gateways that are gone: of those with the same lock directory whose process has ended. Asks the
    /// engine only if there are such gateways. For the start of a long-running program.
    ///
    /// # Cancellation
    /// Dropping the future ends the removal. Containers that were not removed are found the next time.
    pub async fn remove_leftovers(&self) {
        if self.parts.gateways.has_leftovers().await
            && let Ok((engine, _)) = self.parts.engines.get().await
        {
            self.parts.gateways.reap(&engine).await;
        }
    }

    /// Kills the containers of this runtime, and waits until they are removed, for at most 10 seconds. Their calls fail, and so
    /// do later ones.
    ///
    /// # Cancellation
    /// Dropping the future ends the wait. The containers are removed while the runtime of tokio runs.
    pub async fn shutdown(&self) {
        self.parts.runs.stop().await;
    }
}

impl Default for ContainerRuntime {
    fn default() -> Self {
        Self::new(ContainerOptions::default(), Arc::new(NoSecrets))
    }
}

impl ContainerExecutor {
    /// Kind of the executor.
    pub const KIND: &'static str = "docker";

    /// Creates the executor.
    #[must_use]
    pub fn new(runtime: ContainerRuntime) -> Self {
        Self { runtime }
    }
}

impl Executor for ContainerExecutor {
    fn kind(&self) -> &str {
        Self::KIND
    }

    fn prepare(&self, descriptor: &Descriptor) -> Result<Arc<dyn DynBackend>, Vec<PrepareError>> {
        let parts = self.runtime.parts.clone();
        let plan = Plan::compile(descriptor, &parts.options)?;
        Ok(Arc::new(ContainerBackend::new(plan, parts)))
    }

    /// Returns the secrets of the environment, which go to the program in the container, and its image. A container has no network.
    fn reach(&self, descriptor: &Descriptor) -> Reach {
        let config = &descriptor.executor.config;
        let reach = Reach::new(SecretUse::find(
            &config["env"],
            "/env",
            "the program in the container",
        ));
        match config["image"].as_str() {
            Some(image) => reach.with_other(format!("the image `{image}`")),
            None => reach,
        }
    }

    /// Returns `true`: output is limited while it is read.
    fn bounds_results(&self) -> bool {
        true
    }

    fn config_schema(&self) -> RawJson {
        schema()
    }
}

impl fmt::Debug for ContainerExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContainerExecutor")
            .field("runtime", &self.runtime)
            .finish()
    }
}

impl fmt::Debug for ContainerRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContainerRuntime")
            .field("options", &self.parts.options)
            .finish_non_exhaustive()
    }
}
