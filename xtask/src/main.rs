//! What CI runs, and every developer: `cargo xtask`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use xtask::{CiOptions, DemoOptions, Repository, SimOptions, TestOptions, refuse, say};

/// Builds, checks and shows toolplane; what CI runs is what you run.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows the main job on the shipped example: installs and builds what it needs, calls tools of every kind,
    /// serves them to an MCP client, and stops everything.
    Demo {
        /// Go on serving at the end, until Ctrl-C.
        #[arg(long)]
        keep: bool,
    },
    /// Runs every check, the same as CI, and stops at the first that fails.
    Ci {
        /// Leave a step out; repeat for more.
        #[arg(long, value_name = "STEP")]
        skip: Vec<String>,
        /// Run this step only; repeat for more.
        #[arg(long, value_name = "STEP")]
        only: Vec<String>,
    },
    /// Installs the test peers and runs all tests.
    Test {
        /// Only tests whose name contains this.
        #[arg(long, value_name = "TEXT")]
        filter: Option<String>,
    },
    /// Checks which crate depends on which.
    Layers,
    /// Checks the rules of the house.
    Tidy,
    /// Measures the form of the code: openings of doc blocks, names of public types, sizes, folders.
    Form,
    /// Runs the benchmarks.
    Bench {
        /// Only benchmarks whose name contains this.
        filter: Option<String>,
        /// The folder of a load harness.
        #[arg(long, value_name = "FOLDER")]
        harness: Option<PathBuf>,
    },
    /// Writes the generated parts of the documents.
    Docs {
        /// Write nothing; fail where something is out of date.
        #[arg(long)]
        check: bool,
        /// Only these parts, such as `crates`.
        parts: Vec<String>,
    },
    /// Runs the official conformance suite of MCP and writes its results into the documents.
    Conformance {
        /// Write nothing; fail where the results in the documents are out of date.
        #[arg(long)]
        check: bool,
    },
    /// Simulates the whole stack in worlds of seeded faults and checks what came of it; tests do so with 200 seeds.
    Sim {
        /// How many seeds.
        #[arg(long, default_value_t = 200)]
        seeds: u64,
        /// The first seed.
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// Show the histories of seeds that go wrong; with one seed, in any case.
        #[arg(long)]
        history: bool,
    },
    /// Builds the program as it is shipped: twice, the second time by a profile of calls that the first one served.
    Release,
    /// Installs the programs that end-to-end tests talk to.
    Peers,
    /// Checks licences, bans and sources of dependencies.
    Deny {
        /// Also ask the database of advisories, which needs the network.
        #[arg(long)]
        advisories: bool,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    let repository = Repository::open()?;
    match command {
        Command::Demo { keep } => xtask::demo(&repository, DemoOptions { keep }),
        Command::Ci { skip, only } => xtask::ci(&repository, &CiOptions { skip, only }),
        Command::Test { filter } => xtask::test(&repository, &TestOptions { filter }),
        Command::Layers => refuse("layers", xtask::check_layers(repository.root())?),
        Command::Tidy => refuse("tidy", xtask::check_tidy(&repository)?),
        Command::Form => {
            say(xtask::measure_form(&repository));
            Ok(())
        }
        Command::Bench { filter, harness } => {
            xtask::bench(&repository, filter.as_deref(), harness.as_deref())
        }
        Command::Docs { check, parts } => xtask::docs(&repository, check, &parts),
        Command::Conformance { check } => xtask::conformance(&repository, check),
        Command::Sim { seeds, from, history } => xtask::sim(&repository, SimOptions { seeds, from, history }),
        Command::Release => xtask::release(&repository),
        Command::Peers => {
            let parts = xtask::install_peers(&repository)?;
            anyhow::ensure!(
                parts.iter().all(|part| part.missing.is_none()),
                "not all peers are installed"
            );
            Ok(())
        }
        Command::Deny { advisories } => xtask::deny(&repository, advisories),
    }
}
