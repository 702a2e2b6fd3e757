//! Tools, aliases and servers.

use std::{
    collections::BTreeMap,
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use semver::Version;
use serde_json::Value;
use tool_core::{BoxFuture, Clock, SystemClock};
use tool_registry::{
    LatestChange, OfferedTool, ServerRecord, Store, StoreChanges, StoreError, StoreOperation, StoredVersion,
    ToolAlias, ToolChange, ToolFile, ToolRecord, VersionState,
};

use crate::{Database, SqlError, SqlTransaction, SqlValue, codec, lease::Lease, rows};

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

async fn revision_of(transaction: &mut dyn SqlTransaction, name: &str) -> Result<u64, SqlError> {
    let query = "SELECT number FROM store_meta WHERE name = $1";
    let mut rows = transaction.fetch(query, vec![name.into()]).await?;
    let number = rows.first_mut().map_or(Ok(0), |row| row.int(0))?;
    u64::try_from(number).map_err(|_| SqlError::Corrupt(format!("`{name}` is negative")))
}

/// Reads the records of all tools, or of one.
async fn records(
    transaction: &mut dyn SqlTransaction,
    tool: Option<&str>,
) -> Result<Vec<ToolRecord>, SqlError> {
    let parameters = || tool.map(SqlValue::from).into_iter().collect::<Vec<_>>();
    let query = match tool {
        Some(_) => "SELECT name, owner, latest, revision FROM tools WHERE name = $1",
        None => "SELECT name, owner, latest, revision FROM tools ORDER BY name",
    };
    let mut found = BTreeMap::new();
    for mut row in transaction.fetch(query, parameters()).await? {
        let name = row.text(0)?;
        let revision = u64::try_from(row.int(3)?).unwrap_or_default();
        let mut record = ToolRecord::new(name.as_str().into(), row.text(1)?.into(), revision);
        record.latest = row.optional_text(2)?.as_deref().map(rows::version).transpose()?;
        found.insert(name, record);
    }
    let query = match tool {
        Some(_) => {
            "SELECT tool, version, digest, state, state_detail, created_at, created_by, change_note \
             FROM tool_versions WHERE tool = $1"
        }
        None => {
            "SELECT tool, version, digest, state, state_detail, created_at, created_by, change_note \
             FROM tool_versions"
        }
    };
    for mut row in transaction.fetch(query, parameters()).await? {
        if let Some(record) = found.get_mut(&row.text(0)?) {
            record.versions.push(rows::version_head(&mut row, 1)?);
        }
    }
    let query = match tool {
        Some(_) => {
            "SELECT tool, version, at, by_principal FROM latest_history WHERE tool = $1 ORDER BY tool, position"
        }
        None => "SELECT tool, version, at, by_principal FROM latest_history ORDER BY tool, position",
    };
    for mut row in transaction.fetch(query, parameters()).await? {
        if let Some(record) = found.get_mut(&row.text(0)?) {
            record.history.push(rows::latest_change(&mut row, 1)?);
        }
    }
    let mut records: Vec<_> = found.into_values().collect();
    for record in &mut records {
        record.versions.sort_by(|a, b| a.version.cmp(&b.version));
    }
    Ok(records)
}

async fn stored_version(
    transaction: &mut dyn SqlTransaction,
    tool: &str,
    version: &Version,
) -> Result<Option<StoredVersion>, SqlError> {
    let key = || vec![tool.into(), version.to_string().into()];
    let query = "SELECT version, digest, state, state_detail, created_at, created_by, change_note, manifest \
                 FROM tool_versions WHERE tool = $1 AND version = $2";
    let mut found = transaction.fetch(query, key()).await?;
    let Some(row) = found.first_mut() else {
        return Ok(None);
    };
    let mut stored = rows::stored_version(row, 0)?;
    let query = "SELECT path, content FROM tool_files WHERE tool = $1 AND version = $2";
    for mut row in transaction.fetch(query, key()).await? {
        stored.files.insert(row.text(0)?, ToolFile::new(row.blob(1)?));
    }
    Ok(Some(stored))
}

async fn changes(transaction: &mut dyn SqlTransaction, since: u64) -> Result<StoreChanges, SqlError> {
    let mut changes = StoreChanges::new(revision_of(transaction, "revision").await?);
    let query = "SELECT t.name, v.version, v.digest, v.state, v.state_detail, v.created_at, v.created_by, \
                 v.change_note, v.manifest \
                 FROM tools t LEFT JOIN tool_versions v ON v.tool = t.name AND v.version = t.latest \
                 WHERE t.revision > $1 ORDER BY t.name";
    let number = i64::try_from(since).unwrap_or(i64::MAX);
    let found = transaction.fetch(query, vec![number.into()]).await?;
    changes.tools.reserve(found.len());
    for mut row in found {
        let name = row.text(0)?;
        let latest = match row.is_null(1) {
            true => None,
            false => Some(rows::stored_version(&mut row, 1)?),
        };
        changes.tools.push(OfferedTool::new(name.into(), latest));
    }
    if since == 0 || revision_of(transaction, "aliases_revision").await? > since {
        changes.aliases = Some(aliases(transaction).await?);
    }
    changes.servers_changed = revision_of(transaction, "servers_revision").await? > since;
    Ok(changes)
}

async fn aliases(transaction: &mut dyn SqlTransaction) -> Result<Vec<ToolAlias>, SqlError> {
    let query = "SELECT name, tool, version FROM tool_aliases ORDER BY name";
    let rows = transaction.fetch(query, Vec::new()).await?;
    rows.into_iter()
        .map(|mut row| Ok(ToolAlias::new(row.text(0)?, row.text(1)?, row.text(2)?)))
        .collect()
}

async fn apply(
    transaction: &mut dyn SqlTransaction,
    change: ToolChange,
    revision: i64,
) -> Result<(), ChangeError> {
    let tool = &*change.tool;
    let query = "SELECT revision FROM tools WHERE name = $1";
    let mut known = transaction.fetch(query, vec![tool.into()]).await?;
    let known = known.first_mut().map_or(Ok(0), |row| row.int(0))?;
    if u64::try_from(known).ok() != Some(change.expected) {
        return Err(StoreError::Conflict {
            tool: tool.to_owned(),
        }
        .into());
    }
    for operation in change.operations {
        apply_one(transaction, tool, operation).await?;
    }
    let statement = "UPDATE tools SET revision = $2 WHERE name = $1";
    transaction
        .execute(statement, vec![tool.into(), revision.into()])
        .await?;
    Ok(())
}

async fn apply_all(
    transaction: &mut dyn SqlTransaction,
    changes: Vec<ToolChange>,
    revision: i64,
) -> Result<u64, ChangeError> {
    for change in changes {
        apply(transaction, change, revision).await?;
    }
    Ok(u64::try_from(revision).unwrap_or_default())
}

async fn apply_one(
    transaction: &mut dyn SqlTransaction,
    tool: &str,
    operation: StoreOperation,
) -> Result<(), SqlError> {
    match operation {
        StoreOperation::Create { owner } => {
            let statement = "INSERT INTO tools (name, owner, revision, created_at) VALUES ($1, $2, 0, $3)";
            let now = codec::millis(SystemTime::now());
            let parameters = vec![tool.into(), (&*owner).into(), now.into()];
            transaction.execute(statement, parameters).await?;
        }
        StoreOperation::Put(stored) => put(transaction, tool, &stored).await?,
        StoreOperation::SetState { version, state } => {
            let statement =
                "UPDATE tool_versions SET state = $3, state_detail = $4 WHERE tool = $1 AND version = $2";
            let detail = codec::state_detail(&state);
            let parameters = vec![
                tool.into(),
                version.to_string().into(),
                state.as_str().into(),
                detail.into(),
            ];
            must_exist(transaction.execute(statement, parameters).await?, tool, &version)?;
        }
        StoreOperation::SetLatest(change) => push_latest(transaction, tool, &change).await?,
        StoreOperation::PopLatest => pop_latest(transaction, tool).await?,
        StoreOperation::RemoveDraft { version } => {
            let key = || vec![tool.into(), version.to_string().into()];
            let files = "DELETE FROM tool_files WHERE tool = $1 AND version = $2";
            transaction.execute(files, key()).await?;
            let statement = "DELETE FROM tool_versions WHERE tool = $1 AND version = $2 AND state = 'draft'";
            must_exist(transaction.execute(statement, key()).await?, tool, &version)?;
        }
        _ => return Err(SqlError::failed("an operation is unknown to this store")),
    }
    Ok(())
}

fn must_exist(n_rows: u64, tool: &str, version: &Version) -> Result<(), SqlError> {
    match n_rows {
        0 => Err(SqlError::Corrupt(format!(
            "there is no `{tool}@{version}` to change"
        ))),
        _ => Ok(()),
    }
}

/// Adds a version, or replaces a draft. A version in another state stays: the key exists.
async fn put(
    transaction: &mut dyn SqlTransaction,
    tool: &str,
    stored: &StoredVersion,
) -> Result<(), SqlError> {
    let head = &stored.head;
    let version = head.version.to_string();
    let key = || vec![tool.into(), SqlValue::from(version.as_str())];
    let drafts = "SELECT state FROM tool_versions WHERE tool = $1 AND version = $2";
    let mut known = transaction.fetch(drafts, key()).await?;
    if let Some(row) = known.first_mut() {
        if row.text(0)? != VersionState::Draft.as_str() {
            return Err(SqlError::Exists);
        }
        transaction
            .execute("DELETE FROM tool_files WHERE tool = $1 AND version = $2", key())
            .await?;
        transaction
            .execute(
                "DELETE FROM tool_versions WHERE tool = $1 AND version = $2",
                key(),
            )
            .await?;
    }
    let statement = "INSERT INTO tool_versions (tool, version, digest, state, state_detail, manifest, change_note, \
                     created_at, created_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let parameters = vec![
        tool.into(),
        version.as_str().into(),
        raw_json::hex(&head.digest).into(),
        head.state.as_str().into(),
        codec::state_detail(&head.state).into(),
        stored.manifest.as_str().into(),
        head.change.clone().into(),
        codec::millis(head.created_at).into(),
        (&*head.created_by).into(),
    ];
    transaction.execute(statement, parameters).await?;
    for (path, file) in &stored.files {
        let statement = "INSERT INTO tool_files (tool, version, path, content) VALUES ($1, $2, $3, $4)";
        let mut parameters = key();
        parameters.extend([path.as_str().into(), file.content.to_vec().into()]);
        transaction.execute(statement, parameters).await?;
    }
    Ok(())
}

async fn push_latest(
    transaction: &mut dyn SqlTransaction,
    tool: &str,
    change: &LatestChange,
) -> Result<(), SqlError> {
    let version = change.version.as_ref().map(Version::to_string);
    let statement = "INSERT INTO latest_history (tool, position, version, at, by_principal) \
                     SELECT $1, COALESCE(MAX(position), 0) + 1, $2, $3, $4 FROM latest_history WHERE tool = $5";
    let parameters = vec![
        tool.into(),
        version.clone().into(),
        codec::millis(change.at).into(),
        (&*change.by).into(),
        tool.into(),
    ];
    transaction.execute(statement, parameters).await?;
    set_latest(transaction, tool, version).await
}

async fn pop_latest(transaction: &mut dyn SqlTransaction, tool: &str) -> Result<(), SqlError> {
    let statement = "DELETE FROM latest_history WHERE tool = $1 AND position = \
                     (SELECT MAX(position) FROM latest_history WHERE tool = $2)";
    transaction
        .execute(statement, vec![tool.into(), tool.into()])
        .await?;
    let query = "SELECT version FROM latest_history WHERE tool = $1 ORDER BY position DESC LIMIT 1";
    let mut rows = transaction.fetch(query, vec![tool.into()]).await?;
    let version = rows.first_mut().map_or(Ok(None), |row| row.optional_text(0))?;
    set_latest(transaction, tool, version).await
}

async fn set_latest(
    transaction: &mut dyn SqlTransaction,
    tool: &str,
    version: Option<String>,
) -> Result<(), SqlError> {
    let statement = "UPDATE tools SET latest = $2 WHERE name = $1";
    transaction
        .execute(statement, vec![tool.into(), version.into()])
        .await?;
    Ok(())
}

async fn mark(transaction: &mut dyn SqlTransaction, name: &str, revision: i64) -> Result<(), SqlError> {
    let statement = "UPDATE store_meta SET number = $2 WHERE name = $1";
    transaction
        .execute(statement, vec![name.into(), revision.into()])
        .await?;
    Ok(())
}

/// Adds or replaces a server. The columns of its way to be reached are copies of its settings, for people who query.
async fn put_server(transaction: &mut dyn SqlTransaction, server: &ServerRecord) -> Result<(), SqlError> {
    let settings: Value = serde_json::from_str(server.settings.as_str())
        .map_err(|error| SqlError::Corrupt(format!("the settings of a server are no JSON: {error}")))?;
    let text = |name: &str| settings[name].as_str().map(str::to_owned);
    let json = |name: &str| settings.get(name).map(Value::to_string);
    let transport = text("transport").unwrap_or_else(|| match settings.get("command") {
        Some(_) => "stdio".to_owned(),
        None => "http".to_owned(),
    });
    let statement = "INSERT INTO mcp_servers (name, transport, command, args, env, url, settings, is_official, \
                     created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
                     ON CONFLICT (name) DO UPDATE SET transport = excluded.transport, command = excluded.command, \
                     args = excluded.args, env = excluded.env, url = excluded.url, settings = excluded.settings, \
                     is_official = excluded.is_official, updated_at = excluded.updated_at";
    let parameters = vec![
        (&*server.name).into(),
        transport.into(),
        text("command").into(),
        json("args").into(),
        json("env").into(),
        text("url").into(),
        server.settings.as_str().into(),
        i64::from(server.is_official).into(),
        codec::millis(server.created_at).into(),
        codec::millis(server.updated_at).into(),
    ];
    transaction.execute(statement, parameters).await?;
    Ok(())
}

/// Sets or removes an alias. Returns `false` if there was nothing to remove.
async fn set_alias(
    transaction: &mut dyn SqlTransaction,
    name: &str,
    target: Option<ToolAlias>,
    revision: i64,
) -> Result<bool, SqlError> {
    mark(transaction, "aliases_revision", revision).await?;
    let removed = transaction
        .execute("DELETE FROM tool_aliases WHERE name = $1", vec![name.into()])
        .await?;
    let Some(target) = target else {
        return Ok(removed > 0);
    };
    let statement = "INSERT INTO tool_aliases (name, tool, version) VALUES ($1, $2, $3)";
    let parameters = vec![name.into(), (&*target.tool).into(), target.version.into()];
    transaction.execute(statement, parameters).await?;
    Ok(true)
}

/// Sets or removes a server. Returns `false` if there was nothing to remove.
async fn set_server(
    transaction: &mut dyn SqlTransaction,
    name: &str,
    server: Option<ServerRecord>,
    revision: i64,
) -> Result<bool, SqlError> {
    mark(transaction, "servers_revision", revision).await?;
    match server {
        Some(server) => {
            put_server(transaction, &server).await?;
            Ok(true)
        }
        None => {
            let statement = "DELETE FROM mcp_servers WHERE name = $1";
            Ok(transaction.execute(statement, vec![name.into()]).await? > 0)
        }
    }
}

async fn servers(transaction: &mut dyn SqlTransaction) -> Result<Vec<ServerRecord>, SqlError> {
    let query = "SELECT name, settings, is_official, created_at, updated_at FROM mcp_servers ORDER BY name";
    let mut found = transaction.fetch(query, Vec::new()).await?;
    found.iter_mut().map(rows::server).collect()
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
            let Some(mut transaction) = self.begin_read().await? else {
                return Ok(StoreChanges::default());
            };
            let read = changes(&mut *transaction, since).await;
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
