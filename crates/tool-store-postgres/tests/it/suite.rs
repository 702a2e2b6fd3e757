//! The tests that every store passes, on two pools of one database.

use std::sync::Arc;

use tool_core::{Approvals, DailyUsage, Flows, KeptTexts, Ledger, Tokens};
use tool_registry::{Pins, Store};
use tool_store_postgres::{SqlLedger, SqlPins};
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

async fn approvals() -> Option<(TestDatabase, Arc<dyn Approvals>, Arc<dyn Approvals>)> {
    let database = database()?;
    let (one, other) = (open(&database), open(&database));
    Some((database, one, other))
}

async fn ledgers() -> Option<(TestDatabase, Arc<dyn Ledger>, Arc<dyn Ledger>)> {
    let database = database()?;
    let [one, other] = [open(&database), open(&database)].map(|store| Arc::new(SqlLedger::new(store)));
    Some((database, one, other))
}

async fn pins() -> Option<(TestDatabase, Arc<dyn Pins>, Arc<dyn Pins>)> {
    let database = database()?;
    let one = SqlPins::load(open(&database)).await.expect("readable");
    let other = SqlPins::load(open(&database)).await.expect("readable");
    Some((database, Arc::new(one), Arc::new(other)))
}

/// Pins of which the second handle reads digests only, until a definition is needed.
async fn pins_by_digest() -> Option<(TestDatabase, Arc<dyn Pins>, Arc<dyn Pins>)> {
    let database = database()?;
    let one = SqlPins::load(open(&database)).await.expect("readable");
    let other = SqlPins::load_digests(open(&database)).await.expect("readable");
    Some((database, Arc::new(one), Arc::new(other)))
}

async fn texts() -> Option<(TestDatabase, Arc<dyn KeptTexts>, Arc<dyn KeptTexts>)> {
    let database = database()?;
    let (one, other) = (open(&database), open(&database));
    Some((database, one, other))
}

async fn flows() -> Option<(TestDatabase, Arc<dyn Flows>, Arc<dyn Flows>)> {
    let database = database()?;
    let (one, other) = (open(&database), open(&database));
    Some((database, one, other))
}

async fn usage() -> Option<(TestDatabase, Arc<dyn DailyUsage>, Arc<dyn DailyUsage>)> {
    let database = database()?;
    let (one, other) = (open(&database), open(&database));
    Some((database, one, other))
}

tool_store_suite::store_tests!(stores);
tool_store_suite::token_tests!(tokens);
tool_store_suite::pin_tests!(pins);
tool_store_suite::text_tests!(texts);
tool_store_suite::flow_tests!(flows);
tool_store_suite::usage_tests!(usage);

/// Apart, since the tests have the same names.
mod of_pins_by_digest {
    tool_store_suite::pin_tests!(super::pins_by_digest);
}

/// Apart, since some tests of approvals and of the ledger have the same name.
mod of_approvals {
    tool_store_suite::approval_tests!(super::approvals);
}

mod of_ledger {
    tool_store_suite::ledger_tests!(super::ledgers);
}

#[tokio::test]
async fn the_state_of_lists_changes_with_what_they_are_made_of() {
    if let Some(database) = database() {
        let (one, other) = (open(&database), open(&database));
        tool_store_suite::list_state::the_state_of_lists_changes_with_what_they_are_made_of(one, other).await;
    }
}
