//! Where running gateways can be spoken to on this machine.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use tokio::net::UnixListener;

use crate::config::variable;

/// The socket of this process, whose file goes with it.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) listener: Option<UnixListener>,
    path: PathBuf,
}

/// How the files of sockets end.
const ENDING: &str = "sock";

/// The directory of the sockets of this user: in `$XDG_RUNTIME_DIR`, or else in `$XDG_STATE_HOME` or what stands for it.
pub(crate) fn directory() -> io::Result<PathBuf> {
    let base = variable("XDG_RUNTIME_DIR")
        .or_else(|| variable("XDG_STATE_HOME"))
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".local/state")));
    match base.filter(|base| base.is_absolute()) {
        Some(base) => Ok(base.join("toolplane")),
        None => Err(io::Error::new(
            io::ErrorKind::NotFound,
            "neither `$XDG_RUNTIME_DIR`, `$XDG_STATE_HOME` nor `$HOME` names a directory",
        )),
    }
}

/// Opens the socket of this process.
pub(crate) fn open() -> io::Result<Socket> {
    let directory = directory()?;
    DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    check_owner(&directory)?;
    let path = directory.join(format!("gateway-{}.{ENDING}", std::process::id()));
    // Of a process that had the same number and did not end well.
    let _ = fs::remove_file(&path);
    let listener = UnixListener::bind(&path)?;
    let socket = Socket {
        listener: Some(listener),
        path,
    };
    fs::set_permissions(&socket.path, fs::Permissions::from_mode(0o600))?;
    Ok(socket)
}

/// Who may write into the directory may put a socket there that is not ours.
fn check_owner(directory: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(directory)?;
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if metadata.is_dir() && is_ours && metadata.mode() & 0o077 == 0 {
        return Ok(());
    }
    let message = format!("`{}` is not for this user alone", directory.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// The sockets of all gateways of this user, of which some may have ended.
pub(crate) fn all() -> io::Result<Vec<PathBuf>> {
    let directory = directory()?;
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    check_owner(&directory)?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut sockets: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|ending| ending == ENDING))
        .collect();
    sockets.sort();
    Ok(sockets)
}

impl Drop for Socket {
    fn drop(&mut self) {
        // If it is gone already, so much the better.
        let _ = fs::remove_file(&self.path);
    }
}
