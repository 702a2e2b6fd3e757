//! Store of tools, tokens and approvals in a PostgreSQL database, which several gateways share.
//!
//! [`postgres_store`] makes a store on a database, in a schema that the first change creates. The statements are those of
//! [`tool_store_sql`]; this crate brings the connections: a pool for statements, and one connection that listens for the
//! changes of all gateways (`LISTEN`), which each change announces in its own transaction (`NOTIFY`).

mod connections;
mod database;
mod listener;
mod loan;
mod options;
mod tables;
mod transaction;

pub use tool_store_sql::{Database, SqlError, SqlLedger, SqlPins, SqlStore, SqlUsage};

pub use self::{
    database::PostgresDatabase,
    options::{InvalidPostgresOption, PostgresOptions},
};

/// Makes a store on a PostgreSQL database. Connects to nothing yet: the first use does.
#[must_use]
pub fn postgres_store(options: PostgresOptions) -> SqlStore<PostgresDatabase> {
    SqlStore::new(PostgresDatabase::new(options))
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
