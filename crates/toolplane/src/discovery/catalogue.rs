//! Indexes of the tools that callers may see.

use std::{
    collections::HashMap,
    hash::RandomState,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::OnceCell, task::spawn_blocking};
use tool_core::{Descriptor, LatencyClass, Tool};
use tool_policy::Rules;
use tool_search::{ToolDocument, ToolIndex, ToolVectors, UsageIndex, UsageLog};

use crate::View;

/// Maximum number of indexes: the one that was not used for the longest time is evicted first.
const MAX_CATALOGUES: usize = 16;
/// Maximum number of tools in all indexes together, unless a single one has more. They take about 150 MB.
const MAX_TOOLS: usize = 400_000;
/// Maximum number of tenants whose usage is indexed.
const MAX_TENANTS: usize = 64;

/// Indexes of the present views. Callers who may see the same tools share one, so that unchanged tools are indexed once.
///
/// An index contains only tools that its callers may see: the frequencies of words, which decide about the order of the results
/// and whether there are any, would otherwise show something of the others.
#[derive(Default)]
pub(super) struct Catalogues {
    /// Last used last.
    known: Mutex<Vec<(CatalogueKey, SharedCatalogue)>>,
    hasher: RandomState,
}

/// Catalogue that the first search builds.
type SharedCatalogue = Arc<OnceCell<Arc<Catalogue>>>;

/// Tools of views: a set of names in one revision of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CatalogueKey {
    scope: u64,
    revision: u64,
    n_tools: usize,
    names: u64,
}

/// Index of the uses of a tenant, and the revision of its log.
type UsageOfRevision = (u64, Arc<UsageIndex>);

/// Index of the tools of one view. Tools are named, not kept: a removed tool does not live on here.
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
    /// Returns the index of a view, and builds it if necessary, on a thread for blocking work. Concurrent searches wait for
    /// one construction.
    pub(super) async fn get(&self, view: &View, rules: &Arc<Rules>) -> Arc<Catalogue> {
        let key = CatalogueKey {
            scope: view.scope(),
            revision: view.revision(),
            n_tools: view.tools().len(),
            names: view.hash_of_tools(&self.hasher),
        };
        let cell = self.cell(key);
        let build = async || {
            let (view, rules) = (view.clone(), rules.clone());
            let built = spawn_blocking(move || Arc::new(Catalogue::new(&view, &rules))).await;
            // It fails only if the runtime ends meanwhile.
            built.unwrap_or_else(|_| Arc::new(Catalogue::of([])))
        };
        cell.get_or_init(build).await.clone()
    }

    /// Forgets all indexes, and with them the vectors of their tools.
    pub(super) fn clear(&self) {
        self.known.lock().clear();
    }

    fn cell(&self, key: CatalogueKey) -> SharedCatalogue {
        let mut known = self.known.lock();
        // Nobody searches an older one again.
        known.retain(|(other, _)| other.scope != key.scope || other.revision >= key.revision);
        let cell = match known.iter().position(|(other, _)| *other == key) {
            Some(place) => known.remove(place).1,
            None => SharedCatalogue::default(),
        };
        let mut n_tools = known.iter().map(|(other, _)| other.n_tools).sum::<usize>() + key.n_tools;
        while !known.is_empty() && (known.len() >= MAX_CATALOGUES || n_tools > MAX_TOOLS) {
            n_tools -= known.remove(0).0.n_tools;
        }
        known.push((key, cell.clone()));
        cell
    }
}

impl Catalogue {
    fn new(view: &View, rules: &Rules) -> Self {
        let documents = view.tools().iter().map(|tool| {
            let mut document = document(tool);
            document.required_permissions = rules.permissions_of(tool);
            document
        });
        Self::of(documents)
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

/// Returns a tool as the index reads it, without the permissions that it needs.
pub(super) fn document(tool: &Tool) -> ToolDocument {
    let mut document = document_of(tool.descriptor());
    document.server = tool.state().upstream().map(|upstream| upstream.name().clone());
    document
}

/// Returns a tool as the index reads it, without its server and the permissions that it needs.
pub(super) fn document_of(descriptor: &Descriptor) -> ToolDocument {
    let metadata = &descriptor.metadata;
    let mut document = ToolDocument::new(descriptor.name.clone());
    document.title = descriptor.title.clone().unwrap_or_default();
    document.description.clone_from(&descriptor.description);
    document.add_schema(&descriptor.input_schema);
    document.tags.clone_from(&metadata.tags);
    document.capabilities.clone_from(&metadata.capabilities);
    document.aliases.clone_from(&metadata.aliases);
    document.examples.clone_from(&metadata.examples);
    document.sla = metadata.sla;
    document.latency = metadata.latency.map(|latency| match latency {
        LatencyClass::Fast => Duration::from_millis(100),
        LatencyClass::Medium => Duration::from_secs(1),
        LatencyClass::Slow => Duration::from_secs(10),
    });
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(revision: u64, n_tools: usize, names: u64) -> CatalogueKey {
        CatalogueKey {
            scope: 0,
            revision,
            n_tools,
            names,
        }
    }

    #[test]
    fn the_indexes_that_were_used_last_are_kept_within_both_limits() {
        let catalogues = Catalogues::default();
        let first = catalogues.cell(key(1, 10, 0));
        let second = catalogues.cell(key(1, 10, 1));
        for names in 2..=MAX_CATALOGUES as u64 {
            // The first one is used again and again.
            assert!(Arc::ptr_eq(&first, &catalogues.cell(key(1, 10, 0))));
            catalogues.cell(key(1, 10, names));
        }
        assert_eq!(catalogues.known.lock().len(), MAX_CATALOGUES);
        assert!(!Arc::ptr_eq(&second, &catalogues.cell(key(1, 10, 1))));
        // One that is too large for any other is kept alone.
        let large = catalogues.cell(key(1, MAX_TOOLS + 1, 99));
        assert_eq!(catalogues.known.lock().len(), 1);
        assert!(Arc::ptr_eq(&large, &catalogues.cell(key(1, MAX_TOOLS + 1, 99))));
    }

    #[test]
    fn indexes_of_earlier_revisions_are_dropped() {
        let catalogues = Catalogues::default();
        let first = catalogues.cell(key(1, 10, 0));
        assert!(!Arc::ptr_eq(&first, &catalogues.cell(key(2, 10, 0))));
        assert_eq!(catalogues.known.lock().len(), 1);
    }
}
