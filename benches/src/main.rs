//! Our MCP client against the least that can be done and against rmcp, alternated in one run: `client-bench` measures
//! calls and memory, `client-bench calls` and `client-bench memory` one of them. What follows as an argument chooses
//! the cases whose names hold it, and one more a single party, for a profiler.
//!
//! Trust the ratios, not the rates: every party runs in every round, each round in another order, so that a busy
//! machine slows all of them.

mod bare;
mod calls;
mod client;
mod echo;
mod memory;
mod ours;
mod party;
mod peer;
mod serve_http;
mod serve_stdio;

use std::env;

use anyhow::{Result, bail};
use tokio::runtime::{Builder, Runtime};

/// Number of worker threads of every party: the cores of the machine are shared with the server.
const WORKERS: usize = 2;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["serve-stdio"] => return serve_stdio::serve(),
        ["serve-http", mode] => return serve_http::serve(mode.parse()?),
        _ => {}
    }
    match words[..] {
        [] => {
            calls::run("", None)?;
            of_threads(WORKERS)?.block_on(memory::run(""))
        }
        ["calls"] => calls::run("", None),
        ["calls", filter] => calls::run(filter, None),
        ["calls", filter, party] => calls::run(filter, Some(party.parse()?)),
        ["memory"] => of_threads(WORKERS)?.block_on(memory::run("")),
        ["memory", filter] => of_threads(WORKERS)?.block_on(memory::run(filter)),
        ["memory-of", party, way] => {
            of_threads(WORKERS)?.block_on(memory::measure(party.parse()?, way.parse()?))
        }
        _ => bail!("usage: client-bench [calls | memory] [case] [party]"),
    }
}

/// Builds a runtime with `count` threads.
fn of_threads(count: usize) -> Result<Runtime> {
    let mut builder = match count {
        1 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    Ok(builder.worker_threads(count).enable_all().build()?)
}
