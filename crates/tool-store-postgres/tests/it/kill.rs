//! Publications that are killed.

use std::sync::Arc;

use tool_registry::Store;
use tool_store_postgres::{PostgresDatabase, PostgresOptions, SqlStore, postgres_store};
use tool_store_suite::{
    kill::{KillSwitch, KillingDatabase},
    publications::{killed_publications, publish_in_role},
};

use crate::support;

/// Largest number of steps after which a writer is killed: a publication has about a dozen.
const MAX_STEPS: u64 = 60;

fn options(url: &str) -> PostgresOptions {
    PostgresOptions::new(url).expect("a URL")
}

#[test]
fn killed_publisher() {
    publish_in_role(|url: &str, switch: KillSwitch| {
        let database = PostgresDatabase::new(options(url));
        Arc::new(SqlStore::new(KillingDatabase::new(database, switch)))
    });
}

/// Promise R22.
#[test]
fn a_killed_publication_is_visible_wholly_or_not_at_all() {
    // Reports why there is none.
    if support::database().is_none() {
        return;
    }
    let open = |url: &str| Arc::new(postgres_store(options(url))) as Arc<dyn Store>;
    let place = || {
        let database = support::database().expect("a database");
        let url = database.url();
        (database, url)
    };
    killed_publications("kill::killed_publisher", MAX_STEPS, place, open);
}
