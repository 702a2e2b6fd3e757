//! The schema and its tables.

use tool_core::Tokens;
use tool_registry::{Store, StoreError, ToolAlias};
use tool_store_postgres::{PostgresDatabase, postgres_store};
use tool_store_sql::{Database, SCHEMA_VERSION, migrate_to};
use tp_postgres::TestDatabase;

use crate::support::{create, database, open, options};

/// Makes the tables of an earlier version in a schema.
async fn make_tables(database: &TestDatabase, schema: &str, version: i64) {
    let mut options = options(database).with_schema(schema).expect("plain");
    options.migrates = false;
    let database = PostgresDatabase::new(options);
    let mut transaction = database.write().await.expect("begun");
    migrate_to(&mut *transaction, version)
        .await
        .expect("earlier tables");
    transaction.commit().await.expect("committed");
}

/// Returns the columns and indexes of a schema as text.
fn layout(database: &TestDatabase, schema: &str) -> String {
    let columns = format!(
        "SELECT table_name, column_name, ordinal_position, data_type, collation_name, is_nullable, column_default \
         FROM information_schema.columns WHERE table_schema = '{schema}' ORDER BY 1, 3"
    );
    let indexes = format!("SELECT indexdef FROM pg_indexes WHERE schemaname = '{schema}' ORDER BY indexname");
    let rows = [columns, indexes].map(|query| database.sql(&query).expect("works"));
    rows.join("\n").replace(&format!("{schema}."), "")
}

#[tokio::test]
async fn reading_creates_nothing_and_a_change_creates_the_schema() {
    let Some(database) = database() else { return };
    let store = open(&database);
    assert!(store.tools().await.expect("readable").is_empty());
    assert_eq!(store.changes(0).await.expect("readable").revision, 0);
    assert_eq!(store.find("a").await, Ok(None));
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'toolplane'";
    assert_eq!(database.sql(schemas).expect("works"), "0");
    create(&*store, "greet").await.expect("applied");
    assert_eq!(database.sql(schemas).expect("works"), "1");
    let elsewhere = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(database.sql(elsewhere).expect("works"), "0");
    assert_eq!(open(&database).tools().await.expect("readable").len(), 1);
}

#[tokio::test]
async fn stores_in_two_schemas_of_one_database_are_apart() {
    let Some(database) = database() else { return };
    let in_schema = |name: &str| postgres_store(options(&database).with_schema(name).expect("plain"));
    let (one, other) = (in_schema("one"), in_schema("other"));
    create(&one, "greet").await.expect("applied");
    assert!(other.tools().await.expect("readable").is_empty());
    create(&other, "greet").await.expect("applied");
}

/// Every earlier version of the tables is brought to the present one by a reader, and all have the same layout.
#[tokio::test]
async fn tables_of_every_earlier_version_become_the_present_ones() {
    let Some(database) = database() else { return };
    let mut layouts = Vec::new();
    for version in 0..=SCHEMA_VERSION {
        let schema = format!("v{version}");
        make_tables(&database, &schema, version).await;
        let store = postgres_store(options(&database).with_schema(&schema).expect("plain"));
        assert!(store.tools().await.expect("readable").is_empty());
        create(&store, "greet").await.expect("applied");
        layouts.push(layout(&database, &schema));
    }
    assert!(layouts[0].contains("tool_versions|manifest|"), "{}", layouts[0]);
    assert!(layouts.windows(2).all(|pair| pair[0] == pair[1]), "{layouts:#?}");
}

#[tokio::test]
async fn tables_of_a_newer_program_are_refused_with_both_versions() {
    let Some(database) = database() else { return };
    create(&*open(&database), "greet").await.expect("applied");
    database
        .sql("INSERT INTO toolplane.schema_migrations VALUES (999, 0)")
        .expect("works");
    let store = open(&database);
    for error in [
        store.tools().await.expect_err("newer"),
        create(&*store, "other").await.expect_err("newer"),
    ] {
        assert!(
            matches!(error, StoreError::Newer { found: 999, known } if known == SCHEMA_VERSION),
            "{error}"
        );
    }
}

/// Gateways that start at once on an empty database, and on old tables, make each step once.
#[tokio::test(flavor = "multi_thread")]
async fn gateways_that_start_at_once_make_the_tables_once() {
    let Some(database) = database() else { return };
    make_tables(&database, "old", 0).await;
    for schema in ["toolplane", "old"] {
        let starts: Vec<_> = (0..6)
            .map(|number| {
                let store = postgres_store(options(&database).with_schema(schema).expect("plain"));
                tokio::spawn(async move { create(&store, &format!("tool-{number}")).await })
            })
            .collect();
        for start in starts {
            start.await.expect("no panic").expect("applied");
        }
        let steps = format!("SELECT count(*), max(version) FROM {schema}.schema_migrations");
        let expected = format!("{SCHEMA_VERSION}|{SCHEMA_VERSION}");
        assert_eq!(database.sql(&steps).expect("works"), expected);
        let store = postgres_store(options(&database).with_schema(schema).expect("plain"));
        assert_eq!(store.tools().await.expect("readable").len(), 6);
    }
}

#[tokio::test]
async fn a_role_that_may_only_read_reads_and_is_refused_changes() {
    let Some(database) = database() else { return };
    create(&*open(&database), "greet").await.expect("applied");
    let url = database.url();
    let role = format!("reader_{}", url.rsplit_once('/').expect("a path").1);
    let grants = format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'open-sesame'; GRANT USAGE ON SCHEMA toolplane TO {role}; \
         GRANT SELECT ON ALL TABLES IN SCHEMA toolplane TO {role}"
    );
    database.sql(&grants).expect("works");
    let options =
        tool_store_postgres::PostgresOptions::new(&database.url_of(&role, "open-sesame")).expect("a URL");
    let reader = postgres_store(options);
    assert_eq!(reader.tools().await.expect("readable").len(), 1);
    let refused = create(&reader, "other").await.expect_err("no right");
    assert!(matches!(refused, StoreError::Unavailable { .. }), "{refused}");
    database
        .sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))
        .expect("works");
}

/// The server of the tests sorts `a` before `B`, as most do.
#[tokio::test]
async fn names_have_the_order_of_their_bytes_whatever_the_locale_is() {
    let Some(database) = database() else { return };
    let store = open(&database);
    let mut expected = ["a.b", "B", "a-b", "a_c", "é", "ab"];
    for name in expected {
        store
            .set_alias(name, Some(ToolAlias::new(name, "greet", "^1")))
            .await
            .expect("applied");
    }
    expected.sort_unstable();
    let aliases = store.aliases().await.expect("readable");
    let names: Vec<&str> = aliases.iter().map(|alias| &*alias.name).collect();
    assert_eq!(names, expected);
    let others = "SELECT count(*) FROM information_schema.columns WHERE table_schema = 'toolplane' \
                  AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'";
    assert_eq!(database.sql(others).expect("works"), "0");
}
