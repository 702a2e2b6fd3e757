//! Changes that end at each of their steps.

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use tool_registry::StoreOperation::{self, RemoveDraft};
use tool_registry::{
    ServerRecord, Store, StoreError, StoredVersion, ToolAlias, ToolChange, ToolRecord, VersionState,
};
use tool_store_files::FileStore;

use crate::support::{first, latest, open, options, put, stored, version};

/// Everything in a store but its revisions.
#[derive(Debug, PartialEq)]
struct Whole {
    tools: Vec<ToolRecord>,
    versions: Vec<StoredVersion>,
    aliases: Vec<ToolAlias>,
    servers: Vec<ServerRecord>,
}

async fn whole(store: &FileStore) -> Whole {
    let mut tools = store.tools().await.expect("readable");
    let mut versions = Vec::new();
    for tool in &mut tools {
        tool.revision = 0;
        for head in &tool.versions {
            let found = store.version(&tool.name, &head.version).await.expect("readable");
            versions.push(found.expect("content"));
        }
    }
    let aliases = store.aliases().await.expect("readable");
    let servers = store.servers().await.expect("readable");
    Whole {
        tools,
        versions,
        aliases,
        servers,
    }
}

/// Changes two tools at once: a version of one, and drafts of the other that are replaced and removed.
async fn change(store: &FileStore) -> Result<u64, StoreError> {
    let revision = |name: &'static str| async move {
        store
            .tool(name)
            .await
            .map(|tool| tool.map_or(0, |tool| tool.revision))
    };
    let published = vec![put("greet", "1.1.0", VersionState::Published), latest("1.1.0")];
    let replaced = stored("other", "2.0.0", VersionState::Draft, "[ 1 ]");
    let drafts = vec![
        StoreOperation::Put(Box::new(replaced)),
        RemoveDraft {
            version: version("3.0.0"),
        },
    ];
    let changes = vec![
        ToolChange::new("greet", revision("greet").await?, published),
        ToolChange::new("other", revision("other").await?, drafts),
    ];
    store.apply_all(changes).await
}

async fn prepare(directory: &Path) {
    let store = open(directory);
    store
        .apply("greet", 0, first("greet", "1.0.0"))
        .await
        .expect("applied");
    let mut operations = first("other", "1.0.0");
    operations.push(put("other", "2.0.0", VersionState::Draft));
    operations.push(put("other", "3.0.0", VersionState::Draft));
    store.apply("other", 0, operations).await.expect("applied");
}

/// Returns a store whose steps fail after the first ones, as those of a process that was killed, and the number of steps that it
/// tried.
fn failing(directory: &Path, n_steps: u32) -> (FileStore, Arc<AtomicU32>) {
    let tried = Arc::new(AtomicU32::new(0));
    let mut options = options(directory);
    let counter = tried.clone();
    options.on_step = Some(Arc::new(move || match counter.fetch_add(1, Ordering::SeqCst) {
        passed if passed < n_steps => Ok(()),
        _ => Err(io::Error::other("the process was killed")),
    }));
    (FileStore::new(options), tried)
}

#[tokio::test]
async fn a_change_that_ends_at_any_step_is_visible_wholly_or_not_at_all() {
    let (mut n_before, mut n_after) = (0, 0);
    for n_steps in 0.. {
        let directory = tempfile::tempdir().expect("a directory");
        prepare(directory.path()).await;
        let reader = open(directory.path());
        let before = whole(&reader).await;
        let (store, tried) = failing(directory.path(), n_steps);
        let result = change(&store).await;
        let found = whole(&reader).await;
        assert_eq!(whole(&open(directory.path())).await, found, "step {n_steps}");
        let seen = reader.revision().await.expect("readable");
        let is_made = found != before;
        if !is_made {
            n_before += 1;
            assert!(result.is_err(), "step {n_steps}: it was reported as made");
            change(&reader).await.expect("it can be made again");
        } else {
            n_after += 1;
        }
        let after = whole(&open(directory.path())).await;
        let greet = &after.tools[0];
        assert_eq!(
            (greet.versions.len(), &greet.latest),
            (2, &Some(version("1.1.0")))
        );
        let other = &after.tools[1];
        assert_eq!(other.versions.len(), 2, "step {n_steps}: {other:?}");
        assert_eq!(after.versions[3].manifest.as_str(), "[ 1 ]");
        assert!(!directory.path().join("tools/other/3.0.0").exists());
        assert!(!directory.path().join(".toolplane/journal.json").exists());
        if !is_made {
            assert!(reader.revision().await.expect("readable") > seen);
        }
        if tried.load(Ordering::SeqCst) <= n_steps {
            assert!(result.is_ok(), "no step failed: {result:?}");
            break;
        }
    }
    assert!(n_before > 10 && n_after > 10, "{n_before} {n_after}");
}

#[tokio::test]
async fn an_alias_or_a_server_that_is_set_at_any_step_is_there_wholly_or_not_at_all() {
    for n_steps in 0.. {
        let directory = tempfile::tempdir().expect("a directory");
        prepare(directory.path()).await;
        let (store, tried) = failing(directory.path(), n_steps);
        let alias = ToolAlias::new("hello", "greet", "^1");
        let set = store.set_alias("hello", Some(alias.clone())).await;
        let found = open(directory.path()).aliases().await.expect("readable");
        assert!(found.is_empty() || found == [alias], "step {n_steps}");
        assert!(set.is_err() || !found.is_empty(), "step {n_steps}");
        if tried.load(Ordering::SeqCst) <= n_steps {
            assert!(set.is_ok());
            break;
        }
    }
}
