//! PostgreSQL servers for tests: on loopback, in a temporary folder, with the programs that the machine has.
//!
//! No existing cluster is touched. `cargo xtask test` starts one server for all tests and names it in
//! [`SERVER_VARIABLE`]; without that, each test process starts its own. Each test uses a database of its own. A server
//! ends with the process that started it, however that ends. The crate has no dependencies: `cargo xtask` uses it too.
//!
//! # Examples
//!
//! ```no_run
//! use tp_postgres::PostgresServer;
//!
//! let database = PostgresServer::shared().and_then(PostgresServer::create_database).unwrap();
//! assert!(database.url().starts_with("postgres://"));
//! ```

mod cluster;
mod programs;
mod server;

pub use self::programs::is_installed;
pub use self::server::{PostgresServer, ServerUnavailable, TestDatabase};

/// Environment variable that names a running server for the tests.
pub const SERVER_VARIABLE: &str = "TOOLPLANE_POSTGRES";
