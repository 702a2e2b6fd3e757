//! Programs of the demo: our own, which are built here, and third-party ones.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::build::program::{build, executable};
use crate::peers;
use crate::support::console::say;
use crate::support::repository::Repository;

/// Paths of the programs.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) toolplane: PathBuf,
    pub(super) weather_service: PathBuf,
    pub(super) peers: PathBuf,
    pub(super) node: PathBuf,
}

impl Programs {
    /// Builds the programs of the workspace. The peers are already installed.
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
