//! Tests of the SQLite store.

mod file;
mod suite;
