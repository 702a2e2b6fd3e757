//! Connections and servers that end.

use std::{sync::Arc, time::Duration};

use tool_registry::{Store, StoreError};
use tool_store_postgres::{PostgresDatabase, postgres_store};
use tool_store_sql::Database;
use tp_postgres::PostgresServer;

use crate::support::{create, database, open, options, present, whole_text};

/// A store reports that its server is gone, and works again with the same handle when the server is back. A waiter
/// learns of the next change.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_recovers_when_its_server_returns() {
    let Some(mut server) = present(PostgresServer::start()) else {
        return;
    };
    let database = server.create_database().expect("created");
    let quick = || options(&database).with_connect_timeout(Duration::from_secs(2));
    let (one, other) = (postgres_store(quick()), Arc::new(postgres_store(quick())));
    let revision = create(&one, "greet").await.expect("applied");
    let mut watch = other.database().watch().await.expect("begun");
    watch.changed().await.expect("it listens");
    drop(watch);

    server.stop_immediately();
    for error in [
        one.tools().await.expect_err("no server"),
        create(&one, "other").await.expect_err("no server"),
    ] {
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
        let text = whole_text(&error);
        assert!(
            text.contains("does not accept a connection") && text.contains("127.0.0.1"),
            "{text}"
        );
        assert!(!text.contains(database.password()), "{text}");
    }
    let waiting = tokio::spawn(async move {
        loop {
            match other.changes(0).await {
                Ok(changes) if changes.revision != revision => return changes.tools.len(),
                Ok(_) => other.changed(revision).await,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    });

    server.restart().expect("started");
    assert_eq!(one.tools().await.expect("readable").len(), 1);
    create(&one, "other").await.expect("applied");
    assert_eq!(waiting.await.expect("no panic"), 2);
}

/// The connection that listens is made again after it was lost. Waiters then look for changes that they missed, and
/// hear the next ones.
#[tokio::test]
async fn a_lost_listener_comes_back_and_wakes_the_waiters() {
    let Some(guard) = database() else { return };
    let listening = PostgresDatabase::new(options(&guard));
    let mut watch = listening.watch().await.expect("begun");
    watch.changed().await.expect("it listens");
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
               WHERE datname = current_database() AND query LIKE 'LISTEN%'";
    assert_eq!(guard.sql(end).expect("works"), "1");
    watch.changed().await.expect("it listens again");
    create(&*open(&guard), "greet").await.expect("applied");
    watch.changed().await.expect("it heard of the change");
}
