//! Runs simulations, one seed after another, and reports those with violations.

use std::{
    io::{self, Write},
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use clap::Parser;
use parking_lot::Mutex;

/// Simulates the standard stack in worlds of seeded faults, and checks the results.
#[derive(Debug, Parser)]
struct Arguments {
    /// Number of seeds.
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// First seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Prints the history of every seed with violations; with one seed, always.
    #[arg(long)]
    history: bool,
}

/// Maximum number of reported seeds.
const MAX_TOLD: usize = 5;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let next = AtomicU64::new(arguments.from);
    let end = arguments.from.saturating_add(arguments.seeds);
    let wrong = Mutex::new(Vec::new());
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let run = toolplane_sim::run(seed);
                    if !run.violations.is_empty() || (arguments.history && arguments.seeds == 1) {
                        wrong.lock().push((seed, run));
                    }
                }
            });
        }
    });
    let mut wrong = wrong.into_inner();
    wrong.sort_by_key(|(seed, _)| *seed);
    let n_wrong = wrong.iter().filter(|(_, run)| !run.violations.is_empty()).count();
    match report(&arguments, &wrong, n_wrong) {
        Ok(()) if n_wrong == 0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn report(
    arguments: &Arguments,
    runs: &[(u64, toolplane_sim::SimulationReport)],
    n_wrong: usize,
) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for (seed, run) in runs.iter().take(MAX_TOLD) {
        if arguments.history {
            write!(out, "{}", run.history)?;
        }
        for violation in &run.violations {
            writeln!(out, "seed {seed}: {violation}")?;
        }
    }
    writeln!(
        out,
        "{} seeds from {} on, {n_wrong} of them wrong",
        arguments.seeds, arguments.from
    )
}
