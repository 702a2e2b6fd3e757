//! Search in an index: requests, results, and the ranking in between.

mod categories;
mod merge;
mod order;
mod rank;
mod request;
mod results;
mod scope;

pub use self::{
    request::{SearchFilter, SearchOrder, SearchRequest},
    results::{CategoryKind, SearchHit, SearchResults, ToolCategory},
    scope::{MeasuredTool, SearchScope},
};

use self::{categories::nearest, merge::interleave, order::sort_hits, rank::Ranking};
use crate::ToolIndex;

impl ToolIndex {
    /// Finds tools. Each query is ranked for itself, and the lists are interleaved: first the best result of each query, then
    /// the second best, so that no query crowds out another. Without a query, all tools that pass the filter are found.
    ///
    /// The first results are tools whose name or alias is the query, then those whose name begins with it, and then the others
    /// by their score. A query of which no tool contains enough finds nothing, and the results name the nearest categories.
    #[must_use]
    pub fn search(&self, request: &SearchRequest, scope: &SearchScope<'_>) -> SearchResults {
        let Some(filter) = request.filter.resolve(&self.facets) else {
            // No tool has one of the words.
            return self.nothing(request, scope);
        };
        let admits = |document: usize| filter.admits(&self.facets, document) && scope.admits(document);
        if request.queries.is_empty() {
            let documents = (0..self.len()).filter(|document| admits(*document));
            let hits = documents.map(|document| SearchHit::new(self, document, 0.0));
            let mut hits: Vec<_> = match request.order {
                SearchOrder::Relevance => hits.take(request.limit).collect(),
                _ => hits.collect(),
            };
            sort_hits(self, request.order, scope, &mut hits);
            hits.truncate(request.limit);
            return match hits.is_empty() {
                true => self.nothing(request, scope),
                false => SearchResults::found(hits),
            };
        }
        if request.filter != SearchFilter::default() && !(0..self.len()).any(admits) {
            // As if no tool had the words: the answer does not show that tools have them which cannot be found.
            return self.nothing(request, scope);
        }
        // Results that are ordered by another property come from a larger pool.
        let n_ranked = match request.order {
            SearchOrder::Relevance => request.limit,
            _ => request.limit.saturating_mul(order::POOL),
        };
        let rankings: Vec<Ranking> = (0..request.queries.len())
            .map(|number| self.rank(request, number, n_ranked, scope, &admits))
            .collect();
        let unmatched: Vec<usize> = (0..rankings.len())
            .filter(|number| rankings[*number].hits.is_empty())
            .collect();
        let mut hits = interleave(&rankings, n_ranked);
        sort_hits(self, request.order, scope, &mut hits);
        hits.truncate(request.limit);
        let nearest = match unmatched.is_empty() {
            true => Vec::new(),
            false => nearest(
                self,
                &unmatched
                    .iter()
                    .map(|number| &rankings[*number])
                    .collect::<Vec<_>>(),
                &admits,
            ),
        };
        SearchResults {
            hits,
            unmatched,
            nearest,
        }
    }

    /// Returns results without a tool, with the largest categories.
    fn nothing(&self, request: &SearchRequest, scope: &SearchScope<'_>) -> SearchResults {
        SearchResults {
            hits: Vec::new(),
            unmatched: (0..request.queries.len()).collect(),
            nearest: nearest(self, &[], &|document| scope.admits(document)),
        }
    }
}
