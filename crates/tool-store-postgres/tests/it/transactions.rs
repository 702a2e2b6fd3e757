//! Transactions and their connections.

use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use tool_core::{TokenRecord, Tokens};
use tool_registry::Store;
use tool_store_postgres::{PostgresDatabase, PostgresOptions, SqlError, postgres_store};
use tool_store_sql::{Database, SqlTransaction, SqlValue};

use crate::support::{create, database, open, options, whole_text};

const ADD: &str = "INSERT INTO store_meta (name, number) VALUES ($1, $2)";
const RAISE: &str = "UPDATE store_meta SET number = number + 1 WHERE name = 'revision'";
const COUNT: &str = "SELECT COUNT(*) FROM store_meta WHERE name = $1";

async fn count(transaction: &mut dyn SqlTransaction, name: &str) -> i64 {
    let mut rows = transaction.fetch(COUNT, vec![name.into()]).await.expect("works");
    rows[0].int(0).expect("a number")
}

#[tokio::test]
async fn a_commit_after_a_failed_statement_is_an_error_and_changes_nothing() {
    let Some(guard) = database() else { return };
    let database = PostgresDatabase::new(options(&guard));
    let mut transaction = database.write().await.expect("begun");
    transaction
        .execute(ADD, vec!["x".into(), 1.into()])
        .await
        .expect("added");
    let twice = transaction.execute(ADD, vec!["x".into(), 1.into()]).await;
    assert!(matches!(twice, Err(SqlError::Exists)), "{twice:?}");
    transaction.commit().await.expect_err("the statement failed");
    let mut transaction = database.read().await.expect("begun").expect("there");
    assert_eq!(count(&mut *transaction, "x").await, 0);
}

/// With one connection, each of these would wait for ever for the one before it.
#[tokio::test]
async fn a_dropped_transaction_is_rolled_back_and_frees_its_connection() {
    let Some(guard) = database() else { return };
    let database = PostgresDatabase::new(options(&guard).with_max_connections(1));
    for _ in 0..3 {
        let mut transaction = database.write().await.expect("begun");
        assert_eq!(count(&mut *transaction, "x").await, 0);
        transaction
            .execute(ADD, vec!["x".into(), 1.into()])
            .await
            .expect("added");
        drop(transaction);
        let mut transaction = database.read().await.expect("begun").expect("there");
        assert_eq!(count(&mut *transaction, "x").await, 0);
    }
}

#[tokio::test]
async fn a_reader_sees_the_state_of_one_moment_and_writes_nothing() {
    let Some(guard) = database() else { return };
    let store = open(&guard);
    create(&*store, "greet").await.expect("applied");
    let mut reading = store.database().read().await.expect("begun").expect("there");
    let tools = "SELECT name FROM tools";
    assert_eq!(reading.fetch(tools, Vec::new()).await.expect("works").len(), 1);
    create(&*store, "other").await.expect("applied");
    assert_eq!(reading.fetch(tools, Vec::new()).await.expect("works").len(), 1);
    reading
        .execute(RAISE, Vec::new())
        .await
        .expect_err("it only reads");
}

/// A statement is prepared once for each connection, by its first parameters.
#[tokio::test]
async fn a_parameter_may_be_empty_first_and_a_value_later() {
    let Some(guard) = database() else { return };
    let store = postgres_store(options(&guard).with_max_connections(1));
    let empty = TokenRecord::new("a", [7; 32], "ada", UNIX_EPOCH);
    let mut full = TokenRecord::new("b", [7; 32], "ada", UNIX_EPOCH + Duration::from_secs(1));
    full.tenant = Some("acme".into());
    full.label = Some("laptop".to_owned());
    full.expires_at = Some(UNIX_EPOCH + Duration::from_secs(2));
    let last = TokenRecord::new("c", [7; 32], "ada", UNIX_EPOCH + Duration::from_secs(3));
    for token in [&empty, &full, &last] {
        store.insert(token.clone()).await.expect("stored");
    }
    assert_eq!(store.list().await, Ok(vec![empty, full, last]));
}

#[tokio::test]
async fn values_of_each_kind_come_back() {
    let Some(guard) = database() else { return };
    let database = PostgresDatabase::new(options(&guard));
    let mut transaction = database.write().await.expect("begun");
    let statement = "INSERT INTO store_meta (name, number, content) VALUES ($1, $2, $3)";
    let bytes: Vec<u8> = (0..=255).collect();
    let values = vec![SqlValue::from("é\n"), i64::MIN.into(), bytes.clone().into()];
    transaction.execute(statement, values).await.expect("added");
    let empty = vec![SqlValue::from(""), SqlValue::Null, SqlValue::Null];
    transaction.execute(statement, empty).await.expect("added");
    let query =
        "SELECT name, number, content, number < 0, 7 FROM store_meta WHERE name IN ($1, $2) ORDER BY name";
    let mut rows = transaction
        .fetch(query, vec!["é\n".into(), "".into()])
        .await
        .expect("works");
    assert_eq!(rows[0].text(0).expect("a text"), "");
    assert!(rows[0].is_null(1) && rows[0].is_null(2) && rows[0].is_null(3));
    assert_eq!(rows[1].text(0).expect("a text"), "é\n");
    assert_eq!(rows[1].int(1).expect("a number"), i64::MIN);
    assert_eq!(rows[1].blob(2).expect("bytes"), bytes);
    assert_eq!(
        (
            rows[1].int(3).expect("a number"),
            rows[1].int(4).expect("a number")
        ),
        (1, 7)
    );
}

#[tokio::test]
async fn the_character_nul_is_refused_with_a_reason() {
    let Some(guard) = database() else { return };
    let store = open(&guard);
    store
        .insert(TokenRecord::new("a", [7; 32], "ada", UNIX_EPOCH))
        .await
        .expect("stored");
    let error = store.find("a\0").await.expect_err("no text of PostgreSQL");
    assert!(error.to_string().contains("U+0000"), "{error}");
    assert!(store.find("a").await.expect("works").is_some());
}

#[tokio::test]
async fn connections_that_are_all_in_use_are_the_reason_of_the_error() {
    let Some(guard) = database() else { return };
    create(&*open(&guard), "greet").await.expect("applied");
    let options = options(&guard).with_max_connections(1);
    let store = postgres_store(options.with_connect_timeout(Duration::from_millis(300)));
    let reading = store.database().read().await.expect("begun");
    let error = store.tools().await.expect_err("none is free");
    assert!(
        error.to_string().contains("none of the 1 connections was free"),
        "{error}"
    );
    drop(reading);
}

/// The server starts a process for each connection, which takes longer than most reads.
#[tokio::test(flavor = "multi_thread")]
async fn transactions_one_after_the_other_use_one_connection() {
    let Some(guard) = database() else { return };
    let store = open(&guard);
    create(&*store, "greet").await.expect("applied");
    for _ in 0..20 {
        assert_eq!(store.tools().await.expect("readable").len(), 1);
        assert!(store.servers().await.expect("readable").is_empty());
    }
    let query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    assert_eq!(guard.sql(query).expect("works").trim(), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_wait_for_the_only_connection() {
    let Some(guard) = database() else { return };
    let store = Arc::new(postgres_store(options(&guard).with_max_connections(1)));
    create(&*store, "greet").await.expect("applied");
    let reads = (0..50).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { store.tools().await.map(|tools| tools.len()) })
    });
    for read in reads.collect::<Vec<_>>() {
        assert_eq!(read.await.expect("it ends").expect("readable"), 1);
    }
}

/// A gateway that stops in the middle of a change, for example because its machine sleeps, does not stop the others.
#[tokio::test]
async fn a_transaction_that_stands_idle_is_ended_for_the_others() {
    let Some(guard) = database() else { return };
    let store = open(&guard);
    create(&*store, "greet").await.expect("applied");
    let idle = PostgresDatabase::new(options(&guard).with_statement_timeout(Duration::from_millis(200)));
    let mut transaction = idle.write().await.expect("begun");
    transaction.execute(RAISE, Vec::new()).await.expect("raised");
    create(&*store, "other")
        .await
        .expect("applied once the other one is ended");
    transaction.commit().await.expect_err("ended by the server");
}

#[tokio::test]
async fn a_statement_that_waits_too_long_is_ended_by_the_server() {
    let Some(guard) = database() else { return };
    let store = open(&guard);
    create(&*store, "greet").await.expect("applied");
    let mut holds = store.database().write().await.expect("begun");
    holds.execute(RAISE, Vec::new()).await.expect("raised");
    let impatient = postgres_store(options(&guard).with_statement_timeout(Duration::from_millis(100)));
    let error = create(&impatient, "other").await.expect_err("the row is locked");
    assert!(whole_text(&error).contains("statement timeout"), "{error:?}");
    holds.commit().await.expect("committed");
    create(&impatient, "other").await.expect("applied");
}

#[tokio::test]
async fn a_wrong_password_is_an_error_without_the_password() {
    let Some(guard) = database() else { return };
    let url = guard.url_of("toolplane", "open-sesame");
    let error = postgres_store(PostgresOptions::new(&url).expect("a URL"))
        .tools()
        .await
        .expect_err("refused");
    let text = whole_text(&error);
    assert!(text.contains("password authentication failed"), "{text}");
    assert!(!text.contains("open-sesame"), "{text}");
}
