//! Work directory on the host's file system, and the paths that stand for those inside a sandbox.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use tempfile::TempDir;

use crate::{SandboxCommand, WORK_DIRECTORY};

/// Directories of one process tree. They are removed on drop.
#[derive(Debug)]
pub(super) struct WorkFolder {
    _folder: TempDir,
    job: PathBuf,
    /// Files of the command, which no rule makes writable. Links in the work directory lead to them.
    files: PathBuf,
    temporary: PathBuf,
    /// Paths inside a sandbox, longest first, and those of the host.
    places: Vec<(String, String)>,
}

impl WorkFolder {
    /// Creates the directories with the files of `command`, which belong to `user` if this process is another one.
    pub(super) fn create(command: &SandboxCommand, user: Option<u32>) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("tool-sandbox-").tempdir()?;
        if user.is_some() {
            // The user passes the directory and cannot list it.
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711))?;
        }
        let job = folder.path().join("job");
        let temporary = folder.path().join("tmp");
        let files = folder.path().join("files");
        for path in [&job, &temporary] {
            fs::create_dir(path)?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
            chown(path, user, user)?;
        }
        open_folder(&files)?;
        let mut places: Vec<_> = command
            .grants
            .iter()
            .map(|grant| (text(&grant.inside), text(&grant.host)))
            .collect();
        for file in &command.files {
            let place = write_file(&files, &file.path, &file.bytes)?;
            link(&job, &file.path, &place, user)?;
            places.push((text(&Path::new(WORK_DIRECTORY).join(&file.path)), text(&place)));
        }
        places.push((WORK_DIRECTORY.to_owned(), text(&job)));
        places.push(("/tmp".to_owned(), text(&temporary)));
        places.sort_by_key(|(inside, _)| std::cmp::Reverse(inside.len()));
        Ok(Self {
            _folder: folder,
            job,
            files,
            temporary,
            places,
        })
    }

    pub(super) fn job(&self) -> &Path {
        &self.job
    }

    pub(super) fn files(&self) -> &Path {
        &self.files
    }

    pub(super) fn temporary(&self) -> &Path {
        &self.temporary
    }

    pub(super) fn job_text(&self) -> String {
        text(&self.job)
    }

    pub(super) fn temporary_text(&self) -> String {
        text(&self.temporary)
    }

    /// Replaces a path inside a sandbox at the start of `value` by that of the host.
    pub(super) fn translate(&self, value: &str) -> String {
        let place = self.places.iter().find_map(|(inside, host)| {
            let rest = value.strip_prefix(inside.as_str())?;
            (rest.is_empty() || rest.starts_with('/')).then(|| format!("{host}{rest}"))
        });
        place.unwrap_or_else(|| value.to_owned())
    }

    /// Replaces the paths of a list that `:` separates.
    pub(super) fn translate_list(&self, value: &str) -> String {
        let parts: Vec<_> = value.split(':').map(|part| self.translate(part)).collect();
        parts.join(":")
    }
}

/// Writes a file that the user of the sandbox can read and run, whatever the mask of this process is.
fn write_file(files: &Path, path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let mut place = files.to_path_buf();
    for part in path.parent().into_iter().flat_map(Path::components) {
        place.push(part);
        match open_folder(&place) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    place = files.join(path);
    let mut file = fs::File::create_new(&place)?;
    file.write_all(bytes)?;
    file.set_permissions(fs::Permissions::from_mode(0o555))?;
    Ok(place)
}

fn open_folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

/// Makes a link to `place` at `path` in the work directory, and the directories on the way.
fn link(job: &Path, path: &Path, place: &Path, user: Option<u32>) -> io::Result<()> {
    let mut folder = job.to_path_buf();
    for part in path.parent().into_iter().flat_map(Path::components) {
        folder.push(part);
        match fs::create_dir(&folder) {
            Ok(()) => chown(&folder, user, user)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    symlink(place, job.join(path))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Returns the number of processes and threads that a user has, to which the limit of a sandbox is added.
pub(super) fn processes_of(user: Option<u32>) -> io::Result<u64> {
    let user = user.unwrap_or_else(|| geteuid().as_raw()).to_string();
    let mut count = 0;
    for entry in fs::read_dir("/proc")?.flatten() {
        // A process that has just ended has no status.
        let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()
        };
        if value("Uid:") == Some(user.as_str()) {
            count += value("Threads:")
                .and_then(|threads| threads.parse::<u64>().ok())
                .unwrap_or(1);
        }
    }
    Ok(count)
}
