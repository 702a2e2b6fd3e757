//! Memory of an idle connection without its child process: the private pages of a process with 50 more of them.

use std::{
    env, fs,
    io::{Write as _, stdout},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use tokio::{process::Command, time::sleep};

use crate::{
    calls::median,
    client::Way,
    party::Party,
    serve_http::Server,
};

const CONNECTIONS: usize = 50;
/// Number of connections opened before the measurement, so that one-time costs are not counted.
const BEFORE: usize = 5;
const RUNS: usize = 3;
const TARGET_KIB: f64 = 16.0;

/// Measures the transports whose names contain `filter`, each party in a process of its own.
pub async fn run(filter: &str) -> Result<()> {
    writeln!(
        stdout(),
        "\nmemory of an idle connection, KiB, median of {RUNS} runs"
    )?;
    for way in Way::ALL {
        if !way.name().contains(filter) {
            continue;
        }
        for party in Party::all_over(way) {
            let mut kib = Vec::new();
            for _ in 0..RUNS {
                kib.push(measured_apart(*party, way).await?);
            }
            let kib = median(kib);
            let judged = match party {
                Party::Ours if kib <= TARGET_KIB => format!("  <= {TARGET_KIB}: met"),
                Party::Ours => format!("  <= {TARGET_KIB}: MISSED"),
                _ => String::new(),
            };
            writeln!(
                stdout(),
                "  {:<14} {:<12} {kib:>6.1}{judged}",
                way.name(),
                party.name()
            )?;
        }
    }
    Ok(())
}

async fn measured_apart(party: Party, way: Way) -> Result<f64> {
    let output = Command::new(env::current_exe()?)
        .args(["memory-of", party.name(), way.name()])
        .stderr(Stdio::inherit())
        .output()
        .await?;
    ensure!(
        output.status.success(),
        "measuring memory ended with {}",
        output.status
    );
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// Prints the cost of one connection of this process.
pub async fn measure(party: Party, way: Way) -> Result<()> {
    const SETTLE: Duration = Duration::from_millis(500);
    let server = way.mode().map(Server::start).transpose()?;
    let url = server.as_ref().map_or("", |server| &server.url);
    let mut open = Vec::new();
    let mut pages = Vec::new();
    for count in [BEFORE, CONNECTIONS] {
        for _ in 0..count {
            let client = party.open(way, url).await?;
            client.clone().block(1, 2, 100).await?;
            open.push(client);
        }
        sleep(SETTLE).await;
        pages.push(private_dirty()?);
    }
    writeln!(stdout(), "{}", (pages[1] - pages[0]) / CONNECTIONS as f64)?;
    Ok(())
}

/// Private dirty memory of this process, in KiB.
fn private_dirty() -> Result<f64> {
    let rollup = fs::read_to_string("/proc/self/smaps_rollup")?;
    let line = rollup
        .lines()
        .find_map(|line| line.strip_prefix("Private_Dirty:"));
    let words = line.context("the kernel tells of private pages")?;
    Ok(words.trim().trim_end_matches("kB").trim().parse()?)
}
