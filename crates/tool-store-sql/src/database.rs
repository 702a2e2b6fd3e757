use std::{fmt, sync::Arc};

use tool_core::BoxFuture;
use tool_registry::StoreError;

/// Database of an [`SqlStore`](crate::SqlStore).
pub trait Database: fmt::Debug + Send + Sync + 'static {
    /// Returns the name for messages: the kind of the database, and its file or host without credentials.
    fn name(&self) -> &str;

    /// Returns the dialect of its SQL, for the few statements that differ.
    fn dialect(&self) -> SqlDialect;

    /// Begins a transaction that only reads. `None` if the database does not exist yet.
    ///
    /// # Errors
    /// If the database cannot be reached.
    fn read(&self) -> BoxFuture<'_, Result<Option<Box<dyn SqlTransaction>>, SqlError>>;

    /// Begins a transaction that writes, and creates the database and its tables before if they do not exist.
    ///
    /// # Errors
    /// If the database cannot be reached or created.
    fn write(&self) -> BoxFuture<'_, Result<Box<dyn SqlTransaction>, SqlError>>;

    /// Begins to watch for commits, those of this process included.
    ///
    /// # Errors
    /// If the database cannot be reached.
    fn watch(&self) -> BoxFuture<'_, Result<Box<dyn ChangeWatch + '_>, SqlError>>;

    /// Tells the waiters of this process about a committed change of the registry. See [`SqlTransaction::announce`] for
    /// those of others.
    fn notify(&self) -> BoxFuture<'_, ()>;
}

/// Dialect of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SqlDialect {
    /// SQL of SQLite.
    Sqlite,
    /// SQL of PostgreSQL.
    Postgres,
}

/// Watch for commits: see [`Database::watch`].
pub trait ChangeWatch: Send {
    /// Completes when anybody may have committed something since the watch began or last completed. The caller compares
    /// revisions.
    ///
    /// # Errors
    /// If the database cannot be reached.
    fn changed(&mut self) -> BoxFuture<'_, Result<(), SqlError>>;
}

/// Transaction of a [`Database`]. Dropped without a commit, it changes nothing.
pub trait SqlTransaction: Send {
    /// Runs a statement, and returns the number of affected rows.
    ///
    /// # Errors
    /// If the statement fails.
    fn execute<'a>(
        &'a mut self,
        statement: &'static str,
        parameters: Vec<SqlValue>,
    ) -> BoxFuture<'a, Result<u64, SqlError>>;

    /// Runs a query, and returns its rows.
    ///
    /// # Errors
    /// If the query fails.
    fn fetch<'a>(
        &'a mut self,
        query: &'static str,
        parameters: Vec<SqlValue>,
    ) -> BoxFuture<'a, Result<Vec<SqlRow>, SqlError>>;

    /// Has the commit tell the waiters of other processes that the registry changed. Does nothing if the database has no
    /// way for that.
    ///
    /// # Errors
    /// If the database does not accept the announcement.
    fn announce(&mut self) -> BoxFuture<'_, Result<(), SqlError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Commits.
    ///
    /// # Errors
    /// If the commit fails. It is unknown then whether the changes were made.
    fn commit<'a>(self: Box<Self>) -> BoxFuture<'a, Result<(), SqlError>>
    where
        Self: 'a;
}

/// Value of a parameter or a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SqlValue {
    /// No value.
    Null,
    /// Integer.
    Int(i64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// Row of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlRow(Vec<SqlValue>);

/// Error of a database.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// A row with this key exists already.
    #[error("a row with this key exists already")]
    Exists,
    /// The tables were made by a newer program.
    #[error("the tables have version {found}, and this program knows {known}")]
    Newer {
        /// Version of the tables.
        found: i64,
        /// Newest version that this program knows.
        known: i64,
    },
    /// A stored value is not what it should be.
    #[error("{0}")]
    Corrupt(String),
    /// The database does not work.
    #[error("{message}")]
    Failed {
        /// Failure, without credentials.
        message: String,
        /// Cause.
        #[source]
        source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    },
}

impl SqlError {
    /// Creates the error of a database that does not work.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed {
            message: message.into(),
            source: None,
        }
    }

    /// Adds the cause of a failure.
    #[must_use]
    pub fn with_source(self, cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        match self {
            Self::Failed { message, .. } => Self::Failed {
                message,
                source: Some(Arc::new(cause)),
            },
            other => other,
        }
    }

    /// Returns the error as one of this store.
    #[must_use]
    pub fn of_store(self, store: &str) -> StoreError {
        match self {
            Self::Newer { found, known } => StoreError::Newer { found, known },
            Self::Corrupt(reason) => StoreError::corrupt("a row", reason),
            Self::Exists => StoreError::unavailable(store, "a row with this key exists already"),
            Self::Failed { message, source } => StoreError::Unavailable {
                store: store.to_owned(),
                message,
                source,
            },
        }
    }
}

impl SqlRow {
    /// Creates a row.
    #[must_use]
    pub fn new(columns: Vec<SqlValue>) -> Self {
        Self(columns)
    }

    /// Returns `true` if a column is empty.
    #[must_use]
    pub fn is_null(&self, at: usize) -> bool {
        self.0.get(at).is_none_or(|value| *value == SqlValue::Null)
    }

    fn column(&mut self, at: usize) -> SqlValue {
        self.0
            .get_mut(at)
            .map_or(SqlValue::Null, |value| std::mem::replace(value, SqlValue::Null))
    }

    /// Takes the text of a column.
    ///
    /// # Errors
    /// If the column is not a text.
    pub fn text(&mut self, at: usize) -> Result<String, SqlError> {
        self.optional_text(at)?.ok_or_else(|| wrong(at, "a text"))
    }

    /// Takes the text of a column that may be empty.
    ///
    /// # Errors
    /// If the column is neither empty nor a text.
    pub fn optional_text(&mut self, at: usize) -> Result<Option<String>, SqlError> {
        match self.column(at) {
            SqlValue::Text(text) => Ok(Some(text)),
            SqlValue::Null => Ok(None),
            _ => Err(wrong(at, "a text")),
        }
    }

    /// Takes the integer of a column.
    ///
    /// # Errors
    /// If the column is not an integer.
    pub fn int(&mut self, at: usize) -> Result<i64, SqlError> {
        self.optional_int(at)?.ok_or_else(|| wrong(at, "an integer"))
    }

    /// Takes the integer of a column that may be empty.
    ///
    /// # Errors
    /// If the column is neither empty nor an integer.
    pub fn optional_int(&mut self, at: usize) -> Result<Option<i64>, SqlError> {
        match self.column(at) {
            SqlValue::Int(number) => Ok(Some(number)),
            SqlValue::Null => Ok(None),
            _ => Err(wrong(at, "an integer")),
        }
    }

    /// Takes the bytes of a column, or those of its text.
    ///
    /// # Errors
    /// If the column is neither a text nor bytes.
    pub(crate) fn bytes(&mut self, at: usize) -> Result<Vec<u8>, SqlError> {
        match self.column(at) {
            SqlValue::Blob(bytes) => Ok(bytes),
            SqlValue::Text(text) => Ok(text.into_bytes()),
            _ => Err(wrong(at, "a text or bytes")),
        }
    }

    /// Takes the bytes of a column.
    ///
    /// # Errors
    /// If the column has no bytes.
    pub fn blob(&mut self, at: usize) -> Result<Vec<u8>, SqlError> {
        match self.column(at) {
            SqlValue::Blob(bytes) => Ok(bytes),
            _ => Err(wrong(at, "bytes")),
        }
    }
}

fn wrong(at: usize, expected: &str) -> SqlError {
    SqlError::Corrupt(format!("column {at} is not {expected}"))
}

impl From<i64> for SqlValue {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<&str> for SqlValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for SqlValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u8>> for SqlValue {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Blob(bytes)
    }
}

impl<T: Into<Self>> From<Option<T>> for SqlValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
