//! The tests that every store passes, on two pools of one database.

use std::sync::Arc;

use tool_core::Tokens;
use tool_registry::Store;
use tp_postgres::TestDatabase;

use crate::support::{database, open};

async fn stores() -> Option<(TestDatabase, Arc<dyn Store>, Arc<dyn Store>)> {
    let database = database()?;
    let (one, other) = (open(&database), open(&database));
    Some((database, one, other))
}

async fn tokens() -> Option<(TestDatabase, Arc<dyn Tokens>, Arc<dyn Tokens>)> {
    let database = database()?;
    let (one, other) = (open(&database), open(&database));
    Some((database, one, other))
}

tool_store_suite::store_tests!(stores);
tool_store_suite::token_tests!(tokens);
