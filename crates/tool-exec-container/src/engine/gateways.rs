//! Which gateway a container belongs to, and the removal of containers whose gateway is gone.

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use bollard::query_parameters::ListContainersOptionsBuilder;
use tokio::{sync::OnceCell, task::spawn_blocking};
use tracing::{debug, warn};

use super::{Engine, run::remove};

/// Label with the directory of lock files that a container's gateway uses.
const SCOPE: &str = "dev.toolplane.scope";
/// Label with the gateway of a container.
const GATEWAY: &str = "dev.toolplane.gateway";
/// Label with the tool of a container.
const TOOL: &str = "dev.toolplane.tool";
/// File with the name of the directory in labels.
const SCOPE_FILE: &str = "scope";
/// End of the names of lock files.
const LOCK: &str = ".lock";

/// This gateway, as containers name it.
#[derive(Debug)]
pub(crate) struct Gateway {
    scope: String,
    id: String,
    /// Lock that the operating system releases when the process ends. `None` if no file can be locked: then no other gateway
    /// removes the containers.
    lock: Option<(PathBuf, File)>,
}

/// This gateway and the others with the same directory of lock files.
pub(crate) struct Gateways {
    directory: Option<PathBuf>,
    own: OnceCell<Arc<Gateway>>,
}

impl Gateway {
    /// Creates the gateway of this process in a directory.
    fn open(directory: &Path) -> io::Result<Self> {
        create_directory(directory)?;
        let (scope, id) = (scope(directory)?, random()?);
        let path = directory.join(format!("{id}{LOCK}"));
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        file.try_lock()?;
        Ok(Self {
            scope,
            id,
            lock: Some((path, file)),
        })
    }

    pub(super) fn labels(&self, tool: &str) -> HashMap<String, String> {
        let labels = [(SCOPE, self.scope.as_str()), (GATEWAY, &self.id), (TOOL, tool)];
        labels
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    /// Returns the name of a new container.
    pub(crate) fn container_name(&self) -> io::Result<String> {
        Ok(format!("toolplane-{}-{}", self.id, random()?))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if let Some((path, _)) = &self.lock {
            let _ = fs::remove_file(path);
        }
    }
}

impl Gateways {
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        Self {
            directory,
            own: OnceCell::new(),
        }
    }

    /// Returns this gateway, whose lock it takes at the first call.
    pub(crate) async fn own(&self) -> io::Result<Arc<Gateway>> {
        let open = || async {
            let directory = self.directory.clone();
            let opened = spawn_blocking(move || {
                match directory {
                Some(directory) => Gateway::open(&directory).or_else(|error| {
                    warn!(directory = %directory.display(), %error, "containers of a gateway that is killed will stay");
                    unlocked()
                }),
                None => unlocked(),
            }
            });
            let opened = opened.await.map_err(io::Error::other)?;
            opened.map(Arc::new)
        };
        self.own.get_or_try_init(open).await.cloned()
    }

    /// Returns `true` if there are lock files of gateways that are gone. Asks no engine.
    pub(crate) async fn has_leftovers(&self) -> bool {
        let Some(directory) = self.directory.clone() else {
            return false;
        };
        let found = spawn_blocking(move || gone(&directory).is_ok_and(|gone| !gone.is_empty()));
        found.await.unwrap_or_default()
    }

    /// Removes the containers of gateways that are gone, and their lock files.
    pub(crate) async fn reap(&self, engine: &Engine) {
        let Some(directory) = self.directory.clone() else {
            return;
        };
        let found = spawn_blocking(move || {
            let scope = fs::read_to_string(directory.join(SCOPE_FILE))?;
            Ok::<_, io::Error>((scope.trim().to_owned(), gone(&directory)?))
        });
        let Ok(Ok((scope, gone))) = found.await else {
            return;
        };
        if gone.is_empty() {
            return;
        }
        let filter = HashMap::from([("label", vec![format!("{SCOPE}={scope}")])]);
        let options = ListContainersOptionsBuilder::new()
            .all(true)
            .filters(&filter)
            .build();
        let Ok(containers) = engine.docker.list_containers(Some(options)).await else {
            debug!("the engine does not list its containers");
            return;
        };
        let mut is_complete = true;
        for container in containers {
            let labels = container.labels.unwrap_or_default();
            let is_left = |label: &str| {
                labels
                    .get(label)
                    .is_some_and(|gateway| gone.contains_key(gateway))
            };
            let (true, Some(id)) = (is_left(GATEWAY), container.id) else {
                continue;
            };
            match remove(engine, &id).await {
                Ok(()) => debug!(%id, "removed the container of a gateway that is gone"),
                Err(error) => {
                    warn!(%id, %error, "the container of a gateway that is gone stays");
                    is_complete = false;
                }
            }
        }
        if is_complete {
            gone.values().for_each(|(path, _)| drop(fs::remove_file(path)));
        }
    }
}

fn unlocked() -> io::Result<Gateway> {
    Ok(Gateway {
        scope: random()?,
        id: random()?,
        lock: None,
    })
}

/// Returns the gateways whose lock can be taken, with their lock.
fn gone(directory: &Path) -> io::Result<BTreeMap<String, (PathBuf, File)>> {
    let mut gone = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.strip_suffix(LOCK)) else {
            continue;
        };
        let path = entry.path();
        let Ok(file) = OpenOptions::new().write(true).open(&path) else {
            continue;
        };
        if file.try_lock().is_ok() {
            gone.insert(id.to_owned(), (path, file));
        }
    }
    Ok(gone)
}

/// Returns the name of a directory in labels, which it keeps.
fn scope(directory: &Path) -> io::Result<String> {
    let path = directory.join(SCOPE_FILE);
    if !path.exists() {
        let new = directory.join(format!("{SCOPE_FILE}.{}", random()?));
        File::create_new(&new)?.write_all(random()?.as_bytes())?;
        // Fails if another gateway was first. No gateway reads a file that is not complete.
        let linked = fs::hard_link(&new, &path);
        fs::remove_file(&new)?;
        linked.or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Ok(()),
            _ => Err(error),
        })?;
    }
    Ok(fs::read_to_string(path)?.trim().to_owned())
}

#[cfg(unix)]
fn create_directory(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;

    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

#[cfg(not(unix))]
fn create_directory(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)
}

fn random() -> io::Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(raw_json::hex(&bytes))
}

#[cfg(test)]
mod tests {
    use super::{Gateway, gone};

    #[test]
    fn a_gateway_is_gone_when_its_lock_is_free() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = Gateway::open(directory.path()).expect("a gateway");
        let second = Gateway::open(directory.path()).expect("a gateway");
        assert_eq!(first.scope, second.scope);
        assert_ne!(first.id, second.id);
        assert!(gone(directory.path()).expect("readable").is_empty());
        // As after a kill: the file stays, and nobody holds its lock.
        let killed = directory.path().join("killed.lock");
        std::fs::write(&killed, "").expect("writable");
        let found = gone(directory.path()).expect("readable");
        assert_eq!(found.keys().collect::<Vec<_>>(), ["killed"]);
        drop(found);
        drop(first);
        let names = std::fs::read_dir(directory.path()).expect("readable");
        assert_eq!(names.count(), 3, "the scope, the second and the killed one");
    }
}
