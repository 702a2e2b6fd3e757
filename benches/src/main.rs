//! Our MCP client against the least that can be done and against rmcp, alternated in one run: `client-bench` measures
//! calls and memory, `client-bench calls` and `client-bench memory` one of them. What follows as an argument chooses
//! the cases whose names hold it, and one more a single party, for a profiler.
//!
//! Trust the ratios, not the rates: every party runs in every round, each round in another order, so that a busy
//! machine slows all of them.

mod bare;
mod calls;
mod echo;
mod memory;
mod ours;
mod party;
mod peer;
mod serve_http;
mod serve_stdio;

use std::env;

use anyhow::{Result, bail};

/// The worker threads of every party: the machine's cores are shared with the server.
const WORKERS: usize = 2;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["serve-stdio"] => return serve_stdio::serve(),
        ["serve-http", mode] => return serve_http::serve(mode.parse()?),
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match words[..] {
            [] => {
                calls::run("", None).await?;
                memory::run("").await
            }
            ["calls"] => calls::run("", None).await,
            ["calls", filter] => calls::run(filter, None).await,
            ["calls", filter, party] => calls::run(filter, Some(party.parse()?)).await,
            ["memory"] => memory::run("").await,
            ["memory", filter] => memory::run(filter).await,
            ["memory-of", party, way] => memory::measure(party.parse()?, way.parse()?).await,
            _ => bail!("usage: client-bench [calls | memory] [case] [party]"),
        }
    })
}
