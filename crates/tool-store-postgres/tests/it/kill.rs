//! Publications that are killed.

use std::{cell::Cell, sync::Arc};

use tool_registry::Store;
use tool_store_postgres::{PostgresDatabase, PostgresOptions, SqlStore, postgres_store};
use tool_store_suite::{
    kill::{KillSwitch, KillingDatabase},
    publications::{killed_publications, publish_in_role},
};

use crate::support;

/// Largest number of steps after which a writer is killed: a publication has about a dozen.
const MAX_STEPS: u64 = 60;

/// Returns the options of a place: a URL and a schema.
fn options(place: &str) -> PostgresOptions {
    let (url, schema) = place.split_once(' ').expect("two words");
    let options = PostgresOptions::new(url).expect("a URL");
    options.with_schema(schema).expect("plain")
}

#[test]
fn killed_publisher() {
    publish_in_role(|place: &str, switch: KillSwitch| {
        let database = PostgresDatabase::new(options(place));
        Arc::new(SqlStore::new(KillingDatabase::new(database, switch)))
    });
}

/// Promise R22.
#[test]
fn a_killed_publication_is_visible_wholly_or_not_at_all() {
    let Some(database) = support::database() else {
        return;
    };
    let open = |place: &str| Arc::new(postgres_store(options(place))) as Arc<dyn Store>;
    let n_places = Cell::new(0_u32);
    let place = || {
        n_places.set(n_places.get() + 1);
        ((), format!("{} point_{}", database.url(), n_places.get()))
    };
    killed_publications("kill::killed_publisher", MAX_STEPS, place, open);
}
