//! Queries that led to successful calls, as an additional field of the tools.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use foldhash::fast::RandomState;
use parking_lot::Mutex;

use crate::{
    ToolIndex,
    text::{Analyzer, QueryTerms},
};

/// Weight of usage: the share of the maximum score that it can add. Measured on queries that were kept apart: with it, tools
/// that were used before gain, and those that were not lose next to nothing.
const WEIGHT: f32 = 0.15;
/// Number of successful calls at which a term has half of its maximum effect.
const HALF: f32 = 2.0;
/// Maximum number of tools of a tenant in a [`MemoryUsageLog`]. The one that was recorded first is dropped.
const MAX_TOOLS: usize = 4096;
/// Maximum number of queries of a tool in a [`MemoryUsageLog`]. The one that was recorded first is dropped.
const MAX_QUERIES: usize = 32;
/// Maximum size of a recorded query, in bytes.
const MAX_QUERY: usize = 256;

/// Query that led to successful calls of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsageRecord {
    /// Name of the tool.
    pub tool: Arc<str>,
    /// Query by which it was found.
    pub query: Arc<str>,
    /// Number of successful calls.
    pub n_calls: u32,
}

impl UsageRecord {
    /// Creates a record.
    #[must_use]
    pub fn new(tool: impl Into<Arc<str>>, query: impl Into<Arc<str>>, n_calls: u32) -> Self {
        Self {
            tool: tool.into(),
            query: query.into(),
            n_calls,
        }
    }
}

/// Port that keeps the queries which led to successful calls. Tenants do not see each other's. An implementation that writes
/// to a disk does so in the background: nothing here waits.
pub trait UsageLog: Send + Sync {
    /// Records that a tool which this query found was called with success.
    fn record(&self, tenant: &str, tool: &str, query: &str);

    /// Returns the records of a tenant.
    fn records(&self, tenant: &str) -> Vec<UsageRecord>;

    /// Returns a number that changes with every change of a tenant's records.
    fn revision(&self, tenant: &str) -> u64;
}

/// Usage log in memory, bounded: 4,096 tools for each tenant and 32 queries for each tool.
#[derive(Debug, Default)]
pub struct MemoryUsageLog(Mutex<HashMap<Box<str>, TenantUsage, RandomState>>);

/// Queries of a tool, each with its number of calls, in the order in which they were first recorded.
type RecordedQueries = VecDeque<(Arc<str>, u32)>;

#[derive(Debug, Default)]
struct TenantUsage {
    revision: u64,
    tools: HashMap<Arc<str>, RecordedQueries, RandomState>,
    /// Tools in the order in which they were first recorded.
    order: VecDeque<Arc<str>>,
}

impl UsageLog for MemoryUsageLog {
    fn record(&self, tenant: &str, tool: &str, query: &str) {
        let query = &query[..query.floor_char_boundary(MAX_QUERY)];
        let mut tenants = self.0.lock();
        let usage = match tenants.get_mut(tenant) {
            Some(usage) => usage,
            None => tenants.entry(tenant.into()).or_default(),
        };
        usage.revision += 1;
        if !usage.tools.contains_key(tool) {
            if usage.order.len() >= MAX_TOOLS
                && let Some(first) = usage.order.pop_front()
            {
                usage.tools.remove(&first);
            }
            let tool: Arc<str> = tool.into();
            usage.order.push_back(tool.clone());
            usage.tools.insert(tool, VecDeque::new());
        }
        let Some(queries) = usage.tools.get_mut(tool) else {
            return;
        };
        match queries.iter_mut().find(|(known, _)| **known == *query) {
            Some((_, n_calls)) => *n_calls = n_calls.saturating_add(1),
            None => {
                if queries.len() >= MAX_QUERIES {
                    queries.pop_front();
                }
                queries.push_back((query.into(), 1));
            }
        }
    }

    fn records(&self, tenant: &str) -> Vec<UsageRecord> {
        let tenants = self.0.lock();
        let Some(usage) = tenants.get(tenant) else {
            return Vec::new();
        };
        let tools = usage
            .order
            .iter()
            .filter_map(|tool| Some((tool, usage.tools.get(tool)?)));
        let records = tools.flat_map(|(tool, queries)| {
            let record = move |(query, n_calls): &(Arc<str>, u32)| {
                UsageRecord::new(tool.clone(), query.clone(), *n_calls)
            };
            queries.iter().map(record)
        });
        records.collect()
    }

    fn revision(&self, tenant: &str) -> u64 {
        self.0.lock().get(tenant).map_or(0, |usage| usage.revision)
    }
}

/// Index of usage records, for the tools of one [`ToolIndex`].
#[derive(Debug, Default)]
pub struct UsageIndex {
    /// Effect of each term, by tool.
    postings: HashMap<Box<str>, Vec<(u32, f32)>, RandomState>,
}

impl UsageIndex {
    /// Builds the index. Records of tools that the index does not contain are ignored.
    #[must_use]
    pub fn build(index: &ToolIndex, records: &[UsageRecord]) -> Self {
        let documents: HashMap<&str, u32, RandomState> = (0..index.len())
            .filter_map(|document| Some((&**index.name(document), u32::try_from(document).ok()?)))
            .collect();
        let mut counts: HashMap<(Box<str>, u32), u32, RandomState> = HashMap::default();
        let analyzer = Analyzer::default();
        for record in records {
            let Some(document) = documents.get(&*record.tool) else {
                continue;
            };
            // An analyzer without terms knows none: all are returned as text.
            for term in analyzer.query(&record.query).unknown {
                let count = counts.entry((term.into(), *document)).or_default();
                *count = count.saturating_add(record.n_calls);
            }
        }
        let mut postings: HashMap<Box<str>, Vec<(u32, f32)>, RandomState> = HashMap::default();
        for ((term, document), count) in counts {
            let count = count as f32;
            postings
                .entry(term)
                .or_default()
                .push((document, count / (count + HALF)));
        }
        Self { postings }
    }

    /// Returns the candidates with the effect of usage added to their scores, and those that only usage knows.
    pub(crate) fn boost(
        &self,
        index: &ToolIndex,
        terms: &QueryTerms,
        max_score: f32,
        candidates: Vec<(u32, f32)>,
    ) -> Vec<(u32, f32)> {
        let mut added: HashMap<u32, f32, RandomState> = HashMap::default();
        let known = terms.known.iter().map(|&term| {
            let weight = index.inverse_frequency(index.postings(term).len());
            (index.analyzer.term(term), weight)
        });
        let unknown = terms
            .unknown
            .iter()
            .map(|term| (term.as_str(), index.inverse_frequency(0)));
        for (term, weight) in known.chain(unknown).filter(|_| max_score > 0.0) {
            for (document, effect) in self.postings.get(term).into_iter().flatten() {
                *added.entry(*document).or_default() += WEIGHT * effect * weight / max_score;
            }
        }
        let mut boosted = candidates;
        for (document, score) in &mut boosted {
            *score += added.remove(document).unwrap_or_default();
        }
        boosted.extend(added);
        boosted
    }
}
