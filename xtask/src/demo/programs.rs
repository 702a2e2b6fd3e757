//! The programs of the demo: ours, built here, and those that nobody here wrote.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::console::say;
use crate::peers;
use crate::process::cargo;
use crate::repository::Repository;

/// Where the programs are.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) toolplane: PathBuf,
    pub(super) weather_service: PathBuf,
    pub(super) peers: PathBuf,
    pub(super) node: PathBuf,
}

/// A line of what `cargo build --message-format json` says.
#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    target: Option<Target>,
    #[serde(default)]
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

impl Programs {
    /// Builds the programs of the workspace; the peers are installed already.
    pub(super) fn build(repository: &Repository) -> Result<Self> {
        say("demo: building `toolplane` and the example's HTTP API ...");
        let messages = [
            build(repository, &["--package", "toolplane-cli", "--bin", "toolplane"])?,
            build(
                repository,
                &["--package", "toolplane-examples", "--example", "weather-service"],
            )?,
        ]
        .concat();
        let peers = peers::folder(repository);
        Ok(Self {
            toolplane: executable(&messages, "toolplane")?,
            weather_service: executable(&messages, "weather-service")?,
            node: peers::node(repository),
            peers,
        })
    }

    /// Returns a file of one of the peers' npm packages.
    pub(super) fn module(&self, file: impl AsRef<Path>) -> PathBuf {
        self.peers.join("node/node_modules").join(file)
    }
}

/// Cargo says where it puts what it builds, whatever the environment and the user's settings are.
fn build(repository: &Repository, what: &[&str]) -> Result<String> {
    let built = cargo(repository.root())
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

fn executable(messages: &str, name: &str) -> Result<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter(|message| message.target.as_ref().is_some_and(|target| target.name == name))
        .find_map(|message| message.executable)
        .with_context(|| format!("cargo did not say where it built `{name}`"))
}
