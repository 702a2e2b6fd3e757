//! Command line of `cargo xtask`, for developers and CI.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use xtask::{CiOptions, DemoOptions, ReleaseCheckOptions, Repository, SimOptions, TestOptions, refuse, say};

/// Builds, checks and demonstrates toolplane. CI runs the same commands.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Demonstrates the main use case on the shipped example: installs and builds what it needs, calls tools of every
    /// kind, serves them to an MCP client, and stops everything.
    Demo {
        /// Keep serving at the end, until Ctrl-C.
        #[arg(long)]
        keep: bool,
    },
    /// Runs every check, as in CI, and stops at the first that fails.
    Ci {
        /// Leave out this step; may be repeated.
        #[arg(long, value_name = "STEP")]
        skip: Vec<String>,
        /// Run only this step; may be repeated.
        #[arg(long, value_name = "STEP")]
        only: Vec<String>,
    },
    /// Installs the test peers and runs all tests.
    Test {
        /// Run only tests whose name contains this text.
        #[arg(long, value_name = "TEXT")]
        filter: Option<String>,
    },
    /// Checks the dependencies between crates against the layer table.
    Layers,
    /// Checks the rules of the project.
    Tidy,
    /// Measures the form of the code: openings of doc blocks, names of public types, sizes, folders.
    Form,
    /// Builds the example programs, runs them, and compares them with those of peers.
    Examples,
    /// Runs the benchmarks.
    Bench {
        /// Run only benchmarks whose name contains this text. `cold` measures cold builds of single crates and of peers.
        filter: Option<String>,
        /// Folder of a load harness.
        #[arg(long, value_name = "FOLDER")]
        harness: Option<PathBuf>,
    },
    /// Writes the generated parts of the documentation, and builds the book into `target/book`.
    Docs {
        /// Write no pages; fail if a part is out of date.
        #[arg(long)]
        check: bool,
        /// Only these parts, such as `crates` or `book`.
        parts: Vec<String>,
    },
    /// Runs the official conformance suite of MCP and writes its results into the documentation.
    Conformance {
        /// Write no files; fail if the results in the documentation are out of date.
        #[arg(long)]
        check: bool,
    },
    /// Simulates the whole stack under seeded faults and checks the outcome; the tests do so with 200 seeds.
    Sim {
        /// Number of seeds.
        #[arg(long, default_value_t = 200)]
        seeds: u64,
        /// First seed.
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// Show the histories of failing seeds; with a single seed, always show its history.
        #[arg(long)]
        history: bool,
    },
    /// Measures the search over tools: quality by source, latency, build time and size.
    SearchEval {
        /// Folder with `tools.jsonl` and `queries.jsonl`.
        #[arg(long, value_name = "FOLDER", env = "TOOLPLANE_SEARCH_DATA")]
        data: PathBuf,
        /// Folder of a sentence model: also measures search with its vectors. Building the model's runtime takes minutes.
        #[arg(long, value_name = "FOLDER")]
        model: Option<PathBuf>,
    },
    /// Measures the semantic cache: hits and wrong hits on requests with paraphrases and near misses. Building the model's runtime
    /// takes minutes.
    CacheEval {
        /// Folder of a sentence model.
        #[arg(long, value_name = "FOLDER")]
        model: PathBuf,
        /// File of requests in the form of the default one.
        #[arg(
            long,
            value_name = "FILE",
            default_value = "crates/tool-runtime/tests/data/requests.jsonl"
        )]
        data: PathBuf,
    },
    /// Runs the tests that kill programs at seeded points, at all points; the tests take a tenth of them.
    Soak,
    /// Builds the release program: twice, the second time with a profile of calls that the first build served.
    Release,
    /// Packs the release program into `target/dist`: tarballs, packages of Debian, npm and PyPI, and the recipe of a container
    /// image.
    Dist {
        /// Program that is packed. Without it, the release program is built first, as `release` does.
        #[arg(long, value_name = "FILE")]
        program: Option<PathBuf>,
    },
    /// Checks what a release needs in addition to `ci`: builds each package alone from its archive, compares the public API, builds the
    /// facade with each feature alone, and installs and runs everything that `dist` packs.
    ReleaseCheck {
        /// Program that is packed and installed. Without it, the release program is built first.
        #[arg(long, value_name = "FILE")]
        program: Option<PathBuf>,
        /// Check only this part: `packages`, `api`, `features` or `installs`; may be repeated.
        #[arg(long, value_name = "PART")]
        only: Vec<String>,
    },
    /// Packs every published package and checks the files in the archives.
    Package {
        /// Also build each package alone from its archive.
        #[arg(long)]
        build: bool,
    },
    /// Compares the public API of the libraries with the baseline, and the third-party crates in it with their page.
    Api {
        /// Make the present API the baseline. Breaking changes must be described in the changelog.
        #[arg(long)]
        accept: bool,
    },
    /// Installs the programs that the end-to-end tests talk to.
    Peers,
    /// Checks licences, bans and sources of dependencies.
    Deny {
        /// Also check the advisory database, which needs the network.
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
        Command::Examples => xtask::examples(&repository),
        Command::Bench { filter, harness } => {
            xtask::bench(&repository, filter.as_deref(), harness.as_deref())
        }
        Command::Docs { check, parts } => xtask::docs(&repository, check, &parts),
        Command::Conformance { check } => xtask::conformance(&repository, check),
        Command::Sim { seeds, from, history } => xtask::sim(&repository, SimOptions { seeds, from, history }),
        Command::SearchEval { data, model } => xtask::search_eval(&repository, &data, model.as_deref()),
        Command::CacheEval { model, data } => xtask::cache_eval(&repository, &data, &model),
        Command::Soak => xtask::soak(&repository),
        Command::Release => xtask::release(&repository).map(drop),
        Command::Dist { program } => xtask::dist(&repository, program.as_deref()),
        Command::ReleaseCheck { program, only } => {
            xtask::release_check(&repository, &ReleaseCheckOptions { program, only })
        }
        Command::Package { build } => xtask::package(&repository, build),
        Command::Api { accept } => xtask::api(&repository, accept),
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
