use tool_search::{SearchRequest, SearchScope, ToolDocument, ToolIndex};

use crate::CatalogEntry;

/// Maximum number of results.
const MAX_RESULTS: usize = 100;

/// Finds entries by what they do, best first: by their names, titles, descriptions and tags. Of several versions the newest
/// release is found. Without a query, returns the newest version of everything, in the order of the names.
#[must_use]
pub fn search<'a>(entries: &[&'a CatalogEntry], query: &str) -> Vec<&'a CatalogEntry> {
    let mut sorted: Vec<&CatalogEntry> = entries.to_vec();
    sorted.sort_by(|a, b| a.order(b));
    let groups = sorted.chunk_by(|a, b| a.name == b.name && a.kind == b.kind);
    let newest: Vec<&CatalogEntry> = groups.filter_map(newest).collect();
    if query.trim().is_empty() {
        return newest;
    }
    // The place in the list is the name in the index: a tool and a server may have the same name.
    let documents = newest.iter().enumerate().map(|(number, entry)| {
        let mut document = ToolDocument::new(number.to_string());
        document.title = entry.title.clone().unwrap_or_default();
        document.description.clone_from(&entry.description);
        document.tags.clone_from(&entry.tags);
        document.aliases = vec![entry.name.clone()];
        document.aliases.extend(entry.name.split('/').map(str::to_owned));
        document
    });
    let index = ToolIndex::build(documents);
    let request = SearchRequest::new(query).limit(MAX_RESULTS);
    let results = index.search(&request, &SearchScope::default());
    let mut found: Vec<&CatalogEntry> = results
        .hits
        .iter()
        .filter_map(|hit| newest.get(hit.name.parse::<usize>().ok()?).copied())
        .collect();
    let exact = found.iter().position(|entry| entry.name == query.trim());
    if let Some(exact) = exact {
        found[..=exact].rotate_right(1);
    }
    found
}

/// Returns the newest release, or else the newest version, of those in the order of their versions.
fn newest<'a>(versions: &[&'a CatalogEntry]) -> Option<&'a CatalogEntry> {
    let release = versions.iter().rfind(|version| version.is_release());
    release.or(versions.last()).copied()
}
