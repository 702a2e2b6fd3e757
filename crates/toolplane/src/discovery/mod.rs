//! Search for tools.

mod catalogue;
mod embeddings;
mod recent;
mod semantic;
mod vector_cache;

use std::{sync::Arc, time::Duration};

use parking_lot::RwLock;
use tokio::task::spawn_blocking;
use tool_core::{Caller, ClientIdentity, Descriptor, Embedder, Pattern, Tool};
use tool_manifest::{Configuration, SearchSpec};
use tool_registry::Snapshot;
use tool_search::{
    MeasuredTool, SearchRequest, SearchResults, SearchScope, ToolCategory, ToolIndex, UsageIndex, UsageLog,
};

pub(crate) use self::recent::RecentSearches;
use self::{
    catalogue::{Catalogue, Catalogues},
    vector_cache::VectorCache,
};
use crate::{MissingServer, Toolplane, outgoing::client::Outbound};

/// Maximum number of tools whose vectors are compared on a thread that other calls use: about 1 ms.
const MAX_COMPARED: usize = 2_000;
/// Maximum number of tools that are indexed for the check of a draft.
const MAX_INDEXED: usize = 1_000;
/// Minimum number of attempts for measurements to replace the declared SLA and latency of a tool.
const MIN_MEASURED: u64 = 10;

/// Tools that a search found.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct FoundTools {
    /// Found tools, in their order.
    pub tools: Vec<FoundTool>,
    /// Numbers of the queries that no tool fits.
    pub unmatched: Vec<usize>,
    /// Categories near the queries that no tool fits; empty if each query found something.
    pub nearest: Vec<ToolCategory>,
    /// Servers without a list: their tools cannot be found yet.
    pub missing: Vec<MissingServer>,
    /// Warnings, such as that the search was made by words alone because the embedder failed.
    pub warnings: Vec<String>,
}

/// Tool that a search found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FoundTool {
    /// Found tool.
    pub tool: Arc<Tool>,
    /// Score, from 0 to 1, by which results of one query compare.
    pub score: f32,
    /// `true` if its name or an alias is the query or begins with it.
    pub is_by_name: bool,
    /// Numbers of the queries that found it.
    pub queries: Vec<usize>,
}

/// Everything that searches need besides the registry.
pub(crate) struct Discovery {
    catalogues: Catalogues,
    recent: Arc<RecentSearches>,
    /// Embedder of the host program, which precedes those of configurations.
    own_embedder: Option<Arc<dyn Embedder>>,
    /// Embedder of the configuration, with its settings.
    embedder: RwLock<ConfiguredEmbedder>,
    vectors: Arc<VectorCache>,
    /// Turn of those who have tools embedded.
    embedding: Arc<tokio::sync::Mutex<()>>,
    /// Tools that the configuration's gateway always lists.
    pinned: RwLock<Vec<Pattern>>,
}

#[derive(Default)]
struct ConfiguredEmbedder {
    spec: SearchSpec,
    embedder: Option<Arc<dyn Embedder>>,
}

impl Discovery {
    /// Creates the state of searches before any configuration: see [`Discovery::reconfigure`].
    pub(crate) fn new(recent: Arc<RecentSearches>, own_embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self {
            catalogues: Catalogues::default(),
            recent,
            own_embedder,
            embedder: RwLock::default(),
            vectors: Arc::default(),
            embedding: Arc::default(),
            pinned: RwLock::default(),
        }
    }

    /// Applies a configuration. An embedder with unchanged settings stays.
    pub(crate) fn reconfigure(&self, configuration: &Configuration, outbound: &Arc<Outbound>) {
        self.pinned.write().clone_from(&configuration.gateway.pinned);
        let mut embedder = self.embedder.write();
        if embedder.spec != configuration.search {
            *embedder = ConfiguredEmbedder {
                spec: configuration.search.clone(),
                embedder: embeddings::embedder(configuration, outbound),
            };
            // Vectors of two models cannot be compared.
            self.catalogues.clear();
        }
    }

    /// Returns the embedder of the host program, or else that of the configuration.
    pub(crate) fn embedder(&self) -> Option<Arc<dyn Embedder>> {
        let configured = || self.embedder.read().embedder.clone();
        self.own_embedder.clone().or_else(configured)
    }

    pub(crate) fn pinned(&self) -> Vec<Pattern> {
        self.pinned.read().clone()
    }

    fn usage(&self) -> &dyn UsageLog {
        self.recent.usage()
    }
}

/// Tools that a search finds without and with a new tool.
pub(crate) struct FoundBeside {
    /// Tools that it finds now, the new one apart.
    pub(crate) rivals: Vec<Arc<Tool>>,
    /// Names of what it would find among these and the new one, best first.
    pub(crate) names: Vec<Arc<str>>,
}

impl Toolplane {
    /// Finds the tools of this caller that fit a request. Starts servers that are not running, as [`Toolplane::view`] does.
    /// Only tools that the caller may call are found, and the result is the same as if there were no others.
    ///
    /// The index is built at the first search of callers with the same tools, and again after a change of the tools. A later
    /// successful call of a found tool by the same principal is recorded for its query: see
    /// [`Builder::usage_log`](crate::Builder::usage_log).
    ///
    /// # Cancellation
    /// Dropping the future ends the search. Servers that are starting continue to start.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    ///
    /// # Examples
    /// ```
    /// use toolplane::{Toolplane, search::SearchRequest};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let plane = Toolplane::from_yaml(
    ///     "tools: {get_weather: {description: The weather at a place., executor: {kind: mock, result: 1}}}",
    /// )?;
    /// let found = plane.search(&SearchRequest::new("weather forecast"), &plane.local_caller()).await;
    /// assert_eq!(&**found.tools[0].tool.name(), "get_weather");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn search(&self, request: &SearchRequest, caller: &Caller) -> FoundTools {
        let snapshot = self.registry().load().await;
        self.search_in(&snapshot, request, caller).await
    }

    /// Finds tools as [`Toolplane::search`] does, among those that this client can use, and waits for each server no longer than
    /// `wait`: see [`Toolplane::list_within_for`].
    ///
    /// # Cancellation
    /// Dropping the future ends the search. Servers that are starting continue to start.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn search_within_for(
        &self,
        request: &SearchRequest,
        caller: &Caller,
        client: &ClientIdentity,
        wait: Duration,
    ) -> FoundTools {
        let snapshot = self.registry().load_within_for(client, wait).await;
        self.search_in(&snapshot, request, caller).await
    }

    async fn search_in(
        &self,
        snapshot: &Arc<Snapshot>,
        request: &SearchRequest,
        caller: &Caller,
    ) -> FoundTools {
        let discovery = &self.0.discovery;
        let view = self.view_of(snapshot, caller);
        let rules = self.0.rules.load().clone();
        let catalogue = discovery.catalogues.get(&view, &rules).await;
        let mut warnings = Vec::new();
        let vectors = self
            .query_vectors(&catalogue, (snapshot, &view), request, &mut warnings)
            .await;
        let usage = catalogue.usage(discovery.usage(), &caller.tenant);
        let results = self.rank(catalogue, request, usage, vectors).await;
        let tools = results.hits.into_iter().filter_map(|hit| {
            Some(FoundTool {
                tool: view.tools().get(hit.document)?.clone(),
                score: hit.score,
                is_by_name: hit.is_by_name,
                queries: hit.queries,
            })
        });
        let found = FoundTools {
            tools: tools.collect(),
            unmatched: results.unmatched,
            nearest: results.nearest,
            missing: self.missing_for(caller),
            warnings,
        };
        let hide = |query: &str| self.0.redactor.hide_in_text(query).into_owned();
        discovery
            .recent
            .add(request, &found, caller, self.0.clock.now(), hide);
        found
    }

    /// Returns the tools, at most `limit`, that a caller finds for a sentence, and those that it would find if there were this tool
    /// as well. `None` if the caller may see so many tools that an index would have to be built first.
    pub(crate) async fn find_beside(
        &self,
        caller: &Caller,
        sentence: &str,
        new: &Descriptor,
        limit: usize,
    ) -> Option<FoundBeside> {
        let view = self.cached_view(caller);
        if view.tools().len() > MAX_INDEXED {
            return None;
        }
        let rules = self.0.rules.load().clone();
        let catalogue = self.0.discovery.catalogues.get(&view, &rules).await;
        let request = SearchRequest::new(sentence).limit(limit);
        let found = catalogue.index.search(&request, &SearchScope::default());
        let rivals = found.hits.iter().filter_map(|hit| view.tools().get(hit.document));
        let rivals: Vec<_> = rivals.filter(|tool| *tool.name() != new.name).cloned().collect();
        let documents = rivals.iter().map(|tool| catalogue::document(tool));
        let index = ToolIndex::build(documents.chain([catalogue::document_of(new)]));
        let found = index.search(&request, &SearchScope::default());
        let names = found.hits.into_iter().map(|hit| hit.name).collect();
        Some(FoundBeside { rivals, names })
    }

    /// Searches an index. The comparison of many vectors takes milliseconds, and gets a thread for blocking work.
    async fn rank(
        &self,
        catalogue: Arc<Catalogue>,
        request: &SearchRequest,
        usage: Arc<UsageIndex>,
        queries: Option<Vec<Vec<f32>>>,
    ) -> SearchResults {
        let is_long =
            queries.is_some() && catalogue.vectors.get().is_some() && catalogue.index.len() > MAX_COMPARED;
        let search = {
            let (plane, request) = (self.clone(), request.clone());
            move || {
                let index = &catalogue.index;
                let measured = |document: usize| plane.measured(index.name(document));
                let mut scope = SearchScope::default().measured(&measured).usage(&usage);
                if let (Some(tools), Some(queries)) = (catalogue.vectors.get(), &queries) {
                    scope = scope.vectors(tools, queries);
                }
                index.search(&request, &scope)
            }
        };
        match is_long {
            // It fails only if the runtime ends meanwhile.
            true => spawn_blocking(search).await.unwrap_or_default(),
            false => search(),
        }
    }

    fn measured(&self, name: &str) -> MeasuredTool {
        let report = tool_core::Health::tool(&*self.0.watch.book, name);
        if report.n_calls < MIN_MEASURED {
            return MeasuredTool::default();
        }
        let sla = report.success_rate().map(|rate| rate * 100.0);
        MeasuredTool::new(sla, Some(report.p50))
    }
}
