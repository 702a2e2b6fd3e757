//! Publications that are killed: promise R22, for every store.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use raw_json::RawJson;
use semver::Version;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tool_core::{Descriptor, ExecutorSpec, SystemClock};
use tool_registry::{
    NewVersion, PublishError, PublishOptions, Publisher, ReadManifest, Store, StoreError, ToolFile,
};

use crate::kill::{self, KillSwitch};

/// Number of versions that a writer publishes if nobody kills it.
const N_VERSIONS: u64 = 6;

struct Manifests;

impl ReadManifest for Manifests {
    fn read(&self, tool: &str, _: &RawJson) -> Result<Descriptor, String> {
        let mut descriptor = Descriptor::new(tool, ExecutorSpec::new("mock"));
        descriptor.description = "Greets.".to_owned();
        descriptor.input_schema = RawJson::from(json!({"type": "object"}));
        Ok(descriptor)
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
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

/// Plays the program that publishes versions, and prints each one that it has published. `open` opens the store at a place with a
/// switch for its steps. Does nothing if this process is no such program.
///
/// # Panics
/// If a publication fails for another reason than a faster writer.
pub fn publish_in_role(open: impl FnOnce(&str, KillSwitch) -> Arc<dyn Store>) {
    let Some(role) = kill::role() else {
        return;
    };
    let [place, writer, n_steps, delay] = role.as_slice() else {
        panic!("four words: {role:?}");
    };
    let number = |text: &String| text.parse::<u64>().expect("a number");
    let switch = KillSwitch::new(number(n_steps), Duration::from_micros(number(delay)));
    runtime().block_on(async { publish_all(open(place, switch), writer).await });
}

async fn publish_all(store: Arc<dyn Store>, writer: &str) {
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
async fn check(store: Arc<dyn Store>, published: &[(&str, Vec<String>)], point: u64) {
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

/// Of two writers, one is killed at a seeded step of creating the store or of a publication, or some microseconds after it; the
/// other one goes on. `program` is the test that calls [`publish_in_role`]; `place` makes a place for the store of one point, with
/// what keeps it, and `open` opens the store there. `max_steps` is the largest number of steps after which a writer is killed: some
/// publications.
///
/// # Panics
/// If a version is lost, or is visible in part.
pub fn killed_publications<G>(
    program: &str,
    max_steps: u64,
    place: impl Fn() -> (G, String),
    open: impl Fn(&str) -> Arc<dyn Store>,
) {
    for point in kill::points() {
        let (guard, place) = place();
        let n_steps = 1 + kill::seeded(point, 1, max_steps);
        // Every other writer is killed at the step itself; the rest are killed while something else happens.
        let delay = kill::seeded(point, 2, 2) * kill::seeded(point, 3, 4_000);
        let killed = || {
            let (n_steps, delay) = (n_steps.to_string(), delay.to_string());
            kill::run(program, &[&place, "ada", &n_steps, &delay])
        };
        let living = || kill::run(program, &[&place, "bob", "0", "0"]);
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
        let published = [("ada", by_killed), ("bob", by_living)];
        runtime().block_on(async { check(open(&place), &published, point).await });
        drop(guard);
    }
}
