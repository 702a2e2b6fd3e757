//! The program `tp-fault`: fault injection on real sockets and pipes.

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

/// Injects faults into connections and programs.
#[derive(Debug, Parser)]
#[command(name = "tp-fault", version)]
struct Arguments {
    #[command(subcommand)]
    mode: Mode,
}

#[derive(Debug, Subcommand)]
enum Mode {
    /// Forwards connections to a listener, with faults. Prints its own address as the first line.
    Proxy {
        /// Address of the upstream.
        #[arg(long, value_name = "ADDRESS")]
        to: SocketAddr,
        /// Address to listen on.
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
        listen: SocketAddr,
        /// Treats each connection as one exchange of any protocol, instead of HTTP/1.
        #[arg(long)]
        tcp: bool,
        #[command(flatten)]
        faults: FaultArguments,
    },
    /// Forwards stdin and stdout of a program, with faults.
    Stdio {
        /// Injects faults only into this many first starts, counted in the file of `--history`.
        #[arg(long, value_name = "N", requires = "history")]
        starts: Option<u64>,
        #[command(flatten)]
        faults: FaultArguments,
        /// Program and its arguments.
        #[arg(required = true, last = true)]
        command: Vec<OsString>,
    },
    /// Counts executions by `id`; `GET /ledger` returns the counts. Prints its address as the first line.
    Ledger {
        /// Address to listen on.
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
        listen: SocketAddr,
        /// Time from an execution to its answer, in milliseconds.
        #[arg(long, value_name = "MS", default_value_t = 0)]
        think_ms: u64,
        /// Never answers.
        #[arg(long)]
        mute: bool,
        /// File to which events are appended, one JSON object on each line.
        #[arg(long, value_name = "FILE")]
        history: Option<PathBuf>,
    },
}

/// Options that select faults.
#[derive(Debug, Args)]
struct FaultArguments {
    /// Fault, such as `cut:response=17`; may be given more than once.
    #[arg(long, value_name = "FAULT")]
    fault: Vec<Fault>,
    /// Only exchanges whose request contains this text.
    #[arg(long, value_name = "TEXT")]
    matching: Option<String>,
    /// Number of matching exchanges to skip first.
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: u64,
    /// Maximum number of exchanges with faults.
    #[arg(long, value_name = "N")]
    times: Option<u64>,
    /// Percentage of exchanges with faults.
    #[arg(long, value_name = "PERCENT")]
    percent: Option<f64>,
    /// Seed of random choices.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// File to which events are appended, one JSON object on each line.
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
            // A failure cannot be reported.
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
    // Does not wait for a thread that still reads stdin.
    runtime.shutdown_background();
    done
}

/// Returns the number of earlier starts.
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

/// Prints the address and runs until a signal ends the process.
async fn serve_at(address: SocketAddr) -> io::Result<u8> {
    {
        let mut out = io::stdout().lock();
        writeln!(out, "{address}")?;
        out.flush()?;
    }
    std::future::pending().await
}
