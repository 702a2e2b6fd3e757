use std::{fmt, future::ready, os::unix::fs::PermissionsExt, sync::Arc};

use tokio::sync::{OnceCell, watch};
use tool_core::BoxFuture;
use tool_store_sql::{ChangeWatch, Database, SqlDialect, SqlError, SqlTransaction};

use crate::{
    SqliteOptions,
    connections::{Connections, create},
};

/// SQLite file as a [`Database`].
///
/// Until the file exists, every read finds an empty store, and nothing is created. The first change creates the file with
/// mode 0600, and its directory with mode 0700.
pub struct SqliteDatabase {
    name: String,
    options: SqliteOptions,
    connections: OnceCell<Arc<Connections>>,
    /// Counts the changes of this process.
    own_changes: watch::Sender<u64>,
}

impl SqliteDatabase {
    /// Creates the database of a file. Opens nothing.
    #[must_use]
    pub fn new(options: SqliteOptions) -> Self {
        Self {
            name: format!("sqlite {}", options.path.display()),
            options,
            connections: OnceCell::new(),
            own_changes: watch::Sender::new(0),
        }
    }

    /// Returns the options.
    #[must_use]
    pub fn options(&self) -> &SqliteOptions {
        &self.options
    }

    async fn open(&self) -> Result<Arc<Connections>, SqlError> {
        let open = || async {
            self.check_owner().await?;
            Connections::open(&self.options).await.map(Arc::new)
        };
        self.connections.get_or_try_init(open).await.cloned()
    }

    /// Checks that only its owner may write the file: whoever writes it decides who gets in and which tools run.
    async fn check_owner(&self) -> Result<(), SqlError> {
        let metadata = tokio::fs::metadata(&self.options.path).await;
        let metadata =
            metadata.map_err(|error| SqlError::failed("the file cannot be looked at").with_source(error))?;
        match metadata.permissions().mode() & 0o022 {
            0 => Ok(()),
            _ => Err(SqlError::failed(
                "others may write the file; `chmod 600` makes it yours alone",
            )),
        }
    }

    /// Opens the file if it exists.
    async fn existing(&self) -> Result<Option<Arc<Connections>>, SqlError> {
        if self.connections.initialized() {
            return self.open().await.map(Some);
        }
        match tokio::fs::try_exists(&self.options.path).await {
            Ok(true) => self.open().await.map(Some),
            Ok(false) => Ok(None),
            Err(error) => Err(SqlError::failed("the file cannot be looked at").with_source(error)),
        }
    }

    /// Returns a number that changes when another process has committed something; `None` without a file.
    async fn data_version(&self) -> Result<Option<i64>, SqlError> {
        match self.existing().await? {
            Some(connections) => connections.data_version().await.map(Some),
            None => Ok(None),
        }
    }
}

impl Database for SqliteDatabase {
    fn name(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> SqlDialect {
        SqlDialect::Sqlite
    }

    fn read(&self) -> BoxFuture<'_, Result<Option<Box<dyn SqlTransaction>>, SqlError>> {
        Box::pin(async move {
            match self.existing().await? {
                Some(connections) => connections.read().await.map(Some),
                None => Ok(None),
            }
        })
    }

    fn write(&self) -> BoxFuture<'_, Result<Box<dyn SqlTransaction>, SqlError>> {
        Box::pin(async move {
            if !self.connections.initialized() {
                let path = self.options.path.clone();
                let created = tokio::task::spawn_blocking(move || create(&path)).await;
                let created = created
                    .map_err(|error| SqlError::failed("the file cannot be created").with_source(error))?;
                created.map_err(|error| SqlError::failed("the file cannot be created").with_source(error))?;
            }
            self.open().await?.write().await
        })
    }

    fn watch(&self) -> BoxFuture<'_, Result<Box<dyn ChangeWatch + '_>, SqlError>> {
        Box::pin(async move {
            let watch = SqliteWatch {
                own_changes: self.own_changes.subscribe(),
                seen: self.data_version().await?,
                database: self,
            };
            Ok(Box::new(watch) as _)
        })
    }

    fn notify(&self) -> BoxFuture<'_, ()> {
        self.own_changes.send_modify(|n_changes| *n_changes += 1);
        Box::pin(ready(()))
    }
}

/// Watch for commits of this process and of others.
struct SqliteWatch<'a> {
    database: &'a SqliteDatabase,
    own_changes: watch::Receiver<u64>,
    seen: Option<i64>,
}

impl ChangeWatch for SqliteWatch<'_> {
    fn changed(&mut self) -> BoxFuture<'_, Result<(), SqlError>> {
        Box::pin(async move {
            loop {
                let pause = tokio::time::sleep(self.database.options.poll_interval);
                tokio::select! {
                    // The sender lives as long as the database, which the watch borrows.
                    _ = self.own_changes.changed() => return Ok(()),
                    () = pause => {}
                }
                let now = self.database.data_version().await?;
                if now != self.seen {
                    self.seen = now;
                    return Ok(());
                }
            }
        })
    }
}

impl fmt::Debug for SqliteDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteDatabase")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
