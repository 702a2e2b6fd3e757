use super::{SearchHit, rank::Ranking};

/// Interleaves the lists of several queries: the best of each, then the second best of each. A tool that several queries
/// found stands once, where the first of them puts it, and takes no turn of the others.
pub(super) fn interleave(rankings: &[Ranking], limit: usize) -> Vec<SearchHit> {
    if let [ranking] = rankings {
        return ranking.hits.iter().take(limit).cloned().collect();
    }
    let mut hits: Vec<SearchHit> = Vec::new();
    let mut rest: Vec<_> = rankings.iter().map(|ranking| ranking.hits.iter()).collect();
    loop {
        let mut is_over = true;
        for list in &mut rest {
            if hits.len() >= limit {
                break;
            }
            let next = list.find(|hit| hits.iter().all(|taken| taken.document != hit.document));
            if let Some(hit) = next {
                hits.push(hit.clone());
                is_over = false;
            }
        }
        if is_over {
            break;
        }
    }
    for hit in &mut hits {
        let found = rankings.iter().enumerate();
        let found = found.filter_map(|(number, ranking)| {
            let same = ranking.hits.iter().find(|other| other.document == hit.document)?;
            Some((number, same))
        });
        hit.queries.clear();
        for (number, same) in found {
            hit.queries.push(number);
            hit.score = hit.score.max(same.score);
            hit.is_by_name |= same.is_by_name;
        }
    }
    hits
}
