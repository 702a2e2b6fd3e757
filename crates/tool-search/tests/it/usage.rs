//! Usage: queries that led to successful calls.

use proptest::{collection::vec, prelude::*, sample::select};
use tool_search::{
    MemoryUsageLog, SearchRequest, SearchScope, ToolDocument, ToolIndex, UsageIndex, UsageLog, UsageRecord,
};

const WORDS: &[&str] = &[
    "weather", "forecast", "city", "rain", "issue", "mail", "file", "umbrella",
];

fn document(words: &[&str]) -> ToolDocument {
    let mut document = ToolDocument::new(format!("tool_{}", words.len()));
    document.description = words.join(" ");
    document
}

fn ranked(index: &ToolIndex, query: &str, limit: usize, usage: Option<&UsageIndex>) -> Vec<usize> {
    let scope = SearchScope::default();
    let scope = match usage {
        Some(usage) => scope.usage(usage),
        None => scope,
    };
    let results = index.search(&SearchRequest::new(query).limit(limit), &scope);
    results.hits.iter().map(|hit| hit.document).collect()
}

proptest! {
    /// Whatever was recorded, the best tool without usage stays among the first two, and the second best among the first four.
    #[test]
    fn usage_is_never_decisive_alone(
        documents in vec(vec(select(WORDS), 0..6), 1..12),
        records in vec((0_usize..12, vec(select(WORDS), 1..5), 1_u32..1_000_000), 0..30),
        query in vec(select(WORDS), 2..5),
        limit in 1_usize..10,
    ) {
        let named = documents.iter().enumerate().map(|(number, words)| {
            let mut document = document(words);
            document.name = format!("tool{number}").into();
            document
        });
        let index = ToolIndex::build(named);
        let records: Vec<_> = records
            .iter()
            .map(|(tool, words, n)| UsageRecord::new(format!("tool{tool}"), words.join(" "), *n))
            .collect();
        let usage = UsageIndex::build(&index, &records);
        let query = query.join(" ");
        let free = ranked(&index, &query, limit, None);
        let with_usage = ranked(&index, &query, limit, Some(&usage));
        // Usage neither finds something for a query that nothing fits, nor removes the best.
        prop_assert_eq!(free.is_empty(), with_usage.is_empty());
        prop_assert!(with_usage.len() <= limit);
        let place = |place: usize| {
            let document = free.get(place)?;
            Some(with_usage.iter().position(|other| other == document))
        };
        if let Some(first) = place(0) {
            let bound = if limit == 1 { 0 } else { 1 };
            prop_assert!(first.is_some_and(|first| first <= bound), "{:?} {:?}", free, with_usage);
        }
        if let (Some(second), true) = (place(1), limit >= 4) {
            prop_assert!(second.is_some_and(|second| second <= 3), "{:?} {:?}", free, with_usage);
        }
        let mut distinct = with_usage.clone();
        distinct.sort_unstable();
        distinct.dedup();
        prop_assert_eq!(distinct.len(), with_usage.len());
    }

    #[test]
    fn more_calls_never_lower_a_tool(n_calls in 1_u32..100_000) {
        let index = ToolIndex::build([document(&["weather", "city"]), document(&["weather", "rain", "city"])]);
        let place = |n_calls| {
            let usage = UsageIndex::build(&index, &[UsageRecord::new("tool_3", "weather umbrella", n_calls)]);
            let ranked = ranked(&index, "weather umbrella city", 8, Some(&usage));
            ranked.iter().position(|document| *document == 1)
        };
        prop_assert!(place(n_calls) <= place(1));
    }
}

#[test]
fn usage_lifts_a_tool_among_equals() {
    let mut others: Vec<_> = (0..6).map(|_| document(&["weather", "city"])).collect();
    for (number, document) in others.iter_mut().enumerate() {
        document.name = format!("tool{number}").into();
    }
    let index = ToolIndex::build(others);
    assert_eq!(ranked(&index, "weather of a city", 3, None), [0, 1, 2]);
    let usage = UsageIndex::build(&index, &[UsageRecord::new("tool5", "weather", 3)]);
    assert_eq!(ranked(&index, "weather of a city", 3, Some(&usage)), [5, 0, 1]);
}

#[test]
fn a_usage_log_is_bounded_and_keeps_tenants_apart() {
    let log = MemoryUsageLog::default();
    for number in 0..5000 {
        log.record("one", &format!("tool{number}"), "a query");
    }
    for number in 0..100 {
        log.record("one", "tool4999", &format!("query {number} {}", "é".repeat(300)));
        log.record("one", "tool4999", "again");
    }
    let records = log.records("one");
    let of_last: Vec<_> = records
        .iter()
        .filter(|record| &*record.tool == "tool4999")
        .collect();
    assert_eq!(of_last.len(), 32);
    assert!(records.iter().all(|record| record.query.len() <= 256));
    assert!(records.len() < 4096 + 32);
    assert!(log.records("two").is_empty());
    assert_eq!(log.revision("two"), 0);
    let before = log.revision("one");
    log.record("one", "t", "q");
    assert_ne!(log.revision("one"), before);
    assert_eq!(log.records("one").last(), Some(&UsageRecord::new("t", "q", 1)));
}
