//! Measures search on a folder with `tools.jsonl` and `queries.jsonl`: quality, latency, build time and size. Run by
//! `cargo xtask search-eval`.
//!
//! A tool is `{id, name, description, input_schema, source[, server, server_description]}`, a query is
//! `{id, query, relevant: [tool ids], source}`. Each query is ranked among the tools of its own source.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program that measures and prints"
)]

mod data;
mod quality;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use tool_search::{SearchRequest, SearchScope, ToolDocument, ToolIndex};

use self::{
    data::{Failure, Query},
    quality::DEPTH,
};

/// Number of tools of the large catalogue.
const LARGE: usize = 100_000;

fn main() -> Result<(), Failure> {
    let folder = std::env::args().nth(1).ok_or("usage: evaluate FOLDER")?;
    let (tools, queries) = data::read(Path::new(&folder))?;
    println!("{} tools, {} queries", tools.len(), queries.len());
    let pools = quality::pools(&tools, &queries);
    quality::print(&pools, &queries, |pool, number| {
        let request = SearchRequest::new(queries[number].text.as_str()).limit(DEPTH);
        let results = pool.index.search(&request, &SearchScope::default());
        results.hits.iter().map(|hit| hit.document).collect()
    });
    println!();
    let documents: Vec<_> = tools.iter().map(|tool| tool.document.clone()).collect();
    speed("as given", &documents, &queries);
    let copies: Vec<_> = perturbed(&documents).take(LARGE).collect();
    speed("perturbed copies", &copies, &queries);
    Ok(())
}

/// Prints the build time, the size and the latency of an index of these tools.
fn speed(name: &str, documents: &[ToolDocument], queries: &[Query]) {
    let input = documents.to_vec();
    let start = Instant::now();
    let index = ToolIndex::build(input);
    let built = start.elapsed();
    let mut times: Vec<Duration> = Vec::with_capacity(queries.len());
    for query in queries {
        let request = SearchRequest::new(query.text.as_str()).limit(DEPTH);
        let start = Instant::now();
        let results = index.search(&request, &SearchScope::default());
        times.push(start.elapsed());
        assert!(results.hits.len() <= DEPTH);
    }
    times.sort_unstable();
    let percentile =
        |share: usize| milliseconds(times.get(times.len() * share / 100).copied().unwrap_or_default());
    println!(
        "{} tools, {name}: built in {:.0} ms, {} terms, {} bytes per tool; search p50 {:.2} ms, p95 {:.2} ms, p99 {:.2} ms",
        documents.len(),
        milliseconds(built),
        index.n_terms(),
        index.size() / documents.len().max(1),
        percentile(50),
        percentile(95),
        percentile(99),
    );
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Repeats the tools without end. In each copy the name gets a number, and one word in eight of the description is exchanged
/// for a word of another tool.
fn perturbed(documents: &[ToolDocument]) -> impl Iterator<Item = ToolDocument> {
    let words: Vec<&str> = documents
        .iter()
        .flat_map(|document| document.description.split_whitespace())
        .collect();
    // Knuth's generator (MMIX): the same copies at each run.
    let mut state = 1_u64;
    let mut random = move |limit: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap_or_default() % limit.max(1)
    };
    let rounds = (0..).flat_map(move |round| documents.iter().map(move |document| (round, document)));
    rounds.map(move |(round, document)| {
        let mut copy = document.clone();
        if round > 0 {
            copy.name = format!("{}_{round}", document.name).into();
            let mut description: Vec<&str> = document.description.split_whitespace().collect();
            for word in &mut description {
                if random(8) == 0 {
                    *word = words[random(words.len())];
                }
            }
            copy.description = description.join(" ");
        }
        copy
    })
}
