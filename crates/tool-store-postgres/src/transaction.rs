//! Transactions, and values on the way to the server and back.

use std::{borrow::Cow, time::Duration};

use sqlx::{
    AssertSqlSafe, Column, Encode, Executor, Postgres, Row, Type, TypeInfo, ValueRef,
    encode::IsNull,
    error::BoxDynError,
    postgres::{PgArgumentBuffer, PgArguments, PgConnection, PgRow, PgTypeInfo, types::Oid},
    query::Query,
};
use tokio::runtime::Handle;
use tool_core::BoxFuture;
use tool_store_sql::{SqlError, SqlRow, SqlTransaction, SqlValue};

use crate::{connections::within, loan::Loan};

/// Channel of `LISTEN`. The payload is the schema of the store that changed.
pub(crate) const CHANNEL: &str = "toolplane";
/// Begins a transaction that sees the state of one moment. Such a transaction never fails because of others.
pub(crate) const READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/// Begins a transaction that writes.
///
/// READ COMMITTED is enough. A change of the registry raises the counter first, and with it locks that row until the
/// commit, so changes run one after the other; each later statement of the change has a snapshot of its own, taken after
/// the lock, and sees all earlier changes. With REPEATABLE READ or SERIALIZABLE the writer that waited for the row would
/// fail instead. A change of another kind is one statement with its condition, or begins with a statement that locks
/// its row; a statement that waited for a row looks at its condition again.
pub(crate) const WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// Open transaction.
pub(crate) struct PostgresTransaction {
    /// `None` after the end.
    connection: Option<Loan>,
    schema: String,
    limit: Duration,
    state: TransactionState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TransactionState {
    Open,
    /// A statement failed: the server would answer a commit with a rollback, and not with an error.
    Failed,
    /// The connection does not work.
    Broken,
}

impl PostgresTransaction {
    /// Begins a transaction by [`READ`] or [`WRITE`].
    pub(crate) async fn begin(
        connection: Loan,
        begin: &'static str,
        schema: &str,
        limit: Duration,
    ) -> Result<Self, SqlError> {
        // Before the statement: if the future is dropped meanwhile, the transaction is rolled back.
        let mut transaction = Self {
            connection: Some(connection),
            schema: schema.to_owned(),
            limit,
            state: TransactionState::Open,
        };
        transaction.run(begin).await?;
        Ok(transaction)
    }

    /// Runs a statement that has neither parameters nor results. It must hold nothing that somebody else wrote.
    pub(crate) async fn run(&mut self, statement: impl Into<Cow<'static, str>>) -> Result<(), SqlError> {
        let statement = statement.into();
        let limit = self.limit;
        let connection = self.connection()?;
        let result = within(
            limit,
            connection.execute(AssertSqlSafe(statement.clone().into_owned())),
        )
        .await;
        self.check(&statement, result).map(drop)
    }

    /// Ends a transaction that only read, and returns its connection.
    pub(crate) async fn end(mut self) -> Result<Loan, SqlError> {
        self.run("COMMIT").await?;
        let connection = self.connection.take();
        connection.ok_or_else(|| SqlError::failed("the transaction has ended"))
    }

    fn connection(&mut self) -> Result<&mut PgConnection, SqlError> {
        let connection = self.connection.as_deref_mut();
        connection.ok_or_else(|| SqlError::failed("the transaction has ended"))
    }

    /// Remembers a failure.
    fn check<T>(&mut self, statement: &str, result: Result<T, sqlx::Error>) -> Result<T, SqlError> {
        result.map_err(|error| {
            self.state = match &error {
                sqlx::Error::Database(_) if self.state == TransactionState::Open => TransactionState::Failed,
                sqlx::Error::Database(_) => self.state,
                _ => TransactionState::Broken,
            };
            failed(statement, error)
        })
    }
}

impl SqlTransaction for PostgresTransaction {
    fn execute<'a>(
        &'a mut self,
        statement: &'static str,
        parameters: Vec<SqlValue>,
    ) -> BoxFuture<'a, Result<u64, SqlError>> {
        Box::pin(async move {
            if let Some(definition) = table_definition(statement) {
                self.run(definition).await?;
                return Ok(0);
            }
            let query = bind(statement, parameters)?;
            let limit = self.limit;
            let connection = self.connection()?;
            let result = within(limit, query.execute(connection)).await;
            self.check(statement, result).map(|result| result.rows_affected())
        })
    }

    fn fetch<'a>(
        &'a mut self,
        query: &'static str,
        parameters: Vec<SqlValue>,
    ) -> BoxFuture<'a, Result<Vec<SqlRow>, SqlError>> {
        Box::pin(async move {
            let bound = bind(query, parameters)?;
            let limit = self.limit;
            let connection = self.connection()?;
            let rows = within(limit, bound.fetch_all(connection)).await;
            let rows = self.check(query, rows)?;
            rows.iter().map(read).collect()
        })
    }

    fn announce(&mut self) -> BoxFuture<'_, Result<(), SqlError>> {
        Box::pin(async move {
            let parameters = vec![CHANNEL.into(), self.schema.as_str().into()];
            self.execute("SELECT pg_notify($1, $2)", parameters)
                .await
                .map(drop)
        })
    }

    fn commit<'a>(mut self: Box<Self>) -> BoxFuture<'a, Result<(), SqlError>>
    where
        Self: 'a,
    {
        Box::pin(async move {
            if self.state != TransactionState::Open {
                return Err(SqlError::failed(
                    "a statement of the transaction failed before the commit",
                ));
            }
            self.run("COMMIT").await?;
            if let Some(connection) = self.connection.take() {
                connection.give_back();
            }
            Ok(())
        })
    }
}

impl Drop for PostgresTransaction {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        match (self.state, Handle::try_current()) {
            (TransactionState::Open | TransactionState::Failed, Ok(runtime)) => {
                connection.roll_back(&runtime);
            }
            _ => connection.close(),
        }
    }
}

/// Returns the definition of a table in the words of PostgreSQL; `None` for other statements.
///
/// Texts are compared by their bytes, like in SQLite: lists have the same order whatever the locale of the database, and
/// an index stays valid if the rules of a locale change.
fn table_definition(statement: &'static str) -> Option<String> {
    let is_definition = statement.starts_with("CREATE TABLE") || statement.starts_with("ALTER TABLE");
    is_definition.then(|| {
        let words = statement.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.fold(String::with_capacity(2 * statement.len()), |mut text, word| {
            let (name, end) = match word.strip_suffix(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
                Some(name) => word.split_at(name.len()),
                None => (word, ""),
            };
            text.push_str(match name {
                "BLOB" => "BYTEA",
                "TEXT" => "TEXT COLLATE \"C\"",
                other => other,
            });
            text.push_str(end);
            text
        })
    })
}

/// Value without a type: the server infers it. A typed one would not fit the columns of other types.
struct Untyped;

impl Type<Postgres> for Untyped {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(0))
    }
}

impl Encode<'_, Postgres> for Untyped {
    fn encode_by_ref(&self, _: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        Ok(IsNull::Yes)
    }
}

fn bind(
    statement: &'static str,
    parameters: Vec<SqlValue>,
) -> Result<Query<'static, Postgres, PgArguments>, SqlError> {
    let query = sqlx::query(statement);
    parameters.into_iter().try_fold(query, |query, value| {
        Ok(match value {
            SqlValue::Null => query.bind(Untyped),
            SqlValue::Int(number) => query.bind(number),
            SqlValue::Text(text) if text.contains('\0') => {
                let statement = begin_of(statement);
                return Err(SqlError::failed(format!(
                    "`{statement}` has a text with the character U+0000, which PostgreSQL cannot store"
                )));
            }
            SqlValue::Text(text) => query.bind(text),
            SqlValue::Blob(bytes) => query.bind(bytes),
        })
    })
}

fn read(row: &PgRow) -> Result<SqlRow, SqlError> {
    let columns = row.columns().iter().map(|column| {
        let at = column.ordinal();
        let raw = row.try_get_raw(at)?;
        if raw.is_null() {
            return Ok(SqlValue::Null);
        }
        let kind = raw.type_info();
        Ok(match kind.name() {
            "INT8" => SqlValue::Int(row.try_get(at)?),
            "INT4" => SqlValue::Int(row.try_get::<i32, _>(at)?.into()),
            "BOOL" => SqlValue::Int(row.try_get::<bool, _>(at)?.into()),
            "BYTEA" => SqlValue::Blob(row.try_get(at)?),
            _ => SqlValue::Text(row.try_get(at)?),
        })
    });
    let columns: Result<_, sqlx::Error> = columns.collect();
    columns
        .map(SqlRow::new)
        .map_err(|error| SqlError::Corrupt(format!("a column cannot be read: {error}")))
}

/// Returns the first words of a statement, for messages. The text of a statement holds no values.
fn begin_of(statement: &str) -> String {
    statement.split_whitespace().take(6).collect::<Vec<_>>().join(" ")
}

pub(crate) fn failed(statement: &str, error: sqlx::Error) -> SqlError {
    if let sqlx::Error::Database(cause) = &error
        && cause.is_unique_violation()
    {
        return SqlError::Exists;
    }
    SqlError::failed(format!("`{}` failed", begin_of(statement))).with_source(error)
}
