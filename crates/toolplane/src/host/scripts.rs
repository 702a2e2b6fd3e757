//! Tools with code.

use std::sync::Arc;

use tool_core::{Descriptor, NoSecrets, Secrets};
use tool_exec_script::{InstallerVariables, RequirementsError, ScriptExecutor, ScriptOptions, ScriptRuntime};
use tool_manifest::Defaults;

/// Returns the runtime of tools with code.
pub(crate) fn runtime(defaults: &Defaults, secrets: &Arc<dyn Secrets>) -> ScriptRuntime {
    let options = ScriptOptions::default()
        .with_timeout(defaults.attempt_timeout)
        .with_max_result_bytes(defaults.max_result_bytes)
        .with_interpreters(defaults.interpreters.clone())
        .with_package_cache(tool_manifest::cache_directory().map(|cache| cache.join("toolplane/python")))
        .with_installer_variables(InstallerVariables::select(tool_manifest::process_variables()));
    ScriptRuntime::new(options, secrets.clone())
}

/// Returns `true` if a tool requires no packages, or has the file with just those locked: see [`lock_requirements`].
#[must_use]
pub fn is_locked(tool: &Descriptor) -> bool {
    ScriptRuntime::is_locked(tool)
}

/// Resolves the packages that the code of a tool requires to versions and hashes, with uv or pip and the index that they are
/// configured for. Returns name and content of the file that then belongs to the tool; `None` if it requires none, or has a file
/// for just these requirements and `renew` is `false`.
///
/// # Errors
/// If the interpreter, uv or pip is missing, or a package cannot be resolved to a wheel.
///
/// # Cancellation
/// Dropping the future ends the installer. Nothing was changed.
pub async fn lock_requirements(
    defaults: &Defaults,
    tool: &Descriptor,
    renew: bool,
) -> Result<Option<(&'static str, String)>, RequirementsError> {
    if !renew && ScriptRuntime::is_locked(tool) {
        return Ok(None);
    }
    let secrets: Arc<dyn Secrets> = Arc::new(NoSecrets);
    let lock = runtime(defaults, &secrets).lock(tool).await?;
    Ok(lock.map(|lock| (ScriptExecutor::LOCK_FILE, lock)))
}
