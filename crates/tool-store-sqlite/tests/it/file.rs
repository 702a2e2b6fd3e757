//! The file of the database.

use std::{os::unix::fs::PermissionsExt, sync::Arc, time::Duration};

use raw_json::RawJson;
use tool_core::{Feature, Tokens};
use tool_registry::{Pins, Store, StoreError, StoreOperation};
use tool_store_sql::{Database, SCHEMA_VERSION, migrate, migrate_to};
use tool_store_sqlite::{SqlPins, SqliteDatabase, SqliteOptions, sqlite_store};

#[tokio::test]
async fn reading_creates_nothing_and_a_change_creates_a_private_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("deep/er/toolplane.db");
    let store = sqlite_store(SqliteOptions::new(&path));
    assert!(store.tools().await.expect("readable").is_empty());
    assert!(!directory.path().join("deep").exists());
    let create = StoreOperation::Create { owner: "ada".into() };
    store.apply("greet", 0, vec![create]).await.expect("applied");
    let mode = |path: &std::path::Path| path.metadata().expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().expect("a directory")), 0o700);
    let again = sqlite_store(SqliteOptions::new(&path));
    assert_eq!(again.tools().await.expect("readable").len(), 1);
}

#[tokio::test]
async fn tables_of_a_newer_program_are_refused_with_both_versions() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = SqliteOptions::new(directory.path().join("toolplane.db"));
    let database = SqliteDatabase::new(options.clone());
    let mut transaction = database.write().await.expect("begun");
    let newer = "INSERT INTO schema_migrations (version, applied_at) VALUES (999, 0)";
    transaction.execute(newer, Vec::new()).await.expect("inserted");
    transaction.commit().await.expect("committed");
    let error = sqlite_store(options).tools().await.expect_err("newer");
    assert!(matches!(error, StoreError::Newer { found: 999, known } if known == SCHEMA_VERSION));
}

#[tokio::test]
async fn a_file_that_others_may_write_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("toolplane.db");
    let create = StoreOperation::Create { owner: "ada".into() };
    let store = sqlite_store(SqliteOptions::new(&path));
    store.apply("greet", 0, vec![create]).await.expect("applied");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o660)).expect("changed");
    let error = sqlite_store(SqliteOptions::new(&path))
        .tools()
        .await
        .expect_err("others may write it");
    assert!(error.to_string().contains("`chmod 600`"), "{error}");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_an_error_that_names_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("toolplane.db");
    std::fs::write(
        &path,
        "this is a text and no database, and it is long enough for a header of SQLite",
    )
    .expect("written");
    let error = sqlite_store(SqliteOptions::new(&path))
        .tools()
        .await
        .expect_err("no database");
    assert!(error.to_string().contains("toolplane.db"), "{error}");
}

/// Rows that the first version of the program wrote.
const ROWS_OF_THE_FIRST_VERSION: [&str; 7] = [
    "UPDATE store_meta SET number = 7 WHERE name = 'revision'",
    "INSERT INTO tools (name, owner, latest, revision, created_at) VALUES ('greet', 'ada', '1.0.0', 7, 0)",
    "INSERT INTO tool_versions (tool, version, digest, state, manifest, created_at, created_by) VALUES ('greet', '1.0.0', \
     '00000000000000000000000000000000000000000000000000000000000000ff', 'published', '{\"n\": 1e2}', 0, 'ada')",
    "INSERT INTO tool_files (tool, version, path, content) VALUES ('greet', '1.0.0', 'main.py', x'78')",
    "INSERT INTO latest_history (tool, position, version, at, by_principal) VALUES ('greet', 1, '1.0.0', 0, 'ada')",
    "INSERT INTO mcp_servers (name, transport, settings, is_official, created_at, updated_at) \
     VALUES ('github', 'stdio', '{}', 1, 0, 0)",
    "INSERT INTO tokens (id, secret_digest, principal, roles, created_at) VALUES ('a', \
     '00000000000000000000000000000000000000000000000000000000000000ff', 'ada', '[\"reader\"]', 0)",
];

/// Pin as it was stored before there were digests of the texts. Its digest is that of another spelling.
const PIN_OF_THE_SECOND_VERSION: &str = "INSERT INTO pins (source, feature, name, digest, definition, is_exact) VALUES \
                                         ('files', 'tool', 'read', $1, '{\"b\": 1, \"a\": 2}', 1)";

/// Every earlier version of the tables is brought to the present one, and both have the same tables.
#[tokio::test]
async fn tables_of_every_earlier_version_become_the_present_ones() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut layouts = Vec::new();
    for version in 0..=SCHEMA_VERSION {
        let path = directory.path().join(format!("{version}.db"));
        let mut options = SqliteOptions::new(&path);
        options.migrates = false;
        let database = SqliteDatabase::new(options);
        let mut transaction = database.write().await.expect("begun");
        migrate_to(&mut *transaction, version)
            .await
            .expect("earlier tables");
        if version > 0 {
            for row in ROWS_OF_THE_FIRST_VERSION {
                transaction.execute(row, Vec::new()).await.expect("inserted");
            }
        }
        let pinned = RawJson::parse(r#"{"a":2,"b":1}"#).expect("JSON");
        if (2..6).contains(&version) {
            let digest = raw_json::hex(&raw_json::digest(&pinned));
            let inserted = transaction.execute(PIN_OF_THE_SECOND_VERSION, vec![digest.as_str().into()]);
            inserted.await.expect("inserted");
        }
        transaction.commit().await.expect("committed");
        let mut transaction = database.write().await.expect("begun");
        migrate(&mut *transaction).await.expect("present tables");
        let query = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name";
        layouts.push(transaction.fetch(query, Vec::new()).await.expect("readable"));
        transaction.commit().await.expect("committed");
        let store = sqlite_store(SqliteOptions::new(&path));
        let pins = SqlPins::load_digests(Arc::new(sqlite_store(SqliteOptions::new(&path)))).await;
        let pins = pins.expect("readable").snapshot();
        let is_pinned = pins
            .get("files", Feature::Tool, "read")
            .map(|pin| pin.matches(&pinned, None));
        assert_eq!(is_pinned, (2..6).contains(&version).then_some(true));
        let tools = store.tools().await.expect("readable");
        assert_eq!(tools.len(), usize::from(version > 0));
        if let [tool] = tools.as_slice() {
            let found = store.version("greet", &tool.versions[0].version).await;
            let found = found.expect("readable").expect("content");
            assert_eq!(found.manifest.as_str(), r#"{"n": 1e2}"#);
            assert_eq!(&*found.files["main.py"].content, b"x");
            assert_eq!(tool.history.len(), 1);
            assert!(store.servers().await.expect("readable")[0].is_official);
            assert_eq!(
                store.list().await.expect("readable")[0].roles,
                ["reader".into()] as [Arc<str>; 1]
            );
            assert_eq!(store.changes(6).await.expect("readable").tools.len(), 1);
        }
    }
    assert!(layouts.windows(2).all(|pair| pair[0] == pair[1]), "{layouts:?}");
}

/// A gateway that only reads waits for nobody who writes, and opens no connection that writes.
#[tokio::test]
async fn who_reads_waits_for_no_writer() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("tools.db");
    let writer = sqlite_store(SqliteOptions::new(&path));
    let writing = writer.database().write().await.expect("it is created");
    let options = SqliteOptions::new(&path).with_busy_timeout(Duration::ZERO);
    let reader = sqlite_store(options.clone());
    assert_eq!(reader.revision().await.expect("readable"), 0);
    let other = sqlite_store(options);
    other
        .database()
        .write()
        .await
        .map(drop)
        .expect_err("one at a time writes");
    drop(writing);
}
