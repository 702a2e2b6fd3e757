//! Store of tools, tokens and approvals in an SQLite database.
//!
//! [`sqlite_store`] makes a store on a file, which the first change creates. The statements are those of
//! [`tool_store_sql`]; this crate brings the connections: one that writes, a few that read beside it, and one that
//! watches for changes of other processes by `PRAGMA data_version`.

mod connections;
mod database;
mod options;

pub use tool_store_sql::{Database, SqlError, SqlLedger, SqlPins, SqlStore, SqlUsage};

pub use self::{database::SqliteDatabase, options::SqliteOptions};

/// Makes a store on an SQLite file. Opens nothing yet: the first use does.
#[must_use]
pub fn sqlite_store(options: SqliteOptions) -> SqlStore<SqliteDatabase> {
    SqlStore::new(SqliteDatabase::new(options))
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
