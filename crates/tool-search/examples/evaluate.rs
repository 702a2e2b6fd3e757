//! Measures search on a folder with `tools.jsonl` and `queries.jsonl`: quality, latency, build time and size. Run by
//! `cargo xtask search-eval`.
//!
//! A tool is `{id, name, description, input_schema, source[, server, server_description]}`, a query is
//! `{id, query, relevant: [tool ids], source}`. Each query is ranked among the tools of its own source.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program that measures and prints"
)]

use std::{
    collections::{BTreeMap, HashMap},
    error::Error,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::Value;
use tool_search::{SearchRequest, SearchScope, ToolDocument, ToolIndex, raw_json::RawJson};

type Failure = Box<dyn Error>;

/// Number of results that are judged.
const DEPTH: usize = 10;
/// Sources whose queries are ranked among the tools of another source.
const POOLS: [(&str, &str); 1] = [("livemcp_agent", "livemcpbench")];
/// Number of tools of the large catalogue.
const LARGE: usize = 100_000;

struct Tool {
    id: String,
    source: String,
    document: ToolDocument,
}

struct Query {
    text: String,
    relevant: Vec<String>,
    source: String,
}

fn main() -> Result<(), Failure> {
    let folder = std::env::args().nth(1).ok_or("usage: evaluate FOLDER")?;
    let folder = Path::new(&folder);
    let tools = lines(&folder.join("tools.jsonl"), tool)?;
    let queries = lines(&folder.join("queries.jsonl"), query)?;
    println!("{} tools, {} queries", tools.len(), queries.len());
    quality(&tools, &queries);
    let documents: Vec<_> = tools.iter().map(|tool| tool.document.clone()).collect();
    speed("as given", &documents, &queries);
    let copies: Vec<_> = perturbed(&documents).take(LARGE).collect();
    speed("perturbed copies", &copies, &queries);
    Ok(())
}

/// Reads a file with one JSON object in each line.
fn lines<T>(file: &Path, read: fn(&Value) -> Option<T>) -> Result<Vec<T>, Failure> {
    let text =
        fs::read_to_string(file).map_err(|error| format!("failed to read `{}`: {error}", file.display()))?;
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    let row = |(number, line): (usize, &str)| {
        let value: Value =
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", number + 1))?;
        read(&value).ok_or_else(|| format!("line {}: a member is missing", number + 1))
    };
    let rows: Result<Vec<_>, String> = lines.map(row).collect();
    rows.map_err(|problem| format!("`{}`: {problem}", file.display()).into())
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

fn tool(value: &Value) -> Option<Tool> {
    let mut document = ToolDocument::new(text(value, "name")?);
    document.description = text(value, "description").unwrap_or_default();
    document.server = text(value, "server").map(Into::into);
    document.server_description = text(value, "server_description").unwrap_or_default();
    if let Some(schema) = value.get("input_schema") {
        document.add_schema(&RawJson::from(schema.clone()));
    }
    Some(Tool {
        id: text(value, "id")?,
        source: text(value, "source")?,
        document,
    })
}

fn query(value: &Value) -> Option<Query> {
    let relevant = value.get("relevant")?.as_array()?;
    Some(Query {
        text: text(value, "query")?,
        relevant: relevant
            .iter()
            .filter_map(|id| id.as_str().map(str::to_owned))
            .collect(),
        source: text(value, "source")?,
    })
}

fn pool(source: &str) -> &str {
    POOLS
        .iter()
        .find(|(queries, _)| *queries == source)
        .map_or(source, |(_, tools)| tools)
}

/// Prints nDCG@10 and recall@10 of each source, and their means over the sources.
fn quality(tools: &[Tool], queries: &[Query]) {
    let mut indexes: HashMap<&str, (ToolIndex, Vec<&str>)> = HashMap::new();
    for source in queries.iter().map(|query| pool(&query.source)) {
        indexes.entry(source).or_insert_with(|| {
            let own: Vec<_> = tools.iter().filter(|tool| tool.source == source).collect();
            let index = ToolIndex::build(own.iter().map(|tool| tool.document.clone()));
            (index, own.iter().map(|tool| tool.id.as_str()).collect())
        });
    }
    let mut figures: BTreeMap<&str, (usize, f64, f64, usize)> = BTreeMap::new();
    for query in queries {
        let (index, ids) = &indexes[pool(&query.source)];
        let request = SearchRequest::new(query.text.as_str()).limit(DEPTH);
        let results = index.search(&request, &SearchScope::default());
        let is_relevant = |place: usize| {
            let hit = results.hits.get(place)?;
            query
                .relevant
                .iter()
                .any(|id| id == ids[hit.document])
                .then_some(place)
        };
        let places: Vec<usize> = (0..DEPTH).filter_map(is_relevant).collect();
        let gain = |place: &usize| 1.0 / (*place as f64 + 2.0).log2();
        let ideal: f64 = (0..query.relevant.len().min(DEPTH))
            .map(|place| gain(&place))
            .sum();
        let figure = figures.entry(&query.source).or_default();
        figure.0 += 1;
        figure.1 += places.iter().map(gain).sum::<f64>() / ideal.max(f64::MIN_POSITIVE);
        figure.2 += places.len() as f64 / query.relevant.len().max(1) as f64;
        figure.3 += usize::from(results.hits.is_empty());
    }
    println!(
        "\n{:<20}{:>8}{:>10}{:>11}{:>11}",
        "source", "queries", "nDCG@10", "recall@10", "abstained"
    );
    let (mut ndcg, mut recall) = (0.0, 0.0);
    for (source, (n, sum, found, n_empty)) in &figures {
        let (of_source, found) = (sum / *n as f64, found / *n as f64);
        println!("{source:<20}{n:>8}{of_source:>10.4}{found:>11.4}{n_empty:>11}");
        ndcg += of_source / figures.len() as f64;
        recall += found / figures.len() as f64;
    }
    println!(
        "{:<20}{:>8}{ndcg:>10.4}{recall:>11.4}\n",
        "mean over sources",
        queries.len()
    );
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
    (0..)
        .flat_map(move |round| documents.iter().map(move |document| (round, document)))
        .map(move |(round, document)| {
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
