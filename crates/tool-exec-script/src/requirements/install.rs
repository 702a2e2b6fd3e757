use std::{
    collections::HashMap,
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::{sync::watch, task::spawn_blocking};

use super::{
    LockedRequirements,
    resolve::RequirementsError,
    tools::{Installer, InstallerVariables, run},
};

/// Installed packages, one directory for each lock and interpreter.
pub(crate) struct Environments {
    cache: Option<PathBuf>,
    variables: InstallerVariables,
    running: Mutex<HashMap<String, watch::Receiver<Option<Installed>>>>,
}

type Installed = Result<PathBuf, RequirementsError>;

impl Environments {
    pub(crate) fn new(cache: Option<PathBuf>, variables: InstallerVariables) -> Self {
        Self {
            cache,
            variables,
            running: Mutex::default(),
        }
    }

    /// Returns the directory with the packages of a lock, if they are installed.
    pub(crate) fn existing(&self, lock: &LockedRequirements, python: &Path) -> Option<PathBuf> {
        let directory = self.cache.as_ref()?.join(key(lock, python));
        directory.is_dir().then_some(directory)
    }

    /// Installs the packages of a lock, or waits until a running installation has ended. `report` is called once if there is
    /// something to wait for.
    ///
    /// # Cancellation
    /// Dropping the future does not end the installation: it runs in a task of its own.
    pub(crate) async fn install(
        self: &Arc<Self>,
        lock: &LockedRequirements,
        python: &Path,
        report: impl FnOnce(),
    ) -> Result<PathBuf, RequirementsError> {
        if let Some(directory) = self.existing(lock, python) {
            return Ok(directory);
        }
        report();
        let mut ended = self.start(lock.clone(), python.to_owned());
        let ended = ended.wait_for(Option::is_some).await;
        let installed = ended.ok().and_then(|installed| installed.clone());
        installed.unwrap_or_else(|| {
            Err(RequirementsError::new(
                "the installation of packages was interrupted",
            ))
        })
    }

    /// Starts an installation, unless it runs already.
    fn start(
        self: &Arc<Self>,
        lock: LockedRequirements,
        python: PathBuf,
    ) -> watch::Receiver<Option<Installed>> {
        let key = key(&lock, &python);
        let mut running = self.running.lock();
        if let Some(known) = running.get(&key) {
            return known.clone();
        }
        let (sender, receiver) = watch::channel(None);
        running.insert(key.clone(), receiver.clone());
        let environments = self.clone();
        tokio::spawn(async move {
            let installed = environments.build(&lock, &python, &key).await;
            if let Err(error) = &installed {
                tracing::warn!(%error, "packages of a tool are not installed");
            }
            // A failure is tried again by the next call.
            environments.running.lock().remove(&key);
            sender.send_replace(Some(installed));
        });
        receiver
    }

    async fn build(&self, lock: &LockedRequirements, python: &Path, key: &str) -> Installed {
        let Some(cache) = &self.cache else {
            return Err(RequirementsError::new(
                "there is no directory for packages: set `XDG_CACHE_HOME` or `HOME`",
            ));
        };
        let n = lock.len();
        tracing::info!(packages = n, "installing packages of a tool");
        let failed = |reason: String| {
            RequirementsError::new(format!("its {n} packages cannot be installed: {reason}"))
        };
        let io = |error: io::Error| failed(error.to_string());
        fs::create_dir_all(cache).map_err(io)?;
        // Beside the final place, so that a rename puts all of it there at once.
        let scratch = tempfile::Builder::new()
            .prefix(".new-")
            .tempdir_in(cache)
            .map_err(io)?;
        let file = scratch.path().join("requirements.txt");
        fs::write(&file, lock.text()).map_err(io)?;
        let target = scratch.path().join("packages");
        self.install_into(&target, &file, python, scratch.path())
            .await
            .map_err(failed)?;
        let (from, to) = (target, cache.join(key));
        let moved = spawn_blocking(move || {
            make_readable(&from)?;
            match fs::rename(&from, &to) {
                // Another gateway was faster.
                Err(_) if to.is_dir() => Ok(to),
                renamed => renamed.map(|()| to),
            }
        });
        match moved.await {
            Ok(moved) => moved.map_err(io),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// Installs exactly the locked wheels. No code of a package runs: wheels are unpacked.
    async fn install_into(
        &self,
        target: &Path,
        file: &Path,
        python: &Path,
        scratch: &Path,
    ) -> Result<(), String> {
        let (target, file) = (target.to_string_lossy(), file.to_string_lossy());
        let python_text = python.to_string_lossy();
        let exact = [
            "--require-hashes",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--quiet",
        ];
        let places = ["--target", &*target, "-r", &*file];
        match Installer::find(python, &self.variables, scratch).await? {
            Installer::Uv(uv) => {
                let args = [
                    &["pip", "install", "--python", &*python_text][..],
                    &exact,
                    &places,
                ]
                .concat();
                run(&uv, &args, None, &self.variables).await?;
            }
            Installer::Pip(python) => {
                let args = [
                    &["-m", "pip", "install", "--no-input", "--no-compile"][..],
                    &exact,
                    &places,
                ]
                .concat();
                run(&python, &args, None, &self.variables).await?;
            }
        }
        Ok(())
    }
}

/// Returns the name of the directory of a lock and an interpreter.
fn key(lock: &LockedRequirements, python: &Path) -> String {
    let python = python.canonicalize().unwrap_or_else(|_| python.to_owned());
    let mut digest = Sha256::new();
    digest.update(lock.digest());
    digest.update(python.as_os_str().as_encoded_bytes());
    raw_json::hex(&digest.finalize()[..16])
}

/// Makes all files readable for the user that runs code in a sandbox.
fn make_readable(path: &Path) -> io::Result<()> {
    let metadata = path.symlink_metadata()?;
    if metadata.is_symlink() {
        return Ok(());
    }
    let mode = metadata.permissions().mode();
    let is_open = metadata.is_dir() || mode & 0o100 != 0;
    let mode = mode | if is_open { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            make_readable(&entry?.path())?;
        }
    }
    Ok(())
}
