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

use tool_search::{SearchRequest, SearchScope, ToolDocument, ToolIndex, ToolVectors};

use self::{
    data::{Failure, Query},
    quality::DEPTH,
};

/// Number of tools of the large catalogue.
const LARGE: usize = 100_000;
/// Number of components of the vectors of a small model.
const DIMENSIONS: usize = 384;

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
    let mut measure = |scope: &SearchScope<'_>| {
        times.clear();
        for query in queries {
            let request = SearchRequest::new(query.text.as_str()).limit(DEPTH);
            let start = Instant::now();
            let results = index.search(&request, scope);
            times.push(start.elapsed());
            assert!(results.hits.len() <= DEPTH);
        }
        times.sort_unstable();
        let percentile =
            |share: usize| milliseconds(times.get(times.len() * share / 100).copied().unwrap_or_default());
        let [p50, p95, p99] = [50, 95, 99].map(percentile);
        format!("p50 {p50:.2} ms, p95 {p95:.2} ms, p99 {p99:.2} ms")
    };
    let by_words = measure(&SearchScope::default());
    println!(
        "{} tools, {name}: built in {:.0} ms, {} terms, {} bytes per tool; search {by_words}",
        documents.len(),
        milliseconds(built),
        index.n_terms(),
        index.size() / documents.len().max(1),
    );
    // The time does not depend on what the vectors say.
    let mut random = generator();
    let mut vector = || {
        (0..DIMENSIONS)
            .map(|_| random(2_001) as f32 / 1_000.0 - 1.0)
            .collect::<Vec<_>>()
    };
    let of_query = [vector()];
    let vectors = ToolVectors::new(documents.iter().map(|_| Some(vector().into())));
    let by_meaning = measure(&SearchScope::default().vectors(&vectors, &of_query));
    println!("  with vectors of {DIMENSIONS} numbers, without the time to embed the query: {by_meaning}");
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Returns a source of numbers below a limit: Knuth's generator (MMIX), with the same numbers at each run.
fn generator() -> impl FnMut(usize) -> usize {
    let mut state = 1_u64;
    move |limit: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap_or_default() % limit.max(1)
    }
}

/// Repeats the tools without end. In each copy the name gets a number, and one word in eight of the description is exchanged
/// for a word of another tool.
fn perturbed(documents: &[ToolDocument]) -> impl Iterator<Item = ToolDocument> {
    let words: Vec<&str> = documents
        .iter()
        .flat_map(|document| document.description.split_whitespace())
        .collect();
    let mut random = generator();
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
