//! Benchmark of the gateway as a process against a direct client, in one run: an echo server behind it over stdio and
//! over HTTP, and the same echo server without it. Rounds alternate, so that a busy machine slows both; the reliable
//! figures are the ratios and the processor time of each call.
//!
//! `cargo xtask bench gateway` builds all it needs and runs it.
#![expect(clippy::print_stdout, reason = "what a benchmark prints is its result")]

use std::{
    env, fs,
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use toolplane_tests::{
    load::{Client, Era, Server},
    own_directories,
};

/// Duration of each side of a round.
const ROUND: Duration = Duration::from_millis(1500);
const ROUNDS: usize = 5;
const CONCURRENCY: [usize; 3] = [1, 16, 64];

fn main() {
    // `cargo test --benches` only checks that it builds.
    if !env::args().any(|argument| argument == "--bench") {
        return;
    }
    let binaries = binaries();
    let echo = binaries.join("examples/echo");
    let toolplane = binaries.join("toolplane");
    for needed in [&echo, &toolplane] {
        assert!(
            needed.is_file(),
            "`{}` is missing: run `cargo xtask bench gateway`",
            needed.display()
        );
    }
    let direct = Server::start(|address| {
        let mut command = Command::new(&echo);
        command.arg(address.to_string());
        command
    })
    .expect("the echo server starts");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let over_stdio = format!(r#"{{"command": "{}", "args": ["stdio"]}}"#, echo.display());
    let over_http = format!(r#"{{"url": "http://{}/mcp"}}"#, direct.address());
    println!(
        "{:<18} {:>3} {:>10} {:>10} {:>7} {:>9} {:>9} {:>9}",
        "", "C", "calls/s", "direct", "ratio", "p50 µs", "direct", "CPU µs"
    );
    for (name, upstream) in [("http to stdio", over_stdio), ("http to http", over_http)] {
        let file = folder.path().join(format!("{}.json", name.replace(' ', "-")));
        fs::write(&file, format!(r#"{{"mcpServers": {{"up": {upstream}}}}}"#))
            .expect("a configuration is written");
        let gateway = Server::start(|address| {
            let mut command = Command::new(&toolplane);
            own_directories(&mut command, folder.path());
            command
                .args(["serve", "--http", &address.to_string(), "--config"])
                .arg(&file);
            command
        })
        .expect("the gateway starts");
        for concurrency in CONCURRENCY {
            compare(name, &direct, &gateway, concurrency);
        }
    }
}

/// Returns cargo's folder of binaries for benchmarks: this program is in `deps` below it.
fn binaries() -> PathBuf {
    let program = env::current_exe().expect("this program has a path");
    program
        .ancestors()
        .nth(2)
        .expect("it is in the target folder")
        .to_owned()
}

fn compare(name: &str, direct: &Server, gateway: &Server, concurrency: usize) {
    let mut rounds = Vec::new();
    load(direct, "echo", concurrency, ROUND / 5);
    load(gateway, "up__echo", concurrency, ROUND / 5);
    for _ in 0..ROUNDS {
        let plain = load(direct, "echo", concurrency, ROUND);
        let time = || gateway.processor_time().expect("the gateway is there");
        let before = time();
        let through = load(gateway, "up__echo", concurrency, ROUND);
        let processor = time().saturating_sub(before);
        let each = processor.as_secs_f64() * 1e6 / through.n_calls as f64;
        rounds.push([
            through.rate(),
            plain.rate(),
            through.rate() / plain.rate(),
            through.median.as_secs_f64() * 1e6,
            plain.median.as_secs_f64() * 1e6,
            each,
        ]);
    }
    let median = |column: usize| {
        let mut values: Vec<f64> = rounds.iter().map(|round| round[column]).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    println!(
        "{name:<18} {concurrency:>3} {:>10.0} {:>10.0} {:>7.2} {:>9.0} {:>9.0} {:>9.1}",
        median(0),
        median(1),
        median(2),
        median(3),
        median(4),
        median(5)
    );
}

struct Load {
    n_calls: usize,
    elapsed: Duration,
    median: Duration,
}

impl Load {
    fn rate(&self) -> f64 {
        self.n_calls as f64 / self.elapsed.as_secs_f64()
    }
}

/// Calls a tool over several connections at once for a time. Every answer is checked.
fn load(server: &Server, tool: &str, concurrency: usize, duration: Duration) -> Load {
    let start = now();
    let workers: Vec<_> = (0..concurrency)
        .map(|worker| {
            let (address, tool) = (server.address(), tool.to_owned());
            thread::spawn(move || {
                let mut client = Client::open(address, Era::Plain).expect("the server accepts connections");
                let payload = format!("{worker:0100}");
                let arguments = format!(r#""arguments":{{"payload":"{payload}"}}"#);
                let request = client.request("tools/call", Some(&tool), &arguments);
                let mut latencies = Vec::new();
                while start.elapsed() < duration {
                    let begin = now();
                    let answer = client.send(&request).expect("the server answers");
                    assert!(answer.contains(&payload), "not what was sent: {answer}");
                    latencies.push(begin.elapsed());
                }
                latencies
            })
        })
        .collect();
    let mut latencies: Vec<Duration> = workers
        .into_iter()
        .flat_map(|worker| worker.join().expect("every answer is right"))
        .collect();
    let elapsed = start.elapsed();
    latencies.sort_unstable();
    Load {
        n_calls: latencies.len(),
        elapsed,
        median: latencies[latencies.len() / 2],
    }
}

#[expect(clippy::disallowed_methods, reason = "what a benchmark measures is real time")]
fn now() -> Instant {
    Instant::now()
}
