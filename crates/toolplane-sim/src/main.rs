//! Runs simulations, one seed after another, and says which went wrong.

use std::{
    io::{self, Write},
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use clap::Parser;
use parking_lot::Mutex;

/// Simulates the standard stack in worlds of seeded faults, and checks what came of it.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many seeds.
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Prints the history of every seed that goes wrong; with one seed, in any case.
    #[arg(long)]
    history: bool,
}

/// How many seeds that went wrong are told at most.
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
