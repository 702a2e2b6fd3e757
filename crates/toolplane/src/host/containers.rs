//! Tools in containers.

use std::sync::Arc;

use tool_core::{NoSecrets, Secrets};
use tool_exec_container::{
    ContainerEngine, ContainerOptions, ContainerRuntime, EngineError, EngineSockets, PullPolicy,
};
use tool_manifest::Defaults;

/// Returns the runtime of tools in containers.
pub(crate) fn runtime(defaults: &Defaults, secrets: &Arc<dyn Secrets>) -> ContainerRuntime {
    let settings = &defaults.container;
    let sockets = match &settings.socket {
        Some(path) => EngineSockets::written(path),
        None => {
            let variables = tool_manifest::process_variables();
            EngineSockets::by_variables(|name| {
                let found = variables.iter().find(|(known, _)| known.to_str() == Some(name));
                found.and_then(|(_, value)| value.to_str().map(str::to_owned))
            })
        }
    };
    let pull = match settings.pulls {
        true => PullPolicy::Missing,
        false => PullPolicy::Never,
    };
    // Locks are no cache, but this directory exists for every user, and what is lost with it is only found later.
    let cache = tool_manifest::cache_directory().unwrap_or_else(std::env::temp_dir);
    let options = ContainerOptions::default()
        .with_timeout(defaults.attempt_timeout)
        .with_max_result_bytes(defaults.max_result_bytes)
        .with_sockets(sockets)
        .with_pull(pull)
        .with_lock_directory(Some(cache.join("toolplane/containers")));
    ContainerRuntime::new(options, secrets.clone())
}

/// Finds the engine that runs the containers of tools.
///
/// # Errors
/// If none answers.
///
/// # Cancellation
/// Dropping the future ends the search.
pub async fn container_engine(defaults: &Defaults) -> Result<ContainerEngine, EngineError> {
    let secrets: Arc<dyn Secrets> = Arc::new(NoSecrets);
    runtime(defaults, &secrets).engine().await
}
