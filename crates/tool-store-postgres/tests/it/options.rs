//! Options, and what messages tell of them. No test needs a server.

use tool_registry::Store;
use tool_store_postgres::{PostgresOptions, postgres_store};

const URL: &str = "postgres://ada:hunter2@db.example:6000/tools?sslmode=require&application_name=test";

#[test]
fn the_name_and_debug_show_host_and_database_without_credentials() {
    let options = PostgresOptions::new(URL).expect("a URL");
    let store = postgres_store(options.clone());
    assert_eq!(Store::name(&store), "postgres db.example:6000/tools");
    for text in [format!("{options:?}"), format!("{store:?}")] {
        assert!(text.contains("db.example:6000/tools"), "{text}");
        assert!(!text.contains("hunter2") && !text.contains("ada"), "{text}");
    }
    let socket =
        PostgresOptions::new("postgres://ada@localhost/tools?host=/run/pg&password=hunter2").expect("a URL");
    assert_eq!(Store::name(&postgres_store(socket)), "postgres /run/pg/tools");
}

#[test]
fn an_unusable_url_is_refused_without_its_content() {
    for (url, expected) in [
        ("db.example/hunter2", "expected `postgres://"),
        (
            "mysql://ada:hunter2@db.example/tools",
            "not one of a PostgreSQL database",
        ),
        (
            "postgres://db.example/tools?passwrd=hunter2",
            "unknown parameter `passwrd`",
        ),
        ("postgres://ada:hunter2@db.example:port/tools", "invalid"),
        ("postgres://ada:hunter2@db.example/tools?sslmode=maybe", "sslmode"),
    ] {
        let text = PostgresOptions::new(url).expect_err(url).to_string();
        assert!(
            text.to_lowercase().contains(&expected.to_lowercase()) || text.contains("ssl_mode"),
            "{text}"
        );
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn a_schema_has_a_plain_name() {
    let options = PostgresOptions::new(URL).expect("a URL");
    let longest = "s".repeat(63);
    for schema in ["public", "_x1", &longest] {
        assert_eq!(
            options.clone().with_schema(schema).expect("plain").schema(),
            schema
        );
    }
    let too_long = "s".repeat(64);
    for schema in ["", "Tools", "1a", "a-b", "a\"b", "pg_x", "é", &too_long] {
        let refused = options.clone().with_schema(schema).expect_err(schema);
        assert!(refused.to_string().contains("invalid schema name"), "{refused}");
    }
}
