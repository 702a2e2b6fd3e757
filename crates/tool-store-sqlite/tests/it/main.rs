//! Tests of the SQLite store.

mod durable;
mod file;
mod kill;
mod servers;
mod suite;
