//! Store of tools, tokens and approvals in an SQL database: tables, migrations and statements for every database.
//!
//! [`SqlStore`] implements the ports of toolplane on a [`Database`]. A database brings connections and transactions; the
//! crates `tool-store-sqlite` and `tool-store-postgres` have one each. All statements are written once, in the SQL that
//! both understand: parameters are `$1`, `$2`; integers are 64 bits; times are milliseconds since 1970 in UTC.

mod approvals;
mod codec;
mod daily_usage;
mod database;
mod flows;
mod kept;
mod lease;
mod ledger;
mod migrations;
mod rows;
mod store;
mod tokens;

pub use self::{
    database::{ChangeWatch, Database, SqlDialect, SqlError, SqlRow, SqlTransaction, SqlValue},
    kept::{SqlPins, SqlUsage},
    ledger::SqlLedger,
    migrations::{SCHEMA_VERSION, is_migrated, migrate, migrate_to},
    store::SqlStore,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
