//! The tests that every store passes, on two handles to one file.

use std::{sync::Arc, time::Duration};

use tempfile::TempDir;
use tool_core::{Approvals, DailyUsage, Flows, KeptTexts, Ledger, Tokens};
use tool_registry::{Pins, Store};
use tool_store_sqlite::{SqlLedger, SqlPins, SqlStore, SqliteDatabase, SqliteOptions, sqlite_store};

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

async fn approvals() -> (TempDir, Arc<dyn Approvals>, Arc<dyn Approvals>) {
    let directory = tempfile::tempdir().expect("a directory");
    let (one, other) = (open(&directory), open(&directory));
    (directory, one, other)
}

async fn ledgers() -> (TempDir, Arc<dyn Ledger>, Arc<dyn Ledger>) {
    let directory = tempfile::tempdir().expect("a directory");
    let [one, other] = [open(&directory), open(&directory)].map(|store| Arc::new(SqlLedger::new(store)));
    (directory, one, other)
}

async fn pins() -> (TempDir, Arc<dyn Pins>, Arc<dyn Pins>) {
    let directory = tempfile::tempdir().expect("a directory");
    let one = SqlPins::load(open(&directory)).await.expect("readable");
    let other = SqlPins::load(open(&directory)).await.expect("readable");
    (directory, Arc::new(one), Arc::new(other))
}

/// Pins of which the second handle reads digests only, until a definition is needed.
async fn pins_by_digest() -> (TempDir, Arc<dyn Pins>, Arc<dyn Pins>) {
    let directory = tempfile::tempdir().expect("a directory");
    let one = SqlPins::load(open(&directory)).await.expect("readable");
    let other = SqlPins::load_digests(open(&directory)).await.expect("readable");
    (directory, Arc::new(one), Arc::new(other))
}

async fn texts() -> (TempDir, Arc<dyn KeptTexts>, Arc<dyn KeptTexts>) {
    let directory = tempfile::tempdir().expect("a directory");
    let (one, other) = (open(&directory), open(&directory));
    (directory, one, other)
}

async fn flows() -> (TempDir, Arc<dyn Flows>, Arc<dyn Flows>) {
    let directory = tempfile::tempdir().expect("a directory");
    let (one, other) = (open(&directory), open(&directory));
    (directory, one, other)
}

async fn usage() -> (TempDir, Arc<dyn DailyUsage>, Arc<dyn DailyUsage>) {
    let directory = tempfile::tempdir().expect("a directory");
    let (one, other) = (open(&directory), open(&directory));
    (directory, one, other)
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
    let directory = tempfile::tempdir().expect("a directory");
    let (one, other) = (open(&directory), open(&directory));
    assert_eq!(other.list_state().await.expect("readable"), None);
    tool_store_suite::list_state::the_state_of_lists_changes_with_what_they_are_made_of(one, other).await;
}

/// A database that took the place of another one has another state, also if as much was written into it.
#[tokio::test]
async fn two_databases_have_two_states() {
    let mut states = Vec::new();
    for _ in 0..2 {
        let directory = tempfile::tempdir().expect("a directory");
        let store = open(&directory);
        let key = ("files".to_owned(), "1".to_owned());
        KeptTexts::save(&*store, key, "a".to_owned())
            .await
            .expect("saved");
        states.push(store.list_state().await.expect("readable"));
        // The time at which the tables were made tells them apart.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_ne!(states[0], states[1]);
}
