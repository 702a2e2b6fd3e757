//! Programs of PostgreSQL, and the user that runs the server.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::ServerUnavailable;

/// Programs that tests need.
const PROGRAMS: [&str; 3] = ["initdb", "postgres", "psql"];
/// Folder of Debian's packages, with a folder for each version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// Returns the folder with the programs: on `PATH`, of the newest Debian package, or the one that `pg_config` names.
pub(crate) fn folder() -> Result<PathBuf, ServerUnavailable> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = env::split_paths(&path).collect();
    folders.extend(debian());
    let named = output(Command::new("pg_config").arg("--bindir")).ok();
    folders.extend(named.map(|named| PathBuf::from(named.trim())));
    let has_all = |folder: &PathBuf| PROGRAMS.iter().all(|program| folder.join(program).is_file());
    folders.into_iter().find(has_all).ok_or_else(|| {
        ServerUnavailable::new("the programs of PostgreSQL are not installed; `cargo xtask peers` says why")
    })
}

/// Returns `true` if the programs of PostgreSQL are installed.
#[must_use]
pub fn is_installed() -> bool {
    folder().is_ok()
}

/// Returns the folders of Debian's packages, the newest version first.
fn debian() -> Vec<PathBuf> {
    let entries = fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort_by(|a, b| b.cmp(a));
    versions.into_iter().map(|(_, folder)| folder).collect()
}

/// User that runs the server: the server refuses to run as root.
#[derive(Clone, Debug)]
pub(crate) struct ServerUser {
    /// Number of the user and of its group, if it is another one than that of this process.
    other: Option<(u32, u32)>,
}

impl ServerUser {
    /// Finds the user: the one of this process, or `postgres` or `nobody` if that is root.
    pub(crate) fn find() -> Result<Self, ServerUnavailable> {
        let number = |arguments: &[&str]| {
            let text = output(Command::new("id").args(arguments))?;
            let number = text.trim().parse::<u32>();
            number
                .map_err(|_| ServerUnavailable::new(format!("`id` answers `{}`", text.trim().escape_debug())))
        };
        if number(&["-u"])? != 0 {
            return Ok(Self { other: None });
        }
        let user = ["postgres", "nobody"]
            .into_iter()
            .find_map(|name| Some((number(&["-u", name]).ok()?, number(&["-g", name]).ok()?)))
            .ok_or_else(|| {
                ServerUnavailable::new("there is no user `postgres` or `nobody` to run PostgreSQL")
            })?;
        Ok(Self { other: Some(user) })
    }

    /// Gives a file or a folder to the user.
    pub(crate) fn own(&self, path: &Path) -> Result<(), ServerUnavailable> {
        let Some((user, group)) = self.other else {
            return Ok(());
        };
        std::os::unix::fs::chown(path, Some(user), Some(group)).map_err(|error| {
            ServerUnavailable::new(format!("`{}` cannot be given away: {error}", path.display()))
        })
    }

    /// Returns the words before a command that run it as the user.
    pub(crate) fn prefix(&self) -> Vec<String> {
        match self.other {
            None => Vec::new(),
            Some((user, group)) => vec![
                "setpriv".to_owned(),
                format!("--reuid={user}"),
                format!("--regid={group}"),
                "--clear-groups".to_owned(),
                "--".to_owned(),
            ],
        }
    }
}

/// Runs a command, and returns its output.
pub(crate) fn output(command: &mut Command) -> Result<String, ServerUnavailable> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| ServerUnavailable::new(format!("`{name}` cannot be run: {error}")))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(ServerUnavailable::new(format!(
            "`{name}` failed: {}",
            text.trim()
        )));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
