//! Tools, aliases and servers.

mod read;
mod write;

use std::{fmt, sync::Arc, time::Duration};

use semver::Version;
use tool_core::{BoxFuture, Clock, SystemClock};
use tool_registry::{
    AuthoredVersion, OfferedTool, ServerRecord, Store, StoreChanges, StoreError, StoredVersion, ToolAlias,
    ToolChange, ToolRecord,
};

use self::{
    read::{aliases, changes, records, revision_of, servers, stored_version, versions_by},
    write::{apply_all, set_alias, set_server},
};
use crate::{Database, SqlError, SqlTransaction, lease::Lease};

/// Store in an SQL database. Implements the ports of tools, of tokens and of approvals; [`SqlLedger`](crate::SqlLedger) and
/// [`SqlPins`](crate::SqlPins) are its ledger and its pins.
///
/// Every change of the registry raises one counter in its own transaction, so that changes are ordered: a database that
/// lets several writers work at once makes them wait for that row.
///
/// # Leases
/// A store that runs calls holds a lease in its database, which it renews while they run. If the process ends, the lease does:
/// the outcomes of its running calls are unknown then. The lease is [`SqlStore::LEASE`] long by the wall clock, so the clocks
/// of machines that share a database must not differ by more than that.
pub struct SqlStore<D> {
    database: Arc<D>,
    clock: Arc<dyn Clock>,
    lease: Arc<Lease>,
}

impl<D: Database> SqlStore<D> {
    /// Default length of a lease.
    pub const LEASE: Duration = Duration::from_secs(30);

    /// Creates a store on a database, with the clock of the system.
    #[must_use]
    pub fn new(database: D) -> Self {
        Self {
            database: Arc::new(database),
            clock: Arc::new(SystemClock::new()),
            lease: Arc::new(Lease::new(Self::LEASE)),
        }
    }

    /// Sets the clock. It must be the one of the calls whose approvals the store keeps: expiries are stored by its wall time,
    /// and read as instants of its time line.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the length of the lease. Set it before the store is used.
    #[must_use]
    pub fn with_lease(mut self, length: Duration) -> Self {
        self.lease = Arc::new(Lease::new(length));
        self
    }

    pub(crate) fn shared_database(&self) -> &Arc<D> {
        &self.database
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    pub(crate) fn lease(&self) -> &Arc<Lease> {
        &self.lease
    }

    /// Returns the database.
    #[must_use]
    pub fn database(&self) -> &D {
        &self.database
    }

    /// Begins a transaction that reads. `None` if the database does not exist yet.
    async fn begin_read(&self) -> Result<Option<Box<dyn SqlTransaction>>, StoreError> {
        self.database.read().await.map_err(|error| self.error(error))
    }

    /// Begins a change of the registry. The counter is raised first: it orders concurrent writers.
    async fn begin_change(&self) -> Result<(Box<dyn SqlTransaction>, i64), StoreError> {
        let begun = async {
            let mut transaction = self.database.write().await?;
            let raise = "UPDATE store_meta SET number = number + 1 WHERE name = 'revision' RETURNING number";
            let mut raised = transaction.fetch(raise, Vec::new()).await?;
            let revision = raised.first_mut().map(|row| row.int(0)).transpose()?;
            let revision =
                revision.ok_or_else(|| SqlError::Corrupt("the store has no revision".to_owned()))?;
            Ok((transaction, revision))
        };
        begun.await.map_err(|error| self.error(error))
    }

    /// Commits a change that succeeded, and tells the waiters.
    async fn finish<T>(
        &self,
        mut transaction: Box<dyn SqlTransaction>,
        result: Result<T, ChangeError>,
    ) -> Result<T, StoreError> {
        let result = result.map_err(|error| match error {
            ChangeError::Sql(error) => self.error(error),
            ChangeError::Store(error) => error,
        })?;
        transaction.announce().await.map_err(|error| self.error(error))?;
        transaction.commit().await.map_err(|error| self.error(error))?;
        self.database.notify().await;
        Ok(result)
    }

    async fn read_revision(&self) -> Result<u64, StoreError> {
        let Some(mut transaction) = self.begin_read().await? else {
            return Ok(0);
        };
        let revision = revision_of(&mut *transaction, "revision").await;
        revision.map_err(|error| self.error(error))
    }

    fn error(&self, error: SqlError) -> StoreError {
        error.of_store(self.database.name())
    }
}

/// Error within a change.
enum ChangeError {
    Sql(SqlError),
    Store(StoreError),
}

impl From<SqlError> for ChangeError {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for ChangeError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl<D: Database> Store for SqlStore<D> {
    fn name(&self) -> &str {
        self.database.name()
    }

    fn tool<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<ToolRecord>, StoreError>> {
        Box::pin(async move {
            let Some(mut transaction) = self.begin_read().await? else {
                return Ok(None);
            };
            let read = records(&mut *transaction, Some(name)).await;
            read.map(|mut records| records.pop())
                .map_err(|error| self.error(error))
        })
    }

    fn tools(&self) -> BoxFuture<'_, Result<Vec<ToolRecord>, StoreError>> {
        Box::pin(async move {
            let Some(mut transaction) = self.begin_read().await? else {
                return Ok(Vec::new());
            };
            let read = records(&mut *transaction, None).await;
            read.map_err(|error| self.error(error))
        })
    }

    fn version<'a>(
        &'a self,
        tool: &'a str,
        version: &'a Version,
    ) -> BoxFuture<'a, Result<Option<StoredVersion>, StoreError>> {
        Box::pin(async move {
            let Some(mut transaction) = self.begin_read().await? else {
                return Ok(None);
            };
            let read = stored_version(&mut *transaction, tool, version).await;
            read.map_err(|error| self.error(error))
        })
    }

    fn versions_by<'a>(&'a self, author: &'a str) -> BoxFuture<'a, Result<Vec<AuthoredVersion>, StoreError>> {
        Box::pin(async move {
            let Some(mut transaction) = self.begin_read().await? else {
                return Ok(Vec::new());
            };
            let read = versions_by(&mut *transaction, author).await;
            read.map_err(|error| self.error(error))
        })
    }

    fn apply_all(&self, changes: Vec<ToolChange>) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            let (mut transaction, revision) = self.begin_change().await?;
            let result = apply_all(&mut *transaction, changes, revision).await;
            self.finish(transaction, result).await
        })
    }

    fn revision(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(self.read_revision())
    }

    fn changes(&self, since: u64) -> BoxFuture<'_, Result<StoreChanges, StoreError>> {
        Box::pin(async move {
            let mut tools = Vec::new();
            let mut take = |part| tools.extend::<Vec<_>>(part);
            let mut changes = self.changes_in_parts(since, &mut take).await?;
            changes.tools = tools;
            Ok(changes)
        })
    }

    fn changes_in_parts<'a>(
        &'a self,
        since: u64,
        take: &'a mut (dyn FnMut(Vec<OfferedTool>) + Send),
    ) -> BoxFuture<'a, Result<StoreChanges, StoreError>> {
        Box::pin(async move {
            let Some(mut transaction) = self.begin_read().await? else {
                return Ok(StoreChanges::default());
            };
            let read = changes(&mut *transaction, since, take).await;
            read.map_err(|error| self.error(error))
        })
    }

    fn changed(&self, seen: u64) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // The caller reads the store next, and learns of a failure there. The watch begins before the revision is read,
            // so that it misses nothing.
            let Ok(mut watch) = self.database.watch().await else {
                return;
            };
            while self.read_revision().await.is_ok_and(|revision| revision == seen) {
                if watch.changed().await.is_err() {
                    return;
                }
            }
        })
    }

    fn aliases(&self) -> BoxFuture<'_, Result<Vec<ToolAlias>, StoreError>> {
        Box::pin(async move {
            let Some(mut transaction) = self.begin_read().await? else {
                return Ok(Vec::new());
            };
            let read = aliases(&mut *transaction).await;
            read.map_err(|error| self.error(error))
        })
    }

    fn set_alias<'a>(
        &'a self,
        name: &'a str,
        target: Option<ToolAlias>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let (mut transaction, revision) = self.begin_change().await?;
            let result = set_alias(&mut *transaction, name, target, revision).await;
            self.finish(transaction, result.map_err(ChangeError::from)).await
        })
    }

    fn servers(&self) -> BoxFuture<'_, Result<Vec<ServerRecord>, StoreError>> {
        Box::pin(async move {
            let Some(mut transaction) = self.begin_read().await? else {
                return Ok(Vec::new());
            };
            let read = servers(&mut *transaction).await;
            read.map_err(|error| self.error(error))
        })
    }

    fn set_server<'a>(
        &'a self,
        name: &'a str,
        server: Option<ServerRecord>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let (mut transaction, revision) = self.begin_change().await?;
            let result = set_server(&mut *transaction, name, server, revision).await;
            self.finish(transaction, result.map_err(ChangeError::from)).await
        })
    }
}

impl<D: Database> fmt::Debug for SqlStore<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlStore")
            .field("database", &self.database)
            .finish()
    }
}
