//! Publications that are killed.

use std::sync::Arc;

use tool_registry::Store;
use tool_store_sqlite::{SqlStore, SqliteDatabase, SqliteOptions, sqlite_store};
use tool_store_suite::{
    kill::{KillSwitch, KillingDatabase},
    publications::{killed_publications, publish_in_role},
};

/// Largest number of steps after which a writer is killed: a publication has about a dozen.
const MAX_STEPS: u64 = 60;

#[test]
fn killed_publisher() {
    publish_in_role(|path: &str, switch: KillSwitch| {
        let database = SqliteDatabase::new(SqliteOptions::new(path));
        Arc::new(SqlStore::new(KillingDatabase::new(database, switch)))
    });
}

/// Promise R22.
#[test]
fn a_killed_publication_is_visible_wholly_or_not_at_all() {
    let open = |path: &str| Arc::new(sqlite_store(SqliteOptions::new(path))) as Arc<dyn Store>;
    let place = || {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("store").to_str().expect("UTF-8").to_owned();
        (directory, path)
    };
    killed_publications("kill::killed_publisher", MAX_STEPS, place, open);
}
