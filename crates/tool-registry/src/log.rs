//! Log lines for entries of sources that are left out of a new snapshot, or that somebody should look at.

use std::collections::{HashMap, HashSet};

use tool_core::ListWarning;

use crate::{Snapshot, snapshot::Refused};

/// Maximum number of lines for the entries of one source in one snapshot. A source may list thousands.
const MAX_LINES: usize = 20;

/// Logs the refused entries and the warnings that `before` did not have.
pub(crate) fn log_news(before: &Snapshot, now: &Snapshot) {
    log_refused(before, now);
    let known: HashSet<&(String, ListWarning)> = before.warnings.iter().collect();
    for warning in now.warnings.iter().filter(|warning| !known.contains(warning)) {
        let (source, warning) = warning;
        tracing::warn!(source, kind = warning.kind, "{warning}");
    }
}

fn log_refused(before: &Snapshot, now: &Snapshot) {
    let known: HashSet<_> = before.refused.iter().map(identity).collect();
    let mut counts = HashMap::<&str, usize>::new();
    for refused in now
        .refused
        .iter()
        .filter(|refused| !known.contains(&identity(refused)))
    {
        let count = counts.entry(&refused.source).or_default();
        *count += 1;
        if *count <= MAX_LINES {
            tracing::warn!(
                source = refused.source,
                name = refused.name,
                "{} not offered: {}",
                refused.feature.as_str(),
                refused.reason
            );
        }
    }
    for (source, count) in counts.into_iter().filter(|(_, count)| *count > MAX_LINES) {
        let count = count - MAX_LINES;
        tracing::warn!(
            source,
            count,
            "{count} more entries of `{source}` are not offered"
        );
    }
}

fn identity(refused: &RefusedFeature) -> impl Eq + std::hash::Hash + '_ {
    (
        refused.feature,
        &*refused.source,
        &*refused.name,
        &*refused.reason,
    )
}
