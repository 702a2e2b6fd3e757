//! Tests of the PostgreSQL store, on a real server. Without the programs of PostgreSQL they are skipped.

mod failover;
mod kill;
mod options;
mod processes;
mod schema;
mod suite;
mod support;
#[cfg(feature = "tls")]
mod tls;
mod transactions;
