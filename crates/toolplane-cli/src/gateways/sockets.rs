//! Unix sockets of this user's running gateways.
//!
//! Each gateway has a socket in one directory of its user: `~/.local/state/toolplane/run`. The directory depends on
//! `$HOME` alone, which MCP clients pass to the servers that they start; most pass none of the `XDG_*` variables. A
//! gateway without a usable home has its socket in the directory `toolplane-UID` of `/tmp`, as tmux does.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::{
        fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt},
        net::UnixStream,
    },
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rustix::process::{Pid, geteuid, test_kill_process};
use tokio::net::UnixListener;

use crate::config::variable;

/// The socket of this process. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct GatewaySocket {
    pub(crate) listener: Option<UnixListener>,
    path: PathBuf,
}

/// File name extension of sockets.
const EXTENSION: &str = "sock";
/// Maximum length of a socket's path, in bytes: `sun_path` holds 104 bytes on some systems, its final NUL included.
const MAX_PATH: usize = 103;
/// Length of the longest name of a socket and the separator before it, in bytes.
const MAX_NAME: usize = "/gateway-4194304-01234567-9.sock".len();
/// Age from which on a socket that refuses connections is stale even if a process has its id: that process is another
/// one.
const STARTUP_TIME: Duration = Duration::from_secs(10);

/// Returns the directory of this user's sockets: below the home, or in `/tmp` if there is no home or its path is too
/// long for a socket.
fn socket_directory() -> PathBuf {
    home()
        .and_then(|home| in_home(&home))
        .unwrap_or_else(temporary_directory)
}

fn in_home(home: &Path) -> Option<PathBuf> {
    let directory = home.join(".local/state/toolplane/run");
    (directory.as_os_str().len() + MAX_NAME <= MAX_PATH).then_some(directory)
}

fn home() -> Option<PathBuf> {
    variable("HOME")
        .map(PathBuf::from)
        .filter(|home| home.is_absolute())
}

fn temporary_directory() -> PathBuf {
    Path::new("/tmp").join(format!("toolplane-{}", geteuid().as_raw()))
}

/// Returns all directories that may hold sockets of this user's gateways, those of earlier versions included.
pub(crate) fn directories() -> Vec<PathBuf> {
    let runtime = variable("XDG_RUNTIME_DIR").unwrap_or_else(|| format!("/run/user/{}", geteuid().as_raw()));
    let state = variable("XDG_STATE_HOME").map(PathBuf::from);
    let usual_state = home().map(|home| home.join(".local/state"));
    let earlier = [Some(PathBuf::from(runtime)), state, usual_state];
    let earlier = earlier.into_iter().flatten().filter(|base| base.is_absolute());
    let mut directories = vec![socket_directory(), temporary_directory()];
    directories.extend(earlier.map(|base| base.join("toolplane")));
    let mut seen = Vec::new();
    directories.retain(|directory| {
        let is_new = !seen.contains(directory);
        seen.push(directory.clone());
        is_new
    });
    directories
}

/// Binds the socket of this process.
pub(crate) fn bind() -> io::Result<GatewaySocket> {
    let directory = socket_directory();
    let is_shared = directory == temporary_directory();
    match DirBuilder::new()
        .recursive(!is_shared)
        .mode(0o700)
        .create(&directory)
    {
        // Another process may have made it; its owner and mode are checked below.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => check_owner(&directory)?,
    }
    let (process, host) = (std::process::id(), host_id());
    let names = (1..=9).map(|n| match n {
        1 => format!("gateway-{process}-{host}.{EXTENSION}"),
        n => format!("gateway-{process}-{host}-{n}.{EXTENSION}"),
    });
    let mut refused = None;
    for name in names {
        let path = directory.join(name);
        // A socket of a process with the same id. A process in another container may still use it.
        if UnixStream::connect(&path).is_ok() {
            continue;
        }
        let _ = fs::remove_file(&path);
        match UnixListener::bind(&path) {
            Ok(listener) => {
                let listener = Some(listener);
                let socket = GatewaySocket { listener, path };
                fs::set_permissions(&socket.path, fs::Permissions::from_mode(0o600))?;
                return Ok(socket);
            }
            Err(error) => refused = Some(error),
        }
    }
    Err(refused.unwrap_or_else(|| io::ErrorKind::AddrInUse.into()))
}

/// Returns an id of this host. Several hosts may share a home, and only the host of a socket knows if it is in use.
fn host_id() -> String {
    let name = rustix::system::uname();
    let name = String::from_utf8_lossy(name.nodename().to_bytes()).into_owned();
    let digest = raw_json::digest(&raw_json::RawJson::from(name.as_str()));
    raw_json::hex(&digest).chars().take(8).collect()
}

/// Refuses a directory that another user owns or may write to: a socket in it may be forged.
fn check_owner(directory: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(directory)?;
    let is_ours = metadata.uid() == geteuid().as_raw();
    if metadata.is_dir() && is_ours && metadata.mode() & 0o077 == 0 {
        return Ok(());
    }
    let message = format!(
        "`{}` must be a directory that only this user can open (mode 0700), and no symbolic link",
        directory.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// Returns the sockets of this user's gateways, including those of ended ones, and the errors of unreadable
/// directories.
pub(crate) fn all() -> (Vec<PathBuf>, Vec<io::Error>) {
    let (mut sockets, mut problems) = (Vec::new(), Vec::new());
    for directory in directories() {
        match in_directory(&directory) {
            Ok(found) => sockets.extend(found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => problems.push(error),
        }
    }
    (sockets, problems)
}

fn in_directory(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory);
    if !matches!(&entries, Err(error) if error.kind() == io::ErrorKind::NotFound) {
        check_owner(directory)?;
    }
    let mut sockets: Vec<PathBuf> = entries?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == EXTENSION))
        .collect();
    sockets.sort();
    Ok(sockets)
}

/// Returns the process id of a gateway from the name of its socket.
pub(crate) fn process_of(socket: &Path) -> String {
    let stem = socket.file_stem().unwrap_or_default().to_string_lossy();
    let name = stem.strip_prefix("gateway-").unwrap_or(&stem);
    name.split_once('-')
        .map_or(name, |(process, _)| process)
        .to_owned()
}

/// Removes a socket that refuses connections if its gateway has ended: if no such process runs, or if it had enough
/// time to listen.
pub(crate) fn remove_stale(socket: &Path) {
    let Ok(metadata) = fs::symlink_metadata(socket) else {
        return;
    };
    let stem = socket
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut parts = stem.splitn(3, '-').skip(1);
    let (process, host_of_socket) = (parts.next(), parts.next());
    // Earlier versions did not name their host; their sockets in a runtime directory belong to this one.
    let is_here = match host_of_socket {
        Some(of_socket) => of_socket.starts_with(&host_id()),
        None => socket
            .parent()
            .is_some_and(|parent| home().is_none_or(|home| !parent.starts_with(home))),
    };
    let process = process.and_then(|process| Pid::from_raw(process.parse().ok()?));
    let is_running = process.is_some_and(|process| test_kill_process(process).is_ok());
    let age = metadata.modified().ok();
    let age = age.and_then(|then| SystemTime::now().duration_since(then).ok());
    if metadata.file_type().is_socket()
        && is_here
        && (!is_running || age.is_some_and(|age| age > STARTUP_TIME))
    {
        let _ = fs::remove_file(socket);
    }
}

impl Drop for GatewaySocket {
    fn drop(&mut self) {
        // The file may be gone already.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_whose_path_is_too_long_for_a_socket_has_none() {
        let mut n_usable = 0;
        for length in 1..120 {
            let home = PathBuf::from(format!("/{}", "h".repeat(length)));
            let Some(directory) = in_home(&home) else {
                continue;
            };
            n_usable += 1;
            let longest = format!("gateway-4194304-{}-9.{EXTENSION}", host_id());
            assert!(directory.join(longest).as_os_str().len() <= MAX_PATH);
        }
        assert!((40..60).contains(&n_usable), "{n_usable}");
        assert!(temporary_directory().as_os_str().len() + MAX_NAME <= MAX_PATH);
    }

    #[test]
    fn the_process_is_read_from_the_name() {
        for (name, process) in [
            ("gateway-4711.sock", "4711"),
            ("gateway-4711-01234567.sock", "4711"),
            ("gateway-4711-01234567-2.sock", "4711"),
        ] {
            assert_eq!(process_of(Path::new(name)), process);
        }
    }
}
