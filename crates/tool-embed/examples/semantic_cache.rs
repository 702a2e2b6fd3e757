//! Measures the semantic cache with a model from a directory, on requests with paraphrases and near misses. Run by
//! `cargo xtask cache-eval`.
//!
//! All requests of one source are made to one tool, so that each text meets the results of all others. A text that is answered with
//! the result of its own request is a hit if it is a paraphrase; any other answer from the cache is wrong.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program that measures and prints"
)]

use std::{
    collections::{BTreeMap, HashMap},
    error::Error,
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde::Deserialize;
use tool_embed::{
    LocalEmbedder,
    tool_core::{
        Arguments, BoxFuture, CallContext, EmbedError, Embedder, Invoke, Layer, Reply, TargetBackend, Tool,
        ToolError, invoke_fn, serde_json::json,
    },
};
use tool_runtime::{CacheLayer, CacheSettings, SemanticCacheSettings};

/// Minimum cosines that are measured, among them the default.
const THRESHOLDS: [f32; 4] = [0.75, SemanticCacheSettings::DEFAULT_THRESHOLD, 0.9, 0.95];
/// Number of paraphrases of each request, which are of different kinds.
const N_KINDS: usize = 3;
/// Maximum length of short requests, in bytes.
const SHORT: usize = 100;
/// Number of texts that are embedded at once.
const BATCH: usize = 64;

#[derive(Deserialize)]
struct Request {
    source: String,
    part: String,
    query: String,
    paraphrases: Vec<Text>,
    near_misses: Vec<Text>,
}

#[derive(Deserialize)]
struct Text {
    text: String,
}

/// Vectors that were computed before.
struct Known(HashMap<String, Vec<f32>>);

impl Embedder for Known {
    fn model(&self) -> &str {
        "measured"
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
        Box::pin(async move { Ok(texts.iter().map(|text| self.0[text].clone()).collect()) })
    }
}

/// Counts of texts by the answer of the cache.
#[derive(Default)]
struct Figures {
    n_paraphrases: usize,
    n_near_misses: usize,
    /// By the kind of the paraphrase: close, in other words, in keywords.
    n_hits: [usize; N_KINDS],
    /// Of requests of at most [`SHORT`] bytes.
    n_short_hits: usize,
    n_short: usize,
    n_wrong: usize,
    times: Vec<Duration>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: semantic_cache FILE MODEL";
    let (file, model) = (arguments.next().ok_or(usage)?, arguments.next().ok_or(usage)?);
    let requests: Vec<Request> = fs::read_to_string(file)?
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let known = Arc::new(embed(&requests, &LocalEmbedder::new(&model)).await?);
    let mut parts: BTreeMap<&str, Vec<&Request>> = BTreeMap::new();
    for request in &requests {
        parts.entry(&request.part).or_default().push(request);
    }
    for (part, requests) in parts {
        println!("{part}: {} requests", requests.len());
        for threshold in THRESHOLDS {
            print(threshold, measure(&requests, threshold, &known).await?);
        }
    }
    Ok(())
}

/// Embeds all texts, and prints the time.
async fn embed(requests: &[Request], embedder: &LocalEmbedder) -> Result<Known, EmbedError> {
    let mut texts: Vec<String> = requests.iter().map(|request| request.query.clone()).collect();
    for request in requests {
        let others = request.paraphrases.iter().chain(&request.near_misses);
        texts.extend(others.map(|text| text.text.clone()));
    }
    let start = Instant::now();
    let mut vectors = HashMap::new();
    for batch in texts.chunks(BATCH) {
        vectors.extend(batch.iter().cloned().zip(embedder.embed(batch).await?));
    }
    let each = start.elapsed() / u32::try_from(texts.len().max(1)).unwrap_or(u32::MAX);
    println!("embedded {} texts, each in {each:.1?}", texts.len());
    Ok(Known(vectors))
}

async fn measure(requests: &[&Request], threshold: f32, known: &Arc<Known>) -> Result<Figures, ToolError> {
    let mut figures = Figures::default();
    let mut sources: BTreeMap<&str, Vec<&Request>> = BTreeMap::new();
    for request in requests {
        sources.entry(&request.source).or_default().push(request);
    }
    for requests in sources.into_values() {
        let cache = CacheLayer::new(64 << 20);
        cache.set_embedder(Some(known.clone()));
        let stack = cache.layer(TargetBackend);
        // A result that reports a failure is not cached, so texts that are looked up do not answer each other.
        let fails = Arc::new(AtomicBool::new(false));
        let tool = tool(threshold, fails.clone());
        for request in &requests {
            ask(&stack, &tool, &request.query).await?;
        }
        fails.store(true, Ordering::Relaxed);
        for request in &requests {
            let is_short = request.query.len() <= SHORT;
            let paraphrases = request.paraphrases.iter().enumerate();
            let paraphrases = paraphrases.map(|(place, text)| (text, Some(place % N_KINDS)));
            let near_misses = request.near_misses.iter().map(|text| (text, None));
            for (text, kind) in paraphrases.chain(near_misses) {
                let start = Instant::now();
                let (answer, is_cached) = ask(&stack, &tool, &text.text).await?;
                figures.times.push(start.elapsed());
                figures.n_paraphrases += usize::from(kind.is_some());
                figures.n_near_misses += usize::from(kind.is_none());
                figures.n_short += usize::from(kind.is_some() && is_short);
                if let Some(kind) = kind
                    && is_cached
                    && answer == request.query
                {
                    figures.n_hits[kind] += 1;
                    figures.n_short_hits += usize::from(is_short);
                } else if is_cached && answer != text.text {
                    println!("  wrong: {}\n    for: {answer}", text.text);
                    figures.n_wrong += 1;
                }
            }
        }
    }
    Ok(figures)
}

/// Tool that answers with its text, as a failure if `fails`.
fn tool(threshold: f32, fails: Arc<AtomicBool>) -> Arc<Tool> {
    Tool::builder("ask")
        .setting(CacheSettings::default().with_ttl(Duration::from_secs(86_400)))
        .setting(SemanticCacheSettings::new(["text"]).with_threshold(threshold))
        .run(invoke_fn(move |arguments: Arc<Arguments>| {
            let result = json!({"content": [{"type": "text", "text": arguments.value()["text"]}]});
            let reply = Reply::result(result.into(), fails.load(Ordering::Relaxed));
            async move { Ok::<_, ToolError>(reply) }
        }))
}

/// Makes a call. Returns the text of the result, and whether it comes from the cache.
async fn ask(stack: &impl Invoke, tool: &Arc<Tool>, text: &str) -> Result<(String, bool), ToolError> {
    let arguments = Arguments::from_value(json!({"text": text}))?;
    let reply = stack
        .invoke(&mut CallContext::local(tool, arguments))
        .await?
        .into_reply()?;
    let is_cached = reply.meta().iter().any(|(key, _)| *key == CacheLayer::META_KEY);
    Ok((reply.text(), is_cached))
}

#[expect(clippy::cast_precision_loss, reason = "figures of a page")]
fn print(threshold: f32, mut figures: Figures) {
    let percent = |n: usize, of: usize| 100.0 * n as f64 / of.max(1) as f64;
    figures.times.sort();
    let median = figures
        .times
        .get(figures.times.len() / 2)
        .copied()
        .unwrap_or_default();
    let n_hits = figures.n_hits.iter().sum();
    let n_lookups = figures.n_paraphrases + figures.n_near_misses;
    println!(
        "  threshold {threshold}: {n_hits} of {} paraphrases hit ({:.1} %; {:?} of the kinds; {:.1} % of {} short ones), {} wrong hits of \
         {n_lookups} lookups ({:.2} %), {median:.0?} for a lookup",
        figures.n_paraphrases,
        percent(n_hits, figures.n_paraphrases),
        figures.n_hits,
        percent(figures.n_short_hits, figures.n_short),
        figures.n_short,
        figures.n_wrong,
        percent(figures.n_wrong, n_lookups),
    );
}
