//! Encrypted connections.

use tool_registry::{Store, StoreError};
use tool_store_postgres::{PostgresOptions, postgres_store};
use tool_store_sql::Database;
use tp_postgres::PostgresServer;

use crate::support::{create, present};

#[tokio::test]
async fn a_connection_is_encrypted_and_the_certificate_of_the_server_is_checked() {
    let certificate = || rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("made");
    let (own, other) = (certificate(), certificate());
    let key = own.signing_key.serialize_pem();
    let Some(server) = present(PostgresServer::start_with_certificate(&own.cert.pem(), &key)) else {
        return;
    };
    let database = server.create_database().expect("created");
    let folder = tempfile::tempdir().expect("a directory");
    let store = |name: &str, certificate: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, certificate).expect("written");
        let url = format!(
            "{}?sslmode=verify-full&sslrootcert={}",
            database.url(),
            path.display()
        );
        postgres_store(PostgresOptions::new(&url).expect("a URL"))
    };

    let trusting = store("own.pem", &own.cert.pem());
    create(&trusting, "greet").await.expect("applied");
    let mut transaction = trusting.database().read().await.expect("begun").expect("there");
    let query = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let mut rows = transaction.fetch(query, Vec::new()).await.expect("works");
    assert_eq!(rows[0].int(0).expect("a truth value"), 1);

    let error = store("other.pem", &other.cert.pem())
        .tools()
        .await
        .expect_err("not trusted");
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
}
