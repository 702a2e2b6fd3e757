use crate::{CategoryKind, index::Facets};

/// Default maximum number of results.
const DEFAULT_LIMIT: usize = 8;
/// Maximum number of results.
const MAX_LIMIT: usize = 100;
/// Maximum number of queries. Further ones are ignored.
const MAX_QUERIES: usize = 16;
/// Maximum size of a query, in bytes. The rest is ignored.
const MAX_QUERY: usize = 8 * 1024;

/// Request for a search: queries, filter, order and number of results.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct SearchRequest {
    pub(crate) queries: Vec<String>,
    pub(crate) filter: SearchFilter,
    pub(crate) order: SearchOrder,
    pub(crate) limit: usize,
}

/// Filter of the results: a tool passes if it has all of the capabilities, tags and permissions and, if servers are named,
/// belongs to one of them. Words are compared exactly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchFilter {
    /// Capabilities that the tool has.
    pub capabilities: Vec<String>,
    /// Tags that the tool has.
    pub tags: Vec<String>,
    /// Servers of which the tool belongs to one; any if empty.
    pub servers: Vec<String>,
    /// Permissions that the tool requires of its callers.
    pub permissions: Vec<String>,
}

/// Order of the results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SearchOrder {
    /// Best match first.
    #[default]
    Relevance,
    /// Largest share of successful calls first: measured if there are measurements, otherwise declared. Tools with neither
    /// come last.
    Sla,
    /// Lowest latency first: measured if there are measurements, otherwise declared. Tools with neither come last.
    Latency,
}

impl SearchRequest {
    /// Creates a request with one query, for at most 8 results by relevance.
    pub fn new(query: impl Into<String>) -> Self {
        Self::all().query(query)
    }

    /// Creates a request without a query, which finds all tools that pass the filter.
    pub fn all() -> Self {
        Self {
            queries: Vec::new(),
            filter: SearchFilter::default(),
            order: SearchOrder::default(),
            limit: DEFAULT_LIMIT,
        }
    }

    /// Adds a query. At most 16 are considered, and of each at most 8 KiB; an empty one is ignored.
    pub fn query(mut self, query: impl Into<String>) -> Self {
        let mut query = query.into();
        query.truncate(query.floor_char_boundary(MAX_QUERY));
        if self.queries.len() < MAX_QUERIES && !query.trim().is_empty() {
            self.queries.push(query);
        }
        self
    }

    /// Sets the filter.
    pub fn filter(mut self, filter: SearchFilter) -> Self {
        self.filter = filter;
        self
    }

    /// Sets the order.
    pub fn order(mut self, order: SearchOrder) -> Self {
        self.order = order;
        self
    }

    /// Sets the maximum number of results, from 1 to 100.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit.clamp(1, MAX_LIMIT);
        self
    }

    /// Returns the queries.
    #[must_use]
    pub fn queries(&self) -> &[String] {
        &self.queries
    }
}

/// Filter in the numbers of an index.
#[derive(Debug)]
pub(super) struct ResolvedFilter {
    all: Vec<u32>,
    servers: Vec<u32>,
}

impl SearchFilter {
    /// Returns the filter in the numbers of an index, or `None` if no tool can pass it.
    pub(super) fn resolve(&self, facets: &Facets) -> Option<ResolvedFilter> {
        let mut all = Vec::new();
        for (kind, words) in [
            (CategoryKind::Capability, &self.capabilities),
            (CategoryKind::Tag, &self.tags),
            (CategoryKind::Permission, &self.permissions),
        ] {
            for word in words {
                all.push(facets.number(kind, word)?);
            }
        }
        let servers = self
            .servers
            .iter()
            .filter_map(|server| facets.number(CategoryKind::Server, server));
        let servers: Vec<u32> = servers.collect();
        (self.servers.is_empty() || !servers.is_empty()).then_some(ResolvedFilter { all, servers })
    }
}

impl ResolvedFilter {
    pub(super) fn admits(&self, facets: &Facets, document: usize) -> bool {
        if self.all.is_empty() && self.servers.is_empty() {
            return true;
        }
        let words = facets.of(document);
        self.all.iter().all(|word| words.contains(word))
            && (self.servers.is_empty() || self.servers.iter().any(|server| words.contains(server)))
    }
}
