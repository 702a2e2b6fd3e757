//! Latency and throughput: every party in every round, each round in another order.

use std::{
    io::{Write as _, stdout},
    time::Duration,
};

use anyhow::Result;

use crate::{
    WORKERS,
    client::{Block, Way},
    of_threads,
    party::Party,
    serve_http::Server,
};

/// Load of one benchmark case.
struct Load {
    name: &'static str,
    /// Number of concurrent calls.
    width: usize,
    /// Number of threads that make calls.
    threads: usize,
    /// Number of calls in a block, over stdio and over HTTP.
    counts: [usize; 2],
    /// Length of the text of a call, in bytes.
    bytes: usize,
    rounds: usize,
}

const LOADS: [Load; 4] = [
    // Cost of the client itself: with more threads, most of it depends on which of them is woken.
    Load {
        name: "one at a time, one thread",
        width: 1,
        threads: 1,
        counts: [500, 500],
        bytes: 100,
        rounds: 24,
    },
    Load {
        name: "one at a time",
        width: 1,
        threads: WORKERS,
        counts: [500, 500],
        bytes: 100,
        rounds: 24,
    },
    Load {
        name: "64 at once",
        width: 64,
        threads: WORKERS,
        counts: [32_000, 6_400],
        bytes: 100,
        rounds: 15,
    },
    Load {
        name: "1 MiB, one at a time",
        width: 1,
        threads: WORKERS,
        counts: [10, 10],
        bytes: 1024 * 1024,
        rounds: 9,
    },
];

/// Measures the cases whose names contain `filter`, and prints a table for each. Measures a single party if `only` is
/// set.
pub fn run(filter: &str, only: Option<Party>) -> Result<()> {
    for way in Way::ALL {
        for load in &LOADS {
            let name = format!("{}, {}", way.name(), load.name);
            if name.contains(filter) {
                of_threads(load.threads)?.block_on(compare(&name, way, load, only))?;
            }
        }
    }
    Ok(())
}

async fn compare(name: &str, way: Way, load: &Load, only: Option<Party>) -> Result<()> {
    let server = way.mode().map(Server::start).transpose()?;
    let url = server.as_ref().map_or("", |server| &server.url);
    let count = load.counts[usize::from(way != Way::Stdio)];
    let parties = only.as_slice();
    let parties = if parties.is_empty() {
        Party::all_over(way)
    } else {
        parties
    };
    let mut clients = Vec::new();
    for party in parties {
        let client = party.open(way, url).await?;
        // The first block opens connections and fills caches.
        client.clone().block(load.width, count, load.bytes).await?;
        clients.push(client);
    }
    let mut blocks: Vec<Vec<Block>> = parties.iter().map(|_| Vec::new()).collect();
    for round in 0..load.rounds {
        for turn in 0..parties.len() {
            let index = (round + turn) % parties.len();
            let client = clients[index].clone();
            blocks[index].push(client.block(load.width, count, load.bytes).await?);
        }
    }
    report(name, load, count, parties, &blocks)
}

fn report(name: &str, load: &Load, count: usize, parties: &[Party], blocks: &[Vec<Block>]) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "\n{name}")?;
    writeln!(
        out,
        "  {:<12} {:>10} {:>10} {:>10}   ours, median of the rounds (lowest to highest)",
        "", "median µs", "calls/s", "CPU µs"
    )?;
    for (index, party) in parties.iter().enumerate() {
        let of = |what: fn(&Block) -> Duration| {
            median(
                blocks[index]
                    .iter()
                    .map(|block| what(block).as_secs_f64())
                    .collect(),
            )
        };
        let count = count as f64;
        write!(
            out,
            "  {:<12} {:>10.1} {:>10.0} {:>10.1}",
            party.name(),
            of(|block| block.latency) * 1e6,
            count / of(|block| block.elapsed),
            of(|block| block.processor) * 1e6 / count
        )?;
        if *party != Party::Ours && parties.len() > 1 {
            write!(out, "   {}", verdict(load, *party, &blocks[0], &blocks[index]))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Compares ours with another party, round by round, and with the target if there is one.
fn verdict(load: &Load, party: Party, ours: &[Block], theirs: &[Block]) -> String {
    let is_sequential = load.width == 1;
    let ratios = ours.iter().zip(theirs).map(|(ours, theirs)| {
        if is_sequential {
            ours.latency.as_secs_f64() / theirs.latency.as_secs_f64()
        } else {
            theirs.elapsed.as_secs_f64() / ours.elapsed.as_secs_f64()
        }
    });
    let mut ratios: Vec<f64> = ratios.collect();
    ratios.sort_by(f64::total_cmp);
    let (lowest, highest) = (ratios[0], ratios[ratios.len() - 1]);
    let ratio = median(ratios);
    let (word, target) = match (is_sequential, party) {
        (true, Party::Bare) => ("latency", Some(1.2)),
        (true, _) => ("latency", Some(1.0)),
        (false, Party::Bare) => ("rate", Some(0.7)),
        (false, _) => ("rate", Some(1.0)),
    };
    // Large messages have no target.
    let target = target.filter(|_| load.bytes < 1024);
    let judged = target.map(|target| {
        let (sign, met) = if is_sequential {
            ("<=", ratio <= target)
        } else {
            (">=", ratio >= target)
        };
        format!("; {sign} {target}: {}", if met { "met" } else { "MISSED" })
    });
    format!(
        "{word} {ratio:.2} ({lowest:.2}-{highest:.2}){}",
        judged.unwrap_or_default()
    )
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
