//! Faults on real sockets and pipes, as a program.

use std::{
    ffi::OsString,
    fs,
    io::{self, Write as _},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::{Args, Parser, Subcommand};
use tokio::runtime::{Builder, Runtime};
use tp_fault::{
    ExecutionCounter, ExecutionCounterOptions, Fault, History, Plan, Proxy, ProxyOptions, WrapOptions, wrap,
};

/// Has connections and programs go wrong on purpose, to see what becomes of calls.
#[derive(Debug, Parser)]
#[command(name = "tp-fault", version)]
struct Arguments {
    #[command(subcommand)]
    mode: Mode,
}

#[derive(Debug, Subcommand)]
enum Mode {
    /// Stands in front of something that listens. The first line of its output is where it listens itself.
    Proxy {
        /// Where connections lead.
        #[arg(long, value_name = "ADDRESS")]
        to: SocketAddr,
        /// Where it listens.
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
        listen: SocketAddr,
        /// Takes each connection as one exchange, whatever it holds; without this it is HTTP/1.
        #[arg(long)]
        tcp: bool,
        #[command(flatten)]
        faults: FaultArguments,
    },
    /// Stands between a program and whoever starts it, on stdin and stdout.
    Stdio {
        /// Has only the first starts go wrong, which it counts in the file of `--history`.
        #[arg(long, value_name = "N", requires = "history")]
        starts: Option<u64>,
        #[command(flatten)]
        faults: FaultArguments,
        /// The program and its arguments.
        #[arg(required = true, last = true)]
        command: Vec<OsString>,
    },
    /// Counts what it is asked to do, by `id`; `GET /ledger` tells it. The first line of its output is where it listens.
    Ledger {
        /// Where it listens.
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
        listen: SocketAddr,
        /// How many milliseconds it takes from an execution to its answer.
        #[arg(long, value_name = "MS", default_value_t = 0)]
        think_ms: u64,
        /// Answers nothing.
        #[arg(long)]
        mute: bool,
        /// A file to which it is appended what happens, a JSON object on each line.
        #[arg(long, value_name = "FILE")]
        history: Option<PathBuf>,
    },
}

/// What goes wrong, and when.
#[derive(Debug, Args)]
struct FaultArguments {
    /// What goes wrong, such as `cut:response=17`; may be given more than once.
    #[arg(long, value_name = "FAULT")]
    fault: Vec<Fault>,
    /// Only exchanges whose request holds this text.
    #[arg(long, value_name = "TEXT")]
    matching: Option<String>,
    /// Not the first ones of those that match.
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: u64,
    /// No more than so many.
    #[arg(long, value_name = "N")]
    times: Option<u64>,
    /// Only so many of a hundred.
    #[arg(long, value_name = "PERCENT")]
    percent: Option<f64>,
    /// What chance is computed from.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// A file to which it is appended what happens, a JSON object on each line.
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
}

impl FaultArguments {
    fn plan(&self) -> Plan {
        let mut plan = Plan::new(self.fault.iter().cloned())
            .skip(self.skip)
            .seed(self.seed);
        if let Some(text) = &self.matching {
            plan = plan.matching(text.as_str());
        }
        if let Some(times) = self.times {
            plan = plan.times(times);
        }
        if let Some(percent) = self.percent {
            plan = plan.percent(percent);
        }
        plan
    }
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // Nobody is left to tell if that fails.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: Arguments) -> io::Result<u8> {
    match arguments.mode {
        Mode::Proxy {
            to,
            listen,
            tcp,
            faults,
        } => {
            let runtime = runtime()?;
            let options = ProxyOptions {
                listen,
                plan: faults.plan(),
                is_tcp: tcp,
                history: history(faults.history.as_deref())?,
                ..ProxyOptions::new(to)
            };
            runtime.block_on(async {
                let proxy = Proxy::with_options(options).await?;
                serve_at(proxy.address()).await
            })
        }
        Mode::Stdio {
            starts,
            faults,
            command,
        } => stdio(starts, &faults, command),
        Mode::Ledger {
            listen,
            think_ms,
            mute,
            history: file,
        } => {
            let options = ExecutionCounterOptions {
                listen,
                think: Duration::from_millis(think_ms),
                is_mute: mute,
                history: history(file.as_deref())?,
            };
            runtime()?.block_on(async {
                let ledger = ExecutionCounter::with_options(options).await?;
                serve_at(ledger.address()).await
            })
        }
    }
}

fn stdio(starts: Option<u64>, faults: &FaultArguments, command: Vec<OsString>) -> io::Result<u8> {
    let n_before = match (starts, &faults.history) {
        (Some(_), Some(file)) => n_starts(file)?,
        _ => 0,
    };
    let is_over = starts.is_some_and(|starts| n_before >= starts);
    let mut command = command.into_iter();
    let options = WrapOptions {
        program: command.next().unwrap_or_default(),
        arguments: command.collect(),
        plan: if is_over {
            Plan::without_faults()
        } else {
            faults.plan()
        },
        history: history(faults.history.as_deref())?,
    };
    let runtime = runtime()?;
    let done = runtime.block_on(wrap(options, tokio::io::stdin(), tokio::io::stdout()));
    // A thread that still reads stdin would be waited for.
    runtime.shutdown_background();
    done
}

/// How often a program was started before.
fn n_starts(file: &Path) -> io::Result<u64> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    let starts = text.lines().filter(|line| line.contains(r#""event":"started""#));
    Ok(starts.count() as u64)
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

fn history(file: Option<&Path>) -> io::Result<History> {
    match file {
        None => Ok(History::default()),
        Some(file) => History::to_file(file).map_err(|error| {
            let message = format!("the history `{}` cannot be written: {error}", file.display());
            io::Error::new(error.kind(), message)
        }),
    }
}

/// Says where it listens, and goes on until a signal ends the process.
async fn serve_at(address: SocketAddr) -> io::Result<u8> {
    {
        let mut out = io::stdout().lock();
        writeln!(out, "{address}")?;
        out.flush()?;
    }
    std::future::pending().await
}
