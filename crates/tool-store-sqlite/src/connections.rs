//! Opened connections, and transactions on them.

use std::{
    fs::OpenOptions,
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
    time::Duration,
};

use futures_util::{FutureExt, TryStreamExt};
use sqlx::{
    Column, Row, Sqlite, SqlitePool, Transaction, TypeInfo, ValueRef,
    sqlite::{
        SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteRow,
        SqliteSynchronous,
    },
};
use tool_core::BoxFuture;
use tool_store_sql::{SqlError, SqlRow, SqlTransaction, SqlValue, is_migrated, migrate};

use crate::SqliteOptions;

/// Number of rows that are fetched ahead of the reader.
const ROW_BUFFER: usize = 1024;
/// Number of rows after which the reader waits for a batch: the wake-up for a single row costs more than the row.
const MANY_ROWS: usize = 100;
/// Time in which a batch of rows is fetched.
const BATCH_PAUSE: Duration = Duration::from_millis(1);

/// Connections to an existing file.
#[derive(Debug)]
pub(crate) struct Connections {
    /// The one connection that writes.
    writer: SqlitePool,
    /// Connection that watches, since `data_version` is counted for each connection. It is opened first and reads as well: each
    /// connection parses all definitions of tables, which costs more than most reads.
    watcher: SqlitePool,
    /// Connections that read while the watcher does.
    readers: SqlitePool,
    busy_timeout: Duration,
}

impl Connections {
    /// Opens the file and brings its tables to the present version.
    pub(crate) async fn open(options: &SqliteOptions) -> Result<Self, SqlError> {
        let connect = SqliteConnectOptions::new()
            .filename(&options.path)
            .create_if_missing(false)
            .busy_timeout(options.busy_timeout)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .row_buffer_size(ROW_BUFFER);
        let pool = |max, options: SqliteConnectOptions| {
            let pool = SqlitePoolOptions::new()
                .max_connections(max)
                .test_before_acquire(false);
            // Connections do not age: the file is local.
            pool.max_lifetime(None)
                .idle_timeout(None)
                .connect_lazy_with(options)
        };
        let writer = pool(1, connect.clone());
        // Not `read_only`: the first reader after a crash may have to recover the log of the last writer.
        let connect_reader = connect.pragma("query_only", "ON");
        let watcher = pool(1, connect_reader.clone());
        // A gateway that only reads opens no connection that writes, and waits for no writer.
        if options.migrates && !is_current(&options.path, &watcher, options.busy_timeout).await? {
            let mut transaction = begin(&writer, true, options.busy_timeout).await?;
            migrate(&mut *transaction).await?;
            transaction.commit().await?;
        }
        Ok(Self {
            writer,
            watcher,
            readers: pool(options.max_readers, connect_reader),
            busy_timeout: options.busy_timeout,
        })
    }

    pub(crate) async fn read(&self) -> Result<Box<dyn SqlTransaction>, SqlError> {
        match self.watcher.try_begin().await {
            Ok(Some(transaction)) => Ok(Box::new(SqliteTransaction(transaction))),
            // It is in use, or its file is busy.
            Ok(None) | Err(_) => begin(&self.readers, false, self.busy_timeout).await,
        }
    }

    pub(crate) async fn write(&self) -> Result<Box<dyn SqlTransaction>, SqlError> {
        begin(&self.writer, true, self.busy_timeout).await
    }

    /// Returns a number that changes with every commit of another connection.
    pub(crate) async fn data_version(&self) -> Result<i64, SqlError> {
        let row = sqlx::query("PRAGMA data_version").fetch_one(&self.watcher).await;
        row.and_then(|row| row.try_get(0))
            .map_err(|error| failed("look for changes", error))
    }
}

/// Returns `true` if a file has the tables of the present version.
async fn is_current(path: &Path, reader: &SqlitePool, busy_timeout: Duration) -> Result<bool, SqlError> {
    // The first connection to a new file makes it a database, which a reader cannot do.
    let is_new = tokio::fs::metadata(path)
        .await
        .is_ok_and(|metadata| metadata.len() == 0);
    if is_new {
        return Ok(false);
    }
    let mut transaction = begin(reader, false, busy_timeout).await?;
    Ok(is_migrated(&mut *transaction).await)
}

/// Creates an empty file that only its owner may read, and its directory. An existing file stays.
pub(crate) fn create(path: &Path) -> io::Result<()> {
    if let Some(directory) = path
        .parent()
        .filter(|directory| !directory.as_os_str().is_empty())
    {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
    }
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map(drop)
}

/// Pause before a transaction is begun again.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// Begins a transaction. SQLite does not wait while another process switches a new file to WAL mode, or recovers the log of a
/// process that died: this waits as long as for other writers.
async fn begin(
    pool: &SqlitePool,
    writes: bool,
    limit: Duration,
) -> Result<Box<dyn SqlTransaction>, SqlError> {
    let mut waited = Duration::ZERO;
    loop {
        let begun = match writes {
            // Waits for other writers here, and never fails in the middle.
            true => pool.begin_with("BEGIN IMMEDIATE").await,
            false => pool.begin().await,
        };
        match begun {
            Ok(transaction) => return Ok(Box::new(SqliteTransaction(transaction))),
            Err(error) if waited < limit && is_busy(&error) => {
                tokio::time::sleep(BUSY_PAUSE).await;
                waited += BUSY_PAUSE;
            }
            Err(error) => return Err(failed("begin a transaction", error)),
        }
    }
}

/// Returns `true` for `SQLITE_BUSY` and its extended codes, whose lowest byte is 5.
fn is_busy(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    let code = error.code().and_then(|code| code.parse::<u32>().ok());
    code.is_some_and(|code| code & 0xff == 5)
}

struct SqliteTransaction(Transaction<'static, Sqlite>);

impl SqlTransaction for SqliteTransaction {
    fn execute<'a>(
        &'a mut self,
        statement: &'static str,
        parameters: Vec<SqlValue>,
    ) -> BoxFuture<'a, Result<u64, SqlError>> {
        Box::pin(async move {
            let result = bind(statement, parameters).execute(&mut *self.0).await;
            result
                .map(|result| result.rows_affected())
                .map_err(|error| failed(statement, error))
        })
    }

    fn fetch<'a>(
        &'a mut self,
        query: &'static str,
        parameters: Vec<SqlValue>,
    ) -> BoxFuture<'a, Result<Vec<SqlRow>, SqlError>> {
        Box::pin(async move {
            let mut rows = bind(query, parameters).fetch(&mut *self.0);
            // Read while the next rows are fetched, so that no row is in memory twice.
            let mut found = Vec::new();
            loop {
                let mut next = rows.try_next().now_or_never();
                if next.is_none() && found.len() >= MANY_ROWS {
                    tokio::time::sleep(BATCH_PAUSE).await;
                    next = rows.try_next().now_or_never();
                }
                let next = match next {
                    Some(next) => next,
                    None => rows.try_next().await,
                };
                match next.and_then(|row| row.as_ref().map(read).transpose()) {
                    Ok(Some(row)) => found.push(row),
                    Ok(None) => return Ok(found),
                    Err(error) => return Err(failed(query, error)),
                }
            }
        })
    }

    fn commit<'a>(self: Box<Self>) -> BoxFuture<'a, Result<(), SqlError>>
    where
        Self: 'a,
    {
        Box::pin(async move { self.0.commit().await.map_err(|error| failed("commit", error)) })
    }
}

fn bind(
    statement: &'static str,
    parameters: Vec<SqlValue>,
) -> sqlx::query::Query<'static, Sqlite, SqliteArguments> {
    let query = sqlx::query(statement);
    parameters.into_iter().fold(query, |query, value| match value {
        SqlValue::Null => query.bind(None::<i64>),
        SqlValue::Int(number) => query.bind(number),
        SqlValue::Text(text) => query.bind(text),
        SqlValue::Blob(bytes) => query.bind(bytes),
    })
}

fn read(row: &SqliteRow) -> Result<SqlRow, sqlx::Error> {
    let columns = row.columns().iter().map(|column| {
        let at = column.ordinal();
        let raw = row.try_get_raw(at)?;
        if raw.is_null() {
            return Ok(SqlValue::Null);
        }
        let kind = raw.type_info();
        Ok(match kind.name() {
            "INTEGER" | "BIGINT" | "INT4" | "INT8" | "BOOLEAN" => SqlValue::Int(row.try_get(at)?),
            "BLOB" => SqlValue::Blob(row.try_get(at)?),
            _ => SqlValue::Text(row.try_get(at)?),
        })
    });
    columns.collect::<Result<_, _>>().map(SqlRow::new)
}

/// Returns the error of a statement. The text of a statement holds no values.
fn failed(what: &str, error: sqlx::Error) -> SqlError {
    if let sqlx::Error::Database(cause) = &error
        && cause.is_unique_violation()
    {
        return SqlError::Exists;
    }
    let what: String = what.split_whitespace().take(6).collect::<Vec<_>>().join(" ");
    SqlError::failed(format!("`{what}` failed")).with_source(error)
}
