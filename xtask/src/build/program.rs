//! Programs that are built to be started here.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::support::process::cargo;
use crate::support::repository::Repository;

/// A line of what `cargo build --message-format json` says.
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

/// Builds a part of the workspace and returns what cargo says about it, for [`executable`].
///
/// Cargo says where it puts what it builds, whatever the environment and the user's settings are.
pub(crate) fn build(repository: &Repository, what: &[&str]) -> Result<String> {
    build_by(cargo(repository.root()), what)
}

/// The same with a `cargo` command that has its environment.
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

/// Returns where cargo says it put a program.
pub(crate) fn executable(messages: &str, name: &str) -> Result<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter(|message| message.target.as_ref().is_some_and(|target| target.name == name))
        .find_map(|message| message.executable)
        .with_context(|| format!("cargo did not say where it built `{name}`"))
}
