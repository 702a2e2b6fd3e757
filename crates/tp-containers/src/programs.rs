//! Programs of the engines.

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::{EngineKind, EngineUnavailable};

/// Debian packages with podman, the runtime that works in every cgroup hierarchy, the first process of containers, and the programs
/// of the image.
pub const PODMAN_PACKAGES: &[&str] = &["podman", "runc", "catatonit", "busybox-static"];
/// Debian packages with Docker and the first process of containers. They are unpacked into [`docker_folder`] instead of being
/// installed, so that no daemon of the machine is started.
pub const DOCKER_PACKAGES: &[&str] = &["docker.io", "containerd", "tini"];

/// Programs that each engine needs on `PATH`, or in the folder of its packages.
fn needed(kind: EngineKind) -> &'static [&'static str] {
    match kind {
        EngineKind::Podman => &["podman", "runc", "catatonit", "busybox"],
        EngineKind::Docker => &[
            "dockerd",
            "docker",
            "containerd",
            "tini-static",
            "runc",
            "busybox",
        ],
    }
}

/// Returns the folder into which the packages of Docker are unpacked, below the folder of the peers.
#[must_use]
pub fn docker_folder(peers: &Path) -> PathBuf {
    peers.join("docker")
}

/// Returns `true` if the programs of an engine are installed, or in a folder of peers.
#[must_use]
pub fn is_installed(kind: EngineKind, peers: &Path) -> bool {
    missing(kind, &folders(kind, peers)).is_none()
}

/// Returns the folders with the programs of an engine, those of its packages first.
pub(crate) fn find(kind: EngineKind) -> Result<Vec<PathBuf>, EngineUnavailable> {
    let folders = folders(kind, &peers());
    match missing(kind, &folders) {
        None => Ok(folders),
        Some(program) => Err(EngineUnavailable::new(format!(
            "`{program}` is not installed; `cargo xtask peers` says why"
        ))),
    }
}

/// Returns the folder of the peers: the one that `TOOLPLANE_PEERS` names, else `target/peers` of this workspace.
fn peers() -> PathBuf {
    let usual = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers"));
    env::var_os("TOOLPLANE_PEERS").map_or_else(usual, PathBuf::from)
}

fn folders(kind: EngineKind, peers: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    if kind == EngineKind::Docker {
        let unpacked = docker_folder(peers);
        folders.extend(["usr/sbin", "usr/bin"].map(|folder| unpacked.join(folder)));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    folders.extend(env::split_paths(&path));
    folders.extend(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders
}

fn missing(kind: EngineKind, folders: &[PathBuf]) -> Option<&'static str> {
    let is_there = |program: &str| folders.iter().any(|folder| folder.join(program).is_file());
    needed(kind).iter().copied().find(|program| !is_there(program))
}
