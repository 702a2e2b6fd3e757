//! Rows of servers, as people query them.

use std::time::{Duration, UNIX_EPOCH};

use raw_json::RawJson;
use serde_json::json;
use tool_core::KeptTexts;
use tool_registry::{ServerRecord, Store};
use tool_store_sql::{Database, SqlValue};
use tool_store_sqlite::{SqlStore, SqliteDatabase, SqliteOptions, sqlite_store};

/// Returns the columns of the only server.
async fn row(store: &SqlStore<SqliteDatabase>) -> Vec<SqlValue> {
    let query = "SELECT name, transport, command, args, env, url, is_official, schema_cache, schema_cached_at, \
                 created_at, updated_at FROM mcp_servers";
    let mut transaction = store.database().read().await.expect("begun").expect("a file");
    let mut rows = transaction.fetch(query, Vec::new()).await.expect("readable");
    assert_eq!(rows.len(), 1);
    let row = &mut rows[0];
    let columns = (0..11).map(|at| match at {
        _ if row.is_null(at) => SqlValue::Null,
        6 | 8.. => row.int(at).expect("an integer").into(),
        _ => row.text(at).expect("a text").into(),
    });
    columns.collect()
}

#[tokio::test]
async fn the_row_of_a_server_has_its_settings_and_its_lists_with_their_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = sqlite_store(SqliteOptions::new(directory.path().join("toolplane.db")));
    let settings =
        json!({"command": "npx", "args": ["-y", "@supabase/mcp-server"], "env": {"TOKEN": "${TOKEN}"}});
    let at = UNIX_EPOCH + Duration::from_secs(60);
    let server = ServerRecord::new("supabase", RawJson::from(settings), at).with_official(true);
    let set = |server: ServerRecord| store.set_server("supabase", Some(server));
    set(server.clone()).await.expect("set");
    let text = |text: &str| SqlValue::from(text);
    let described = [
        text("supabase"),
        text("stdio"),
        text("npx"),
        text(r#"["-y","@supabase/mcp-server"]"#),
        text(r#"{"TOKEN":"${TOKEN}"}"#),
        SqlValue::Null,
        1.into(),
    ];
    let found = row(&store).await;
    assert_eq!(found[..7], described);
    assert_eq!(found[7..9], [SqlValue::Null, SqlValue::Null]);
    assert_eq!(found[9..], [60_000.into(), 60_000.into()]);
    let key = |server: &str| (server.to_owned(), "digest".to_owned());
    store.save(key("other"), "[]".to_owned()).await.expect("saved");
    store
        .save(key("supabase"), r#"{"tools":[]}"#.to_owned())
        .await
        .expect("saved");
    let found = row(&store).await;
    assert_eq!(found[7], text(r#"{"tools":[]}"#));
    assert!(
        matches!(found[8], SqlValue::Int(at) if at > 1_700_000_000_000),
        "{found:?}"
    );
    // The same settings once more: the lists stay. Others: they are not the server's own.
    set(server).await.expect("set");
    assert_eq!(row(&store).await[7..9], found[7..9]);
    let moved = ServerRecord::new(
        "supabase",
        RawJson::from(json!({"url": "http://127.0.0.1:9/mcp"})),
        at,
    );
    set(moved).await.expect("set");
    let found = row(&store).await;
    assert_eq!(
        (&found[1], &found[5]),
        (&text("http"), &text("http://127.0.0.1:9/mcp"))
    );
    assert_eq!(found[7..9], [SqlValue::Null, SqlValue::Null]);
    store.save(key("supabase"), "{}".to_owned()).await.expect("saved");
    assert_eq!(store.forget(Some("supabase")).await, Ok(1));
    assert_eq!(row(&store).await[7..9], [SqlValue::Null, SqlValue::Null]);
}
