//! State of the tables, and their creation.

use tool_store_sql::{SCHEMA_VERSION, SqlError, SqlTransaction, migrate};

use crate::{
    PostgresOptions,
    loan::Loan,
    transaction::{PostgresTransaction, READ, WRITE},
};

/// Key of the lock that gateways hold while they change the tables: `toolplan` in ASCII.
const MIGRATION_LOCK: i64 = 0x746f_6f6c_706c_616e;
/// Time for one statement of a migration, which may have to rewrite a table.
const MIGRATION_LIMIT: std::time::Duration = std::time::Duration::from_mins(10);

/// State of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tables {
    /// There are none.
    Missing,
    /// They were made by an older program.
    Older,
    /// They have the version of this program.
    Current,
}

/// Finds out the state of the tables, and returns it with the connection. Needs no right to create or change anything.
pub(crate) async fn state_of(
    connection: Loan,
    options: &PostgresOptions,
) -> Result<(Tables, Loan), SqlError> {
    let (schema, limit) = (
        options.schema(),
        options.statement_timeout + options.connect_timeout,
    );
    let mut transaction = PostgresTransaction::begin(connection, READ, schema, limit).await?;
    let query =
        "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'schema_migrations'";
    if transaction.fetch(query, vec![schema.into()]).await?.is_empty() {
        return Ok((Tables::Missing, transaction.end().await?));
    }
    let query = "SELECT COALESCE(MAX(version), 0) FROM schema_migrations";
    let mut rows = transaction.fetch(query, Vec::new()).await?;
    let found = rows.first_mut().map_or(Ok(0), |row| row.int(0))?;
    let state = match found {
        SCHEMA_VERSION => Tables::Current,
        ..SCHEMA_VERSION => Tables::Older,
        _ => {
            return Err(SqlError::Newer {
                found,
                known: SCHEMA_VERSION,
            });
        }
    };
    Ok((state, transaction.end().await?))
}

/// Creates the schema and its tables, or brings older ones to the present version.
///
/// Gateways that start at once wait for each other here: the lock ends with the transaction, however that ends.
pub(crate) async fn create(connection: Loan, options: &PostgresOptions) -> Result<(), SqlError> {
    let schema = options.schema();
    let mut transaction = PostgresTransaction::begin(connection, WRITE, schema, MIGRATION_LIMIT).await?;
    transaction
        .run(format!(
            "SET LOCAL statement_timeout TO {}",
            MIGRATION_LIMIT.as_millis()
        ))
        .await?;
    transaction
        .execute("SELECT pg_advisory_xact_lock($1)", vec![MIGRATION_LOCK.into()])
        .await?;
    // `CREATE SCHEMA IF NOT EXISTS` would need the right to create one also where it exists.
    let query = "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1";
    if transaction.fetch(query, vec![schema.into()]).await?.is_empty() {
        transaction.run(format!("CREATE SCHEMA \"{schema}\"")).await?;
    }
    if options.migrates {
        migrate(&mut transaction).await?;
    }
    Box::new(transaction).commit().await
}
