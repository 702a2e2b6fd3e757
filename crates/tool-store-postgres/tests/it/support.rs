//! Databases of the tests.

use std::sync::Arc;

use tool_registry::{Store, StoreError, StoreOperation};
use tool_store_postgres::{PostgresDatabase, PostgresOptions, SqlStore, postgres_store};
use tool_testkit::skip;
use tp_postgres::{PostgresServer, ServerUnavailable, TestDatabase};

/// Creates a database on the shared server; `None`, and a report, if there is none.
pub(crate) fn database() -> Option<TestDatabase> {
    present(PostgresServer::shared().and_then(PostgresServer::create_database))
}

/// Reports why there is no server.
pub(crate) fn present<T>(started: Result<T, ServerUnavailable>) -> Option<T> {
    started.map_err(|error| skip(error.to_string())).ok()
}

pub(crate) fn options(database: &TestDatabase) -> PostgresOptions {
    PostgresOptions::new(&database.url()).expect("a URL")
}

pub(crate) fn open(database: &TestDatabase) -> Arc<SqlStore<PostgresDatabase>> {
    Arc::new(postgres_store(options(database)))
}

/// Creates a tool without versions.
pub(crate) async fn create(store: &dyn Store, tool: &str) -> Result<u64, StoreError> {
    let create = StoreOperation::Create { owner: "ada".into() };
    store.apply(tool, 0, vec![create]).await
}

/// Returns all that an error tells, with its causes.
pub(crate) fn whole_text(error: &dyn std::error::Error) -> String {
    let mut text = format!("{error:?} {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(" {error:?} {error}");
        cause = error.source();
    }
    text
}
