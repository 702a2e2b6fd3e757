use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::{
    lock::{LockedPackage, LockedRequirements, check_requirement, packages, written},
    tools::{Installer, InstallerVariables, run},
};

/// Error of resolving or installing the packages that a tool requires.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RequirementsError {
    message: String,
}

impl RequirementsError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

/// Report of `pip install --report`.
#[derive(Deserialize)]
struct Report {
    install: Vec<Planned>,
}

#[derive(Deserialize)]
struct Planned {
    metadata: Metadata,
    download_info: DownloadInfo,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    version: String,
}

#[derive(Deserialize)]
struct DownloadInfo {
    archive_info: Value,
}

/// Resolves requirements to versions and hashes of wheels, and returns the text of the lock.
pub(crate) async fn resolve(
    requires: &[String],
    python: &Path,
    variables: &InstallerVariables,
) -> Result<String, RequirementsError> {
    for requirement in requires {
        check_requirement(requirement).map_err(RequirementsError::new)?;
    }
    let failed = |reason: String| {
        let names = requires.join("`, `");
        RequirementsError::new(format!("`{names}` cannot be resolved: {reason}"))
    };
    let scratch = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
    let installer = Installer::find(python, variables, scratch.path())
        .await
        .map_err(failed)?;
    let found = match installer {
        Installer::Uv(uv) => by_uv(&uv, requires, python, variables).await,
        Installer::Pip(python) => by_pip(&python, requires, variables).await,
    };
    let found = found.map_err(failed)?;
    LockedRequirements::of(&found).map_err(failed)?;
    Ok(written(requires, &found))
}

async fn by_uv(
    uv: &Path,
    requires: &[String],
    python: &Path,
    variables: &InstallerVariables,
) -> Result<Vec<LockedPackage>, String> {
    let python = python.to_string_lossy();
    let args = [
        "pip",
        "compile",
        "--quiet",
        "--no-header",
        "--no-annotate",
        "--generate-hashes",
        "--only-binary",
        ":all:",
        "--python",
        &python,
        "-",
    ];
    let found = run(uv, &args, Some(requires.join("\n")), variables).await?;
    packages(&String::from_utf8_lossy(&found))
}

async fn by_pip(
    python: &Path,
    requires: &[String],
    variables: &InstallerVariables,
) -> Result<Vec<LockedPackage>, String> {
    let mut args = vec![
        "-m",
        "pip",
        "install",
        "--dry-run",
        "--ignore-installed",
        "--quiet",
        "--no-input",
        "--only-binary",
        ":all:",
        "--report",
        "-",
        "--",
    ];
    args.extend(requires.iter().map(String::as_str));
    let report = run(python, &args, None, variables).await?;
    let report: Report = serde_json::from_slice(&report)
        .map_err(|error| format!("the report of pip cannot be read: {error}"))?;
    let lines = report.install.into_iter().map(|planned| {
        let Metadata { name, version } = planned.metadata;
        let archive = planned.download_info.archive_info;
        // `hash` in reports of older versions.
        let hash = archive["hashes"]["sha256"].as_str();
        let hash = hash.or_else(|| archive["hash"].as_str()?.strip_prefix("sha256="));
        let hash = hash.ok_or_else(|| format!("there is no SHA-256 of `{name}`"))?;
        Ok(format!("{name}=={version} --hash=sha256:{hash}\n"))
    });
    packages(&lines.collect::<Result<String, String>>()?)
}
