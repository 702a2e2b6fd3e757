//! Granted paths, mounted where the user of the sandbox can reach them.
//!
//! When this process is root, bubblewrap runs as a user without rights, who cannot pass a directory such as `/root` on the
//! way to a granted path. The spawner thread therefore has a mount namespace of its own, in which each granted path is
//! mounted below one directory that everyone can pass. The host sees none of these mounts.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

use crate::linux::spawner;

/// Directory that the mounts of a process hide. Only root can write beside it.
const FOLDER: &str = "/run/tool-sandbox";

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// `true` once the spawner thread has the mount namespace.
static AVAILABLE: OnceLock<bool> = OnceLock::new();

/// Gives the spawner thread its mount namespace, once, and returns `true` if it has one.
pub(super) fn is_available() -> bool {
    *AVAILABLE.get_or_init(|| spawner::run(prepare).is_ok_and(|prepared| prepared.is_ok()))
}

fn prepare() -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(FOLDER)?;
    unshare(CloneFlags::CLONE_NEWNS)?;
    // What the host mounts later appears here as well, and nothing from here appears there.
    mount(
        None::<&str>,
        "/",
        None::<&str>,
        MsFlags::MS_REC | MsFlags::MS_SLAVE,
        None::<&str>,
    )?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(
        Some("tmpfs"),
        FOLDER,
        Some("tmpfs"),
        flags,
        Some("mode=0755,size=1m"),
    )?;
    Ok(())
}

/// Granted path at its place in the namespace. It is unmounted on drop.
#[derive(Debug)]
pub(super) struct StagedPath {
    host: PathBuf,
    place: PathBuf,
}

impl StagedPath {
    /// Chooses the place of `host`.
    pub(super) fn new(host: &Path) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self {
            host: host.to_path_buf(),
            place: Path::new(FOLDER).join(number.to_string()),
        }
    }

    pub(super) fn place(&self) -> &Path {
        &self.place
    }

    /// Mounts the path. It must run on the spawner thread.
    pub(super) fn mount(&self) -> io::Result<()> {
        if fs::metadata(&self.host)?.is_dir() {
            fs::create_dir(&self.place)?;
        } else {
            File::create_new(&self.place)?;
        }
        let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
        mount(Some(&self.host), &self.place, None::<&str>, flags, None::<&str>)?;
        Ok(())
    }
}

impl Drop for StagedPath {
    fn drop(&mut self) {
        let place = std::mem::take(&mut self.place);
        spawner::post(move || {
            // The path is not mounted if the process did not start.
            let _ = umount2(&place, MntFlags::MNT_DETACH);
            let _ = fs::remove_file(&place).or_else(|_| fs::remove_dir(&place));
        });
    }
}
