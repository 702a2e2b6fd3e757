//! Builds programs that are started by xtask.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::support::process::cargo;
use crate::support::repository::Repository;

/// Line of the output of `cargo build --message-format json`.
#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    target: Option<CargoTarget>,
    #[serde(default)]
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct CargoTarget {
    name: String,
}

/// Builds a part of the workspace and returns cargo's output, for [`executable`].
///
/// Cargo reports the paths of the built files, which depend on the environment and the user's settings.
pub(crate) fn build(repository: &Repository, what: &[&str]) -> Result<String> {
    build_by(cargo(repository.root()), what)
}

/// Builds like [`build`], with a `cargo` command whose environment is already set.
pub(crate) fn build_by(mut cargo: Command, what: &[&str]) -> Result<String> {
    let built = cargo
        .args(["build", "--quiet", "--message-format", "json-render-diagnostics"])
        .args(what)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("failed to start `cargo build`")?;
    if !built.status.success() {
        bail!("`cargo build {}` ended with {}", what.join(" "), built.status);
    }
    String::from_utf8(built.stdout).context("`cargo build` wrote something that is no text")
}

/// Returns the path that cargo reported for a program.
pub(crate) fn executable(messages: &str, name: &str) -> Result<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter(|message| message.target.as_ref().is_some_and(|target| target.name == name))
        .find_map(|message| message.executable)
        .with_context(|| format!("cargo did not say where it built `{name}`"))
}
