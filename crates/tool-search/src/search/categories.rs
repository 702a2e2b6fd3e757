use super::{CategoryKind, ToolCategory, rank::Ranking};
use crate::ToolIndex;

/// Maximum number of categories.
const MAX_CATEGORIES: usize = 10;

/// Returns the categories whose tools have most in common with the queries of these rankings, and after them the largest
/// ones. Counts only tools that can be found.
pub(super) fn nearest(
    index: &ToolIndex,
    rankings: &[&Ranking],
    admits: &dyn Fn(usize) -> bool,
) -> Vec<ToolCategory> {
    let n_words = index.facets.n_words();
    let (mut counts, mut scores) = (vec![0_usize; n_words], vec![0.0_f32; n_words]);
    for document in (0..index.len()).filter(|document| admits(*document)) {
        for word in index.facets.of(document) {
            counts[*word as usize] += 1;
        }
    }
    for &(document, score) in rankings.iter().flat_map(|ranking| &ranking.weak) {
        for word in index.facets.of(document as usize) {
            scores[*word as usize] += score;
        }
    }
    let is_shown = |word: &usize| {
        let (kind, _) = index.facets.word(u32::try_from(*word).unwrap_or(u32::MAX));
        counts[*word] > 0 && *kind != CategoryKind::Permission
    };
    let mut words: Vec<usize> = (0..n_words).filter(is_shown).collect();
    words.sort_by(|a, b| {
        let by_score = scores[*b].total_cmp(&scores[*a]);
        by_score.then(counts[*b].cmp(&counts[*a])).then(a.cmp(b))
    });
    words.truncate(MAX_CATEGORIES);
    let category = |word: usize| {
        let (kind, name) = index.facets.word(u32::try_from(word).unwrap_or(u32::MAX));
        ToolCategory {
            kind: *kind,
            name: name.clone(),
            n_tools: counts[word],
        }
    };
    words.into_iter().map(category).collect()
}
