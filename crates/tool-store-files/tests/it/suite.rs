//! The tests that every store passes, on two handles to one directory.

use std::sync::Arc;

use tempfile::TempDir;
use tool_registry::Store;

use crate::support::open;

async fn stores() -> (TempDir, Arc<dyn Store>, Arc<dyn Store>) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("data/tools");
    let (one, other) = (Arc::new(open(&path)), Arc::new(open(&path)));
    (directory, one, other)
}

tool_store_suite::store_tests!(stores);
