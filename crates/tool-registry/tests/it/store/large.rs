//! A store with very many tools: what a load and a change touch.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use serde_json::json;
use tool_core::{
    Arguments, Descriptor, DynBackend, Executor, Feature, PrepareError, RawJson, ToolError, invoke_fn,
};
use tool_registry::{
    LatestChange, MemoryStore, ReadManifest, Registry, RegistryParts, Snapshot, Store, StoreOperation,
    StoreSource, StoredVersion, ToolChange, VersionHead, VersionState,
};

use super::{Manifests, version};

const N_TOOLS: usize = 100_000;

/// Numbers of manifests that were read and of tools that were prepared.
#[derive(Default)]
struct Counts {
    n_read: AtomicUsize,
    n_prepared: AtomicUsize,
}

impl Counts {
    fn take(&self) -> (usize, usize) {
        let take = |count: &AtomicUsize| count.swap(0, Ordering::SeqCst);
        (take(&self.n_read), take(&self.n_prepared))
    }
}

struct CountedManifests(Arc<Counts>);

impl ReadManifest for CountedManifests {
    fn read(&self, tool: &str, manifest: &RawJson) -> Result<Descriptor, String> {
        self.0.n_read.fetch_add(1, Ordering::SeqCst);
        Manifests.read(tool, manifest)
    }
}

/// Executor of kind `mock` whose tools return their arguments.
struct CountedExecutor(Arc<Counts>);

impl Executor for CountedExecutor {
    fn kind(&self) -> &str {
        "mock"
    }

    fn prepare(&self, _: &Descriptor) -> Result<Arc<dyn DynBackend>, Vec<PrepareError>> {
        self.0.n_prepared.fetch_add(1, Ordering::SeqCst);
        let echo = |arguments: Arc<Arguments>| async move { Ok::<_, ToolError>(arguments.raw().clone()) };
        Ok(Arc::new(invoke_fn(echo)))
    }

    fn config_schema(&self) -> RawJson {
        RawJson::object()
    }
}

fn name(index: usize) -> String {
    format!("tool_{index:06}")
}

/// Change that publishes a version and makes it the latest one.
fn change(index: usize, number: &str, manifest: RawJson, expected: u64) -> ToolChange {
    let now = SystemTime::UNIX_EPOCH;
    let head = VersionHead::new(
        version(number),
        [0; 32],
        VersionState::Published,
        now,
        "ada".into(),
    );
    let latest = LatestChange::new(Some(head.version.clone()), now, "ada".into());
    let stored = StoredVersion::new(head, manifest, Default::default());
    let mut operations = vec![
        StoreOperation::Put(Box::new(stored)),
        StoreOperation::SetLatest(latest),
    ];
    if expected == 0 {
        operations.insert(0, StoreOperation::Create { owner: "ada".into() });
    }
    ToolChange::new(name(index), expected, operations)
}

fn described(text: &str) -> RawJson {
    RawJson::from(json!({"description": text, "version": "1.0.0"}))
}

/// Number of tools of `now` that are not those of `before`.
fn n_replaced(before: &Snapshot, now: &Snapshot) -> usize {
    let known: HashMap<_, _> = before.tools().iter().map(|tool| (tool.name(), tool)).collect();
    let is_same = |tool: &Arc<tool_core::Tool>| {
        known
            .get(tool.name())
            .is_some_and(|known| Arc::ptr_eq(known, tool))
    };
    now.tools().iter().filter(|tool| !is_same(tool)).count()
}

#[tokio::test]
async fn a_change_among_100_000_tools_reads_and_prepares_only_what_changed() {
    let store = Arc::new(MemoryStore::new());
    let same = described("Finds.");
    let all = (0..N_TOOLS).map(|index| change(index, "1.0.0", same.clone(), 0));
    let first = store.apply_all(all.collect()).await.expect("stored");
    let counts = Arc::new(Counts::default());
    let source = StoreSource::new(store.clone(), Arc::new(CountedManifests(counts.clone())));
    let parts = RegistryParts::default()
        .with_sources([Arc::new(source) as _])
        .with_executors([Arc::new(CountedExecutor(counts.clone())) as _]);
    let registry = Registry::new(parts);
    let loaded = registry.load().await;
    assert_eq!(loaded.tools().len(), N_TOOLS);
    assert_eq!(counts.take(), (N_TOOLS, N_TOOLS));

    registry.follow();
    let mut changes = registry.changes();
    changes.mark_unchanged();
    // A new version, a new tool, and one that is not usable.
    let changed = vec![
        change(7, "1.1.0", described("Finds more."), first),
        change(N_TOOLS, "1.0.0", same, 0),
        change(99_999, "1.1.0", RawJson::object(), first),
    ];
    store.apply_all(changed).await.expect("stored");
    changes.changed().await.expect("the registry is there");
    let now = registry.snapshot();
    assert_eq!(counts.take(), (3, 2));
    assert_eq!(now.tools().len(), N_TOOLS);
    assert_eq!(n_replaced(&loaded, &now), 2);
    let refused: Vec<_> = now
        .refused()
        .iter()
        .map(|refused| (refused.name.as_str(), refused.reason.as_str()))
        .collect();
    assert_eq!(refused, [("tool_099999", "it has no description")]);
    // A tool keeps the state of its layers, whatever its version.
    let state = |snapshot: &Snapshot| snapshot.get(&name(7)).expect("there").state().clone();
    assert!(Arc::ptr_eq(&state(&loaded), &state(&now)));
    assert!(now.revision_of(Feature::Tool) > loaded.revision_of(Feature::Tool));
}
