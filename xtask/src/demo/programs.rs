//! Programs of the demo: our own, which are built here, and third-party ones.

use std::path::PathBuf;

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
    /// Builds the programs of the workspace. The peers are already installed in a folder.
    pub(super) fn build(repository: &Repository, peers: PathBuf) -> Result<Self> {
        say("demo: building `toolplane` and the example's HTTP API ...");
        let messages = [
            build(repository, &["--package", "toolplane-cli", "--bin", "toolplane"])?,
            build(
                repository,
                &["--package", "toolplane-examples", "--example", "weather-service"],
            )?,
        ]
        .concat();
        Ok(Self {
            toolplane: executable(&messages, "toolplane")?,
            weather_service: executable(&messages, "weather-service")?,
            node: peers::node(&peers),
            peers,
        })
    }

    /// Returns the folder of the peers' npm packages.
    pub(super) fn modules(&self) -> PathBuf {
        self.peers.join("node/node_modules")
    }
}
