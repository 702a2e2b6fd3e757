//! The tests that every store passes, on two handles to one file.

use std::{sync::Arc, time::Duration};

use tempfile::TempDir;
use tool_core::Tokens;
use tool_registry::Store;
use tool_store_sqlite::{SqlStore, SqliteDatabase, SqliteOptions, sqlite_store};

fn open(directory: &TempDir) -> Arc<SqlStore<SqliteDatabase>> {
    let options = SqliteOptions::new(directory.path().join("data/toolplane.db"));
    Arc::new(sqlite_store(options.with_poll_interval(Duration::from_millis(5))))
}

async fn stores() -> (TempDir, Arc<dyn Store>, Arc<dyn Store>) {
    let directory = tempfile::tempdir().expect("a directory");
    let (one, other) = (open(&directory), open(&directory));
    (directory, one, other)
}

async fn tokens() -> (TempDir, Arc<dyn Tokens>, Arc<dyn Tokens>) {
    let directory = tempfile::tempdir().expect("a directory");
    let (one, other) = (open(&directory), open(&directory));
    (directory, one, other)
}

tool_store_suite::store_tests!(stores);
tool_store_suite::token_tests!(tokens);
