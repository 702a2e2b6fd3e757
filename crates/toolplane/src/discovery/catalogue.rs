//! Indexes of the tools of snapshots.

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::OnceCell, task::spawn_blocking};
use tool_core::{LatencyClass, Tool};
use tool_registry::Snapshot;
use tool_search::{ToolDocument, ToolIndex, ToolVectors, UsageIndex, UsageLog};

/// Maximum number of indexes: the oldest is evicted first. Each client with lists of its own has one.
const MAX_CATALOGUES: usize = 4;
/// Maximum number of tenants whose usage is indexed.
const MAX_TENANTS: usize = 64;

/// Indexes of the current snapshots, so that unchanged tools are indexed once.
#[derive(Default)]
pub(super) struct Catalogues(Mutex<Vec<(SnapshotKey, SharedCatalogue)>>);

/// Index of the uses of a tenant, and the revision of its log.
type UsageOfRevision = (u64, Arc<UsageIndex>);

/// Catalogue that the first search builds.
type SharedCatalogue = Arc<OnceCell<Arc<Catalogue>>>;

/// Scope and revision of a snapshot.
type SnapshotKey = (u64, u64);

/// Index of the tools of one snapshot. Tools are named, not kept: a removed tool does not live on here.
pub(super) struct Catalogue {
    pub(super) index: ToolIndex,
    pub(super) vectors: OnceLock<ToolVectors>,
    /// `true` while the vectors are computed.
    is_embedding: AtomicBool,
    /// Problem of the last attempt to compute vectors.
    pub(super) problem: Mutex<Option<String>>,
    /// Usage of each tenant, with the revision of its records.
    usage: Mutex<HashMap<Arc<str>, UsageOfRevision>>,
}

impl Catalogues {
    /// Returns the index of a snapshot, and builds it if necessary, on a thread for blocking work. Concurrent searches wait for
    /// one construction.
    pub(super) async fn get(&self, snapshot: &Arc<Snapshot>) -> Arc<Catalogue> {
        let key = (snapshot.scope(), snapshot.revision());
        let cell = {
            let mut catalogues = self.0.lock();
            // Nobody searches an older one again.
            catalogues.retain(|((scope, revision), _)| *scope != key.0 || *revision >= key.1);
            let known = catalogues.iter().find(|(known, _)| *known == key);
            match known.map(|(_, cell)| cell.clone()) {
                Some(cell) => cell,
                None => {
                    if catalogues.len() >= MAX_CATALOGUES {
                        catalogues.remove(0);
                    }
                    let cell = Arc::<OnceCell<_>>::default();
                    catalogues.push((key, cell.clone()));
                    cell
                }
            }
        };
        let build = async || {
            let snapshot = snapshot.clone();
            let built = spawn_blocking(move || Arc::new(Catalogue::new(&snapshot))).await;
            // It fails only if the runtime ends meanwhile.
            built.unwrap_or_else(|_| Arc::new(Catalogue::of([])))
        };
        cell.get_or_init(build).await.clone()
    }
}

impl Catalogue {
    fn new(snapshot: &Snapshot) -> Self {
        Self::of(snapshot.tools().iter().map(|tool| document(tool)))
    }

    fn of(documents: impl IntoIterator<Item = ToolDocument>) -> Self {
        Self {
            index: ToolIndex::build(documents),
            vectors: OnceLock::new(),
            is_embedding: AtomicBool::new(false),
            problem: Mutex::default(),
            usage: Mutex::default(),
        }
    }

    /// Returns the index of a tenant's usage.
    pub(super) fn usage(&self, log: &dyn UsageLog, tenant: &Arc<str>) -> Arc<UsageIndex> {
        let revision = log.revision(tenant);
        let mut usage = self.usage.lock();
        if let Some((_, index)) = usage.get(tenant).filter(|(known, _)| *known == revision) {
            return index.clone();
        }
        if usage.len() >= MAX_TENANTS {
            usage.clear();
        }
        let index = Arc::new(UsageIndex::build(&self.index, &log.records(tenant)));
        usage.insert(tenant.clone(), (revision, index.clone()));
        index
    }

    /// Returns `true` for the one caller that is to compute the vectors.
    pub(super) fn begin_embedding(&self) -> bool {
        !self.is_embedding.swap(true, Ordering::AcqRel)
    }

    /// Takes the computed vectors, or the problem that prevented them. After a problem the next search tries again.
    pub(super) fn end_embedding(&self, vectors: Result<ToolVectors, String>) {
        match vectors {
            Ok(vectors) => {
                *self.problem.lock() = None;
                let _ = self.vectors.set(vectors);
            }
            Err(problem) => *self.problem.lock() = Some(problem),
        }
        self.is_embedding.store(false, Ordering::Release);
    }
}

/// Returns a tool as the index reads it.
pub(super) fn document(tool: &Tool) -> ToolDocument {
    let descriptor = tool.descriptor();
    let metadata = &descriptor.metadata;
    let mut document = ToolDocument::new(tool.name().clone());
    document.title = descriptor.title.clone().unwrap_or_default();
    document.description.clone_from(&descriptor.description);
    document.add_schema(&descriptor.input_schema);
    document.server = tool.state().upstream().map(|upstream| upstream.name().clone());
    document.tags.clone_from(&metadata.tags);
    document.capabilities.clone_from(&metadata.capabilities);
    document.aliases.clone_from(&metadata.aliases);
    document.examples.clone_from(&metadata.examples);
    document
        .required_permissions
        .clone_from(&metadata.required_permissions);
    document.sla = metadata.sla;
    document.latency = metadata.latency.map(|latency| match latency {
        LatencyClass::Fast => Duration::from_millis(100),
        LatencyClass::Medium => Duration::from_secs(1),
        LatencyClass::Slow => Duration::from_secs(10),
    });
    document
}
