use super::{SearchHit, SearchRequest, SearchScope};
use crate::{
    ToolIndex,
    vectors::{self, MIN_COSINE},
};

/// Minimum score of the best tool, in units of a word that only one tool has: what a third of such a word, or some more frequent
/// words, contribute. Below it, tools match by accident.
const MIN_EVIDENCE: f32 = 1.0 / 3.0;
/// Minimum share of the maximum score, which is sufficient as well: a short query of frequent words. So is half of the query's
/// words: where all tools are about one thing, its name weighs nothing.
const MIN_SCORE: f32 = 0.25;

/// Number of the best tools of which one has to fit.
const N_JUDGED: usize = 5;

/// Number of weak matches that are kept in order to name the nearest categories.
const N_WEAK: usize = 50;

/// Minimum length of a beginning of a name, in bytes.
const MIN_PREFIX: usize = 2;

/// Ranked tools of one query.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    /// Tools in their order; empty if none fits.
    pub(super) hits: Vec<SearchHit>,
    /// If none fits: the best ones nonetheless, with their scores.
    pub(super) weak: Vec<(u32, f32)>,
}

/// Scores of the tools that have something in common with a query.
struct Scores {
    /// Scores by document; 0 without a match.
    by_document: Vec<f32>,
    /// Documents with a score.
    matched: Vec<u32>,
}

type Admits<'a> = &'a dyn Fn(usize) -> bool;

impl ToolIndex {
    /// Ranks the tools for one query of a request.
    pub(super) fn rank(
        &self,
        request: &SearchRequest,
        number: usize,
        limit: usize,
        scope: &SearchScope<'_>,
        admits: Admits<'_>,
    ) -> Ranking {
        let query = request.queries[number].trim();
        let terms = self.analyzer.query(query);
        let (known, max_score) = self.weigh(&terms);
        let lexical = self.score(&known, max_score);
        let vectors = scope
            .vectors
            .and_then(|(tools, queries)| Some((tools, queries.get(number)?)));
        let fused =
            vectors.and_then(|(tools, query)| vectors::fuse(tools, query, &lexical.by_document, admits));
        let is_semantic_match = |document: u32| {
            fused
                .as_ref()
                .is_some_and(|fused| fused.cosine(document) >= MIN_COSINE)
        };
        let candidates = match &fused {
            Some(fused) => fused.candidates(),
            None => lexical.candidates(),
        };
        let mut free = best(candidates.clone(), limit, admits);
        let named = self.by_name(query, limit, &lexical, admits);
        let min_score = (MIN_EVIDENCE * self.inverse_frequency(1) / max_score).min(MIN_SCORE);
        let n_terms = terms.known.len() + terms.unknown.len();
        let is_match = |(document, _): &(u32, f32)| {
            lexical.by_document[*document as usize] >= min_score
                || self.n_contained(&terms.known, *document) * 2 >= n_terms
                || is_semantic_match(*document)
        };
        if named.is_empty() && !free.iter().take(N_JUDGED).any(is_match) {
            free.truncate(N_WEAK);
            return Ranking {
                hits: Vec::new(),
                weak: free,
            };
        }
        let ranked = match scope.usage {
            Some(usage) => {
                let boosted = usage.boost(self, &terms, max_score, candidates);
                merge_usage(&free, &best(boosted, limit, admits), limit)
            }
            None => free,
        };
        let is_named = |document: u32| named.iter().any(|(known, _)| *known == document);
        let hits = named.iter().map(|(document, score)| (*document, *score, true));
        let rest = ranked.iter().filter(|(document, _)| !is_named(*document));
        let hits = hits.chain(rest.map(|(document, score)| (*document, *score, false)));
        let hit = |(document, score, is_by_name): (u32, f32, bool)| SearchHit {
            is_by_name,
            queries: vec![number],
            ..SearchHit::new(self, document as usize, score)
        };
        Ranking {
            hits: hits.take(limit).map(hit).collect(),
            weak: Vec::new(),
        }
    }

    /// Adds up the scores of a query's terms, relative to the maximum score. Every posting is read: for catalogues of this
    /// size that takes less time than deciding which to skip.
    fn score(&self, terms: &[crate::index::WeightedTerm], max_score: f32) -> Scores {
        let mut scores = Scores {
            by_document: vec![0.0; self.len()],
            matched: Vec::new(),
        };
        if max_score <= 0.0 {
            return scores;
        }
        for term in terms {
            let weight = term.weight / max_score;
            for posting in self.postings(term.term) {
                let score = &mut scores.by_document[posting.document as usize];
                if *score == 0.0 {
                    scores.matched.push(posting.document);
                }
                *score += weight * posting.impact;
            }
        }
        scores
    }

    /// Returns the number of the terms that a tool contains.
    fn n_contained(&self, terms: &[u32], document: u32) -> usize {
        let contains = |term: &&u32| {
            let postings = self.postings(**term);
            postings
                .binary_search_by_key(&document, |posting| posting.document)
                .is_ok()
        };
        terms.iter().filter(contains).count()
    }

    /// Returns the tools whose name or alias is the query, and after them those whose name begins with it, best first. The latter
    /// take at most half of the places: a word such as `get` begins many names.
    fn by_name(&self, query: &str, limit: usize, lexical: &Scores, admits: Admits<'_>) -> Vec<(u32, f32)> {
        let lower = query.to_lowercase();
        let is_word = lower.len() >= MIN_PREFIX && !lower.contains(char::is_whitespace);
        let keys = self
            .names
            .with_prefix(&lower)
            .filter(|(document, is_whole)| (*is_whole || is_word) && admits(*document as usize));
        let (mut whole, mut begun): (Vec<_>, Vec<_>) = keys.partition(|(_, is_whole)| *is_whole);
        let by_score = |(a, _): &(u32, bool), (b, _): &(u32, bool)| {
            let score = |document: &u32| lexical.by_document[*document as usize];
            score(b).total_cmp(&score(a)).then(a.cmp(b))
        };
        whole.sort_unstable_by(by_score);
        begun.sort_unstable_by(by_score);
        let is_whole = |document: u32| whole.iter().any(|(known, _)| *known == document);
        begun.retain(|(document, _)| !is_whole(*document));
        begun.dedup();
        begun.truncate(limit.div_ceil(2));
        whole.dedup();
        let named = whole.into_iter().map(|(document, _)| (document, 1.0));
        let begun = begun
            .into_iter()
            .map(|(document, _)| (document, lexical.by_document[document as usize]));
        named.chain(begun).take(limit).collect()
    }
}

impl Scores {
    fn candidates(&self) -> Vec<(u32, f32)> {
        let candidate = |document: &u32| (*document, self.by_document[*document as usize]);
        self.matched.iter().map(candidate).collect()
    }
}

/// Returns the best candidates that are admitted, best first; of equal ones, those with the lower position. Asks whether a
/// candidate is admitted only if it may be among the best.
fn best(mut candidates: Vec<(u32, f32)>, limit: usize, admits: Admits<'_>) -> Vec<(u32, f32)> {
    let order = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    let mut best = Vec::with_capacity(limit.min(candidates.len()));
    let mut rest = &mut candidates[..];
    let mut size = limit.saturating_mul(2);
    while best.len() < limit && !rest.is_empty() {
        if rest.len() > size {
            rest.select_nth_unstable_by(size - 1, order);
        }
        let (next, others) = rest.split_at_mut(size.min(rest.len()));
        next.sort_unstable_by(order);
        best.extend(
            next.iter()
                .filter(|(document, _)| admits(*document as usize))
                .take(limit - best.len()),
        );
        rest = others;
        size = size.saturating_mul(4);
    }
    best
}

/// Merges the ranking with usage and the one without, so that usage is never decisive alone: the first tool without usage is
/// among the first two results (and is the only result if there is only one), and the second one among the first four.
fn merge_usage(free: &[(u32, f32)], boosted: &[(u32, f32)], limit: usize) -> Vec<(u32, f32)> {
    let mut merged: Vec<(u32, f32)> = Vec::with_capacity(limit);
    let mut boosted = boosted.iter();
    while merged.len() < limit {
        let is_missing = |place: usize| {
            let tool = free.get(place)?;
            merged
                .iter()
                .all(|(document, _)| *document != tool.0)
                .then_some(*tool)
        };
        let reserved = match merged.len() {
            0 if limit == 1 => is_missing(0),
            1 => is_missing(0),
            3 => is_missing(1),
            _ => None,
        };
        let next = reserved.or_else(|| {
            boosted
                .find(|(document, _)| merged.iter().all(|(taken, _)| taken != document))
                .copied()
        });
        let Some(next) = next else { break };
        merged.push(next);
    }
    merged
}
