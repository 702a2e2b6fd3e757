//! Measures hybrid search on a folder with `tools.jsonl` and `queries.jsonl`, with a model from a directory. Run by
//! `cargo xtask search-eval --model`.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program that measures and prints"
)]

#[path = "../../tool-search/examples/evaluate/data.rs"]
mod data;
#[path = "../../tool-search/examples/evaluate/quality.rs"]
mod quality;

use std::{collections::HashMap, path::Path, time::Instant};

use tool_embed::{
    LocalEmbedder,
    tool_core::{EmbedError, Embedder},
};
use tool_search::{SearchRequest, SearchScope, ToolVectors};

use self::{data::Failure, quality::DEPTH};

/// Number of texts that are embedded at once.
const BATCH: usize = 64;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: evaluate FOLDER MODEL";
    let (folder, model) = (arguments.next().ok_or(usage)?, arguments.next().ok_or(usage)?);
    let (tools, queries) = data::read(Path::new(&folder))?;
    println!(
        "{} tools, {} queries, the model `{model}`",
        tools.len(),
        queries.len()
    );
    let pools = quality::pools(&tools, &queries);
    let embedder = LocalEmbedder::new(&model);
    let mut vectors = HashMap::new();
    let start = Instant::now();
    let mut n_tools = 0;
    for (source, pool) in &pools {
        let texts: Vec<String> = pool.tools.iter().map(|tool| tool.document.text()).collect();
        n_tools += texts.len();
        let embedded = embed(&embedder, &texts).await?;
        vectors.insert(
            *source,
            ToolVectors::new(embedded.into_iter().map(|vector| Some(vector.into()))),
        );
    }
    let for_tools = start.elapsed();
    let start = Instant::now();
    let texts: Vec<String> = queries.iter().map(|query| query.text.clone()).collect();
    let of_queries = embed(&embedder, &texts).await?;
    let for_queries = start.elapsed();
    println!(
        "embedded {n_tools} tools in {:.1} s, {} queries in {:.1} s",
        for_tools.as_secs_f64(),
        texts.len(),
        for_queries.as_secs_f64()
    );
    quality::print(&pools, &queries, |pool, number| {
        let request = SearchRequest::new(queries[number].text.as_str()).limit(DEPTH);
        let of_query = std::slice::from_ref(&of_queries[number]);
        let scope = SearchScope::default().vectors(&vectors[queries[number].pool()], of_query);
        let results = pool.index.search(&request, &scope);
        results.hits.iter().map(|hit| hit.document).collect()
    });
    Ok(())
}

async fn embed(embedder: &LocalEmbedder, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
    let mut vectors = Vec::with_capacity(texts.len());
    for batch in texts.chunks(BATCH) {
        vectors.extend(embedder.embed(batch).await?);
    }
    Ok(vectors)
}
