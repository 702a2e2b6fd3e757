//! Tests of the SQLite store.

mod durable;
mod file;
mod kill;
mod suite;
