//! Publications that are killed.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
    time::Duration,
};

use raw_json::RawJson;
use semver::Version;
use serde_json::json;
use tokio::runtime::Runtime;
use tool_core::{Descriptor, ExecutorSpec, SystemClock};
use tool_registry::{
    NewVersion, PublishError, PublishOptions, Publisher, ReadManifest, Store, StoreError, ToolFile,
};
use tool_store_sql::Database;
use tool_store_sqlite::{SqlStore, SqliteDatabase, SqliteOptions, sqlite_store};
use tool_store_suite::kill::{self, KillingDatabase};

/// Number of versions that a writer publishes if nobody kills it.
const N_VERSIONS: u64 = 6;
/// Largest number of steps after which a writer is killed: a publication has about a dozen.
const MAX_STEPS: u64 = 60;

struct Manifests;

impl ReadManifest for Manifests {
    fn read(&self, tool: &str, _: &RawJson) -> Result<Descriptor, String> {
        let mut descriptor = Descriptor::new(tool, ExecutorSpec::new("mock"));
        descriptor.description = "Greets.".to_owned();
        descriptor.input_schema = RawJson::from(json!({"type": "object"}));
        Ok(descriptor)
    }
}

/// A version of a writer: several files, which no other version has.
fn version(writer: &str, number: u64) -> NewVersion {
    let manifest = RawJson::from(json!({"description": "Greets.", "by": writer, "n": number}));
    let file = |n: u64| {
        let content = format!("{writer} {number} {n}\n").repeat(200 * usize::try_from(n).unwrap_or(1));
        (format!("src/{n}.py"), ToolFile::new(content.into_bytes()))
    };
    let version = Version::new(1, number, 0);
    NewVersion::new("greet", version, manifest).with_files((1..=3).map(file).collect::<BTreeMap<_, _>>())
}

/// Program that publishes versions, and prints each one that it has published.
#[test]
fn killed_publisher() {
    let Some(role) = kill::role() else {
        return;
    };
    let [path, writer, n_steps, delay] = role.as_slice() else {
        panic!("four words: {role:?}");
    };
    let (n_steps, delay) = (
        n_steps.parse().expect("a number"),
        delay.parse().expect("a number"),
    );
    let database = SqliteDatabase::new(SqliteOptions::new(path));
    let database = KillingDatabase::new(database, n_steps, Duration::from_micros(delay));
    let store = Arc::new(SqlStore::new(database));
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(publish_all(store, writer));
}

async fn publish_all<D: Database>(store: Arc<SqlStore<D>>, writer: &str) {
    let publisher = Publisher::new(store.clone(), Arc::new(Manifests), Arc::new(SystemClock::new()));
    let mut n_published = 0;
    while n_published < N_VERSIONS {
        let record = store.tool("greet").await.expect("readable");
        let newest = record.and_then(|record| record.versions.last().map(|head| head.version.minor));
        let next = newest.map_or(0, |newest| newest + 1);
        match publisher
            .publish(version(writer, next), writer, PublishOptions::default())
            .await
        {
            Ok(published) => {
                assert!(published.is_new, "{published:?}");
                kill::say(format_args!("published 1.{next}.0"));
                n_published += 1;
            }
            // The other writer was faster.
            Err(
                PublishError::Immutable { .. }
                | PublishError::NotNewer { .. }
                | PublishError::Store(StoreError::Conflict { .. }),
            ) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Checks that each version is there wholly or not at all, and that `latest` names one.
async fn check(path: &Path, published: &[(&str, Vec<String>)], point: u64) {
    let store = sqlite_store(SqliteOptions::new(path));
    let Some(record) = store.tool("greet").await.expect("readable") else {
        assert!(
            published.iter().all(|(_, versions)| versions.is_empty()),
            "point {point}: a tool is lost"
        );
        return;
    };
    let mut by_writer: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for head in &record.versions {
        let stored = store.version("greet", &head.version).await.expect("readable");
        let stored = stored.unwrap_or_else(|| panic!("point {point}: {} has no content", head.version));
        let expected = version(&head.created_by, head.version.minor);
        assert_eq!(
            stored.manifest.as_str(),
            expected.manifest.as_str(),
            "point {point}"
        );
        assert_eq!(stored.files, expected.files, "point {point}: {}", head.version);
        assert_eq!(head.digest, expected.digest(), "point {point}");
        by_writer
            .entry(head.created_by.to_string())
            .or_default()
            .insert(head.version.to_string());
    }
    let newest = record.versions.last().map(|head| head.version.clone());
    assert_eq!(record.latest, newest, "point {point}: `latest` dangles");
    assert_eq!(
        record.history.last().and_then(|change| change.version.clone()),
        newest,
        "point {point}"
    );
    assert_eq!(record.history.len(), record.versions.len(), "point {point}");
    for (writer, versions) in published {
        // Each was won by the writer who was told so. One more may be there, of which nobody was told.
        let there = by_writer.get(*writer).cloned().unwrap_or_default();
        for version in versions {
            assert!(
                there.contains(version),
                "point {point}: `{writer}` published {version}, and it is lost"
            );
        }
    }
}

/// Promise R22. Of two writers, one is killed at a seeded step of creating the database or of a publication, or some microseconds
/// after it; the other one goes on.
#[test]
fn a_killed_publication_is_visible_wholly_or_not_at_all() {
    let runtime = Runtime::new().expect("a runtime");
    for point in kill::points() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("toolplane.db");
        let text = path.to_str().expect("UTF-8");
        let n_steps = 1 + kill::seeded(point, 1, MAX_STEPS);
        // Every other writer is killed at the step itself; the rest are killed while something else happens.
        let delay = kill::seeded(point, 2, 2) * kill::seeded(point, 3, 4_000);
        let killed = || {
            kill::run(
                "kill::killed_publisher",
                &[text, "ada", &n_steps.to_string(), &delay.to_string()],
            )
        };
        let living = || kill::run("kill::killed_publisher", &[text, "bob", "0", "0"]);
        let (killed, living) = std::thread::scope(|scope| {
            let killed = scope.spawn(killed);
            let living = living();
            (killed.join().expect("no panic"), living)
        });
        assert_eq!(
            killed.status.code(),
            None,
            "point {point}: it is killed: {killed:?}"
        );
        assert!(living.status.success(), "point {point}: {living:?}");
        let by_killed = kill::lines(&killed, "published ");
        let by_living = kill::lines(&living, "published ");
        assert_eq!(by_living.len() as u64, N_VERSIONS, "point {point}");
        assert!(
            by_killed.iter().all(|version| !by_living.contains(version)),
            "point {point}: two won"
        );
        runtime.block_on(check(&path, &[("ada", by_killed), ("bob", by_living)], point));
    }
}
