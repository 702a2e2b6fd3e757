//! nDCG and recall.

use std::collections::{BTreeMap, HashMap};

use tool_search::ToolIndex;

use crate::data::{Query, Tool};

/// Number of results that are judged.
pub(crate) const DEPTH: usize = 10;

/// Index of the tools of one source.
pub(crate) struct Pool<'a> {
    pub(crate) index: ToolIndex,
    pub(crate) tools: Vec<&'a Tool>,
}

/// Returns the tools of each source that queries are ranked among.
pub(crate) fn pools<'a>(tools: &'a [Tool], queries: &'a [Query]) -> HashMap<&'a str, Pool<'a>> {
    let mut pools = HashMap::new();
    for source in queries.iter().map(Query::pool) {
        pools.entry(source).or_insert_with(|| {
            let tools: Vec<_> = tools.iter().filter(|tool| tool.source == source).collect();
            let index = ToolIndex::build(tools.iter().map(|tool| tool.document.clone()));
            Pool { index, tools }
        });
    }
    pools
}

#[derive(Default)]
struct Figures {
    n_queries: usize,
    gain: f64,
    recall: f64,
    n_abstained: usize,
}

/// Prints nDCG@10 and recall@10 of each source, and their means over the sources. `rank` returns the positions of the found
/// tools in their pool.
pub(crate) fn print<'a>(
    pools: &HashMap<&str, Pool<'_>>,
    queries: &'a [Query],
    mut rank: impl FnMut(&Pool<'_>, usize) -> Vec<usize>,
) {
    let mut figures: BTreeMap<&'a str, Figures> = BTreeMap::new();
    for (number, query) in queries.iter().enumerate() {
        let pool = &pools[query.pool()];
        let found = rank(pool, number);
        let is_relevant = |place: &usize| {
            let found = found.get(*place).map(|document| &pool.tools[*document].id);
            found.is_some_and(|found| query.relevant.contains(found))
        };
        let places: Vec<usize> = (0..DEPTH).filter(is_relevant).collect();
        let gain = |place: &usize| 1.0 / (*place as f64 + 2.0).log2();
        let ideal: f64 = (0..query.relevant.len().min(DEPTH))
            .map(|place| gain(&place))
            .sum();
        let figure = figures.entry(&query.source).or_default();
        figure.n_queries += 1;
        figure.gain += places.iter().map(gain).sum::<f64>() / ideal.max(f64::MIN_POSITIVE);
        figure.recall += places.len() as f64 / query.relevant.len().max(1) as f64;
        figure.n_abstained += usize::from(found.is_empty());
    }
    let row = |source: &str, n: usize, gain: f64, recall: f64, n_abstained: usize| {
        println!("{source:<20}{n:>8}{gain:>10.4}{recall:>11.4}{n_abstained:>11}");
    };
    println!(
        "\n{:<20}{:>8}{:>10}{:>11}{:>11}",
        "source", "queries", "nDCG@10", "recall@10", "abstained"
    );
    let (mut gain, mut recall, mut n_abstained) = (0.0, 0.0, 0);
    for (source, figure) in &figures {
        let n = figure.n_queries as f64;
        row(
            source,
            figure.n_queries,
            figure.gain / n,
            figure.recall / n,
            figure.n_abstained,
        );
        gain += figure.gain / n / figures.len() as f64;
        recall += figure.recall / n / figures.len() as f64;
        n_abstained += figure.n_abstained;
    }
    row("mean over sources", queries.len(), gain, recall, n_abstained);
}
