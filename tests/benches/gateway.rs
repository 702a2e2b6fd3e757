//! The gateway as a whole process against a direct client, in one run: an echo server behind it over stdio and over
//! HTTP, and the same echo server without it. Rounds alternate, so that a busy machine slows both; the figures to
//! trust are the ratios and the processor time of each call.
//!
//! `cargo xtask bench gateway` builds what this needs and runs it.
#![expect(clippy::print_stdout, reason = "what a benchmark prints is its result")]

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// How long each side of a round runs.
const ROUND: Duration = Duration::from_millis(1500);
const ROUNDS: usize = 5;
const CONCURRENCY: [usize; 3] = [1, 16, 64];
/// How long a server may take to listen.
const START: Duration = Duration::from_secs(20);

fn main() {
    // `cargo test --benches` only wants to know that it builds.
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
    });
    let folder = tempfile::tempdir().expect("a temporary folder");
    let over_stdio = format!(r#"{{"command": "{}", "args": ["stdio"]}}"#, echo.display());
    let over_http = format!(r#"{{"url": "http://{}/mcp"}}"#, direct.address);
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
            command
                .args(["serve", "--http", &address.to_string(), "--config"])
                .arg(&file);
            command
        });
        for concurrency in CONCURRENCY {
            compare(name, &direct, &gateway, concurrency);
        }
    }
}

/// Where cargo puts what it builds for benchmarks: this program is in `deps` below it.
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
        let before = gateway.processor_time();
        let through = load(gateway, "up__echo", concurrency, ROUND);
        let processor = gateway.processor_time().saturating_sub(before);
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

/// A process that listens, ended with everything it started.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(command: impl FnOnce(SocketAddr) -> Command) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("it has an address");
        drop(free);
        let child = command(address)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let server = Self { child, address };
        let start = now();
        while TcpStream::connect(address).is_err() {
            assert!(start.elapsed() < START, "the server does not listen");
            thread::sleep(Duration::from_millis(5));
        }
        server
    }

    /// The processor time that the process has used, its children not among it.
    fn processor_time(&self) -> Duration {
        let stat =
            fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("the process is there");
        // After the name in parentheses: fields 14 and 15 of proc(5), in ticks of 10 ms.
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        let ticks = |field: usize| fields[field].parse::<u64>().expect("a number of ticks");
        Duration::from_millis(10 * (ticks(11) + ticks(12)))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
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

/// Calls a tool over so many connections at once for so long. Every answer is checked.
fn load(server: &Server, tool: &str, concurrency: usize, duration: Duration) -> Load {
    let start = now();
    let workers: Vec<_> = (0..concurrency)
        .map(|worker| {
            let (address, tool) = (server.address, tool.to_owned());
            thread::spawn(move || {
                let mut client = Client::connect(address, &tool, worker);
                let mut latencies = Vec::new();
                while start.elapsed() < duration {
                    let begin = now();
                    client.call();
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

/// The barest client there is: one connection, one request at a time.
struct Client {
    stream: BufReader<TcpStream>,
    request: Vec<u8>,
    payload: String,
    body: Vec<u8>,
}

impl Client {
    fn connect(address: SocketAddr, tool: &str, worker: usize) -> Self {
        let stream = TcpStream::connect(address).expect("the server accepts connections");
        stream.set_nodelay(true).expect("an open socket");
        let payload = format!("{worker:0100}");
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":{worker},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"payload":"{payload}"}}}}}}"#
        );
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n",
            message.len()
        );
        let request = [head.as_bytes(), message.as_bytes()].concat();
        Self {
            stream: BufReader::new(stream),
            request,
            payload,
            body: Vec::new(),
        }
    }

    fn call(&mut self) {
        self.stream
            .get_mut()
            .write_all(&self.request)
            .expect("the server reads");
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            self.stream.read_line(&mut line).expect("the server answers");
            let text = line.trim_end();
            if text.is_empty() {
                break;
            }
            if let Some((name, value)) = text.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().expect("a length");
            }
        }
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body).expect("the whole answer");
        let answer = std::str::from_utf8(&self.body).expect("UTF-8");
        assert!(answer.contains(&self.payload), "not what was sent: {answer}");
    }
}

#[expect(clippy::disallowed_methods, reason = "what a benchmark measures is real time")]
fn now() -> Instant {
    Instant::now()
}
