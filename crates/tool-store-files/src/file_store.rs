use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use semver::Version;
use tokio::{sync::watch, task::spawn_blocking};
use tool_core::BoxFuture;
use tool_registry::{
    AuthoredVersion, ServerRecord, Store, StoreChanges, StoreError, StoredVersion, ToolAlias, ToolChange,
    ToolRecord,
};

use crate::{FileStoreOptions, disk::Disk, state::State};

/// [`Store`] in a directory of readable files: see the [crate](crate) for its layout and its guarantees.
///
/// Until the directory exists, every read finds an empty store, and nothing is created. The first change creates it with mode
/// 0700. Handles in several processes may use one directory; it should be on a local file system.
///
/// A handle that may not write the directory offers what is in it, and counts revisions for itself.
///
/// # Examples
/// ```
/// use tool_registry::{Store, StoreOperation};
/// use tool_store_files::{FileStore, FileStoreOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let directory = std::env::temp_dir().join(format!("tool-store-files-{}", std::process::id()));
/// let store = FileStore::new(FileStoreOptions::new(&directory));
/// let create = StoreOperation::Create { owner: "ada".into() };
/// store.apply("greet", 0, vec![create]).await?;
/// assert!(directory.join("tools/greet/tool.json").is_file());
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok(())
/// # }
/// ```
pub struct FileStore {
    inner: Arc<Inner>,
    /// Counts the changes of this handle.
    own_changes: watch::Sender<u64>,
}

struct Inner {
    disk: Disk,
    state: Mutex<State>,
}

impl FileStore {
    /// Creates the store of a directory. Opens nothing.
    #[must_use]
    pub fn new(options: FileStoreOptions) -> Self {
        let disk = Disk::new(options);
        let state = Mutex::default();
        Self {
            inner: Arc::new(Inner { disk, state }),
            own_changes: watch::Sender::new(0),
        }
    }

    /// Returns the options.
    #[must_use]
    pub fn options(&self) -> &FileStoreOptions {
        &self.inner.disk.options
    }

    /// Uses the state where blocking is allowed. A use that began is finished, also if its future is dropped.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut State, &Disk) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let inner = self.inner.clone();
        let done = spawn_blocking(move || work(&mut inner.state.lock(), &inner.disk)).await;
        let ended = |error: tokio::task::JoinError| StoreError::Unavailable {
            store: self.inner.disk.name.clone(),
            message: "its work was ended".to_owned(),
            source: Some(Arc::new(error)),
        };
        done.map_err(ended)?
    }

    /// Makes a change, and tells the waiters of this handle.
    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut State, &Disk) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let result = self.with(work).await;
        self.own_changes.send_modify(|n_changes| *n_changes += 1);
        result
    }
}

impl Store for FileStore {
    fn name(&self) -> &str {
        &self.inner.disk.name
    }

    fn tool<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<ToolRecord>, StoreError>> {
        let name = name.to_owned();
        Box::pin(self.with(move |state, disk| state.tool(disk, &name)))
    }

    fn tools(&self) -> BoxFuture<'_, Result<Vec<ToolRecord>, StoreError>> {
        Box::pin(self.with(State::tools))
    }

    fn version<'a>(
        &'a self,
        tool: &'a str,
        version: &'a Version,
    ) -> BoxFuture<'a, Result<Option<StoredVersion>, StoreError>> {
        let (tool, version) = (tool.to_owned(), version.clone());
        Box::pin(self.with(move |state, disk| state.version(disk, &tool, &version)))
    }

    fn versions_by<'a>(&'a self, author: &'a str) -> BoxFuture<'a, Result<Vec<AuthoredVersion>, StoreError>> {
        let author = author.to_owned();
        Box::pin(self.with(move |state, disk| {
            let mut versions = Vec::new();
            for record in state.tools(disk)? {
                let own = record
                    .versions
                    .iter()
                    .filter(|head| head.agent.is_some() && *head.created_by == *author);
                for head in own {
                    let stored = state.version(disk, &record.name, &head.version)?;
                    let n_bytes = stored.map_or(0, |stored| stored.n_bytes());
                    versions.push(AuthoredVersion::new(record.name.clone(), head.clone(), n_bytes));
                }
            }
            Ok(versions)
        }))
    }

    fn apply_all(&self, changes: Vec<ToolChange>) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(self.change(move |state, disk| state.apply_all(disk, changes)))
    }

    fn revision(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(self.with(State::revision))
    }

    fn changes(&self, since: u64) -> BoxFuture<'_, Result<StoreChanges, StoreError>> {
        Box::pin(self.with(move |state, disk| state.changes(disk, since)))
    }

    fn changed(&self, seen: u64) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let options = self.options();
            let mut own_changes = self.own_changes.subscribe();
            let mut since_scan = options.scan_interval;
            loop {
                let is_due = since_scan >= options.scan_interval;
                let revision = match is_due {
                    true => self.with(State::revision).await,
                    false => self.with(State::known_revision).await,
                };
                // The caller reads the store next, and learns of a failure there.
                if revision.is_ok_and(|revision| revision == seen) {
                    since_scan = if is_due { Duration::ZERO } else { since_scan };
                } else {
                    return;
                }
                tokio::select! {
                    // The sender lives as long as the store, which the future borrows.
                    _ = own_changes.changed() => {}
                    () = tokio::time::sleep(options.poll_interval) => since_scan += options.poll_interval,
                }
            }
        })
    }

    fn aliases(&self) -> BoxFuture<'_, Result<Vec<ToolAlias>, StoreError>> {
        Box::pin(self.with(State::aliases))
    }

    fn set_alias<'a>(
        &'a self,
        name: &'a str,
        target: Option<ToolAlias>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let name = name.to_owned();
        Box::pin(self.change(move |state, disk| state.set_alias(disk, &name, target)))
    }

    fn servers(&self) -> BoxFuture<'_, Result<Vec<ServerRecord>, StoreError>> {
        Box::pin(self.with(State::servers))
    }

    fn set_server<'a>(
        &'a self,
        name: &'a str,
        server: Option<ServerRecord>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let name = name.to_owned();
        Box::pin(self.change(move |state, disk| state.set_server(disk, &name, server)))
    }
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStore")
            .field("options", self.options())
            .finish_non_exhaustive()
    }
}
