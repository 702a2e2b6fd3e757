//! The tests that every store passes, on the store in memory.

use std::sync::Arc;

use tool_registry::{MemoryStore, Store};

async fn stores() -> ((), Arc<dyn Store>, Arc<dyn Store>) {
    let store = Arc::new(MemoryStore::new());
    ((), store.clone(), store)
}

tool_store_suite::store_tests!(stores);
