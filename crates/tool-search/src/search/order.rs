use std::cmp::Ordering;

use super::{SearchHit, SearchOrder, SearchScope};
use crate::ToolIndex;

/// Number of ranked tools for each result that is ordered by something other than its score.
pub(super) const POOL: usize = 4;

/// Minimum share of the best score that a tool needs in order to be sorted by another property.
const MIN_SHARE: f32 = 0.5;

/// Sorts results by another property than their score. Results that fit much less than the best one are removed first, or
/// the most reliable tool would win that hardly fits.
pub(super) fn sort_hits(
    index: &ToolIndex,
    order: SearchOrder,
    scope: &SearchScope<'_>,
    hits: &mut Vec<SearchHit>,
) {
    if order == SearchOrder::Relevance {
        return;
    }
    let best = hits.iter().map(|hit| hit.score).fold(0.0, f32::max);
    hits.retain(|hit| hit.is_by_name || hit.score >= best * MIN_SHARE);
    let key = |hit: &SearchHit| {
        let measured = scope.measure(hit.document);
        match order {
            SearchOrder::Sla => {
                let sla = measured.sla.or_else(|| index.sla(hit.document));
                sla.map_or(f64::INFINITY, |sla| -sla)
            }
            _ => {
                let latency = measured.latency.or_else(|| index.latency(hit.document));
                latency.map_or(f64::INFINITY, |latency| latency.as_secs_f64())
            }
        }
    };
    // Stable: equal ones stay in the order of their scores.
    hits.sort_by_cached_key(|hit| TotalOrder(key(hit)));
}

/// Number with a total order.
#[derive(Clone, Copy)]
struct TotalOrder(f64);

impl Ord for TotalOrder {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for TotalOrder {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for TotalOrder {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for TotalOrder {}
