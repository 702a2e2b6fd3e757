//! The training load of profile-guided optimization: calls of each kind of tool, over each transport, in both eras of
//! MCP.
//!
//! `toolplane-train PROGRAM [CALLS]` starts PROGRAM as a gateway, and again as its servers, makes CALLS calls (default:
//! 2,000) with each combination, and some with a second gateway that exports a span of each, and ends everything
//! regularly. `cargo xtask release` runs it with an instrumented program. The combinations decide what is optimized:
//! code that no call reaches here is laid out as cold.
#![expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a program says what it did, or why it failed"
)]

mod collector;

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    thread,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use toolplane_tests::{
    load::{Client, Era, Server},
    own_directories,
};

use crate::collector::Collector;

/// Default number of calls of each combination.
const CALLS: usize = 2_000;
/// Number of small calls for one large call: 64 KiB take as long as some fifty of them.
const SMALL_PER_LARGE: usize = 40;
/// Number of concurrent connections in the cases with many.
const MANY: usize = 16;

const SCENARIO: &str = r#"
tools:
  echo:
    description: Answers with its arguments.
    input_schema:
      type: object
      properties: {text: {type: string}, count: {type: integer}}
      required: [text]
"#;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (program, n_calls) = match &arguments[..] {
        [program] => (program, CALLS),
        [program, calls] => (program, calls.parse().context("CALLS is no number")?),
        _ => bail!("usage: toolplane-train PROGRAM [CALLS]"),
    };
    let program = fs::canonicalize(program).with_context(|| format!("there is no program `{program}`"))?;
    let site = Site::start(&program)?;
    let n_large = n_calls.div_ceil(SMALL_PER_LARGE);
    let mut n_made = 0;
    for era in [Era::Plain, Era::Session, Era::Modern] {
        for tool in TOOLS {
            for width in [1, MANY] {
                n_made += site.gateway.load(era, tool, &text(100), n_calls, width)?;
            }
            n_made += site.gateway.load(era, tool, &text(64 * 1024), n_large, MANY)?;
            n_made += site.tracing.load(era, tool, &text(100), n_calls, MANY)?;
        }
        site.gateway.list(era, n_large)?;
        site.gateway.mistake(era)?;
    }
    n_made += site.over_stdio(n_calls)?;
    println!("{n_made} calls were served");
    site.end()
}

/// One tool of each kind: a server over HTTP, one over stdio, an HTTP API, a mock, and cached results.
const TOOLS: [&str; 5] = ["over_http__echo", "over_stdio__echo", "api", "mock", "kept"];

/// Returns a text as models and tools write them: with quotes, line breaks, and letters beyond ASCII.
fn text(bytes: usize) -> String {
    let words = "He said \"two crêpes\",\nthen: наконец \\ 42 % of it. ";
    let mut text: String = words.chars().cycle().take(bytes).collect();
    text.truncate(text.floor_char_boundary(bytes));
    text
}

/// Two gateways, a server behind them, and the folder of their files.
struct Site {
    program: PathBuf,
    folder: PathBuf,
    upstream: Server,
    gateway: Gateway,
    /// Gateway that exports spans of all its calls to the collector.
    tracing: Gateway,
    collector: Collector,
}

/// A listening gateway.
struct Gateway(Server);

impl Site {
    fn start(program: &Path) -> Result<Self> {
        let folder = env::temp_dir().join(format!("toolplane-train-{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| format!("failed to make `{}`", folder.display()))?;
        let scenario = folder.join("scenario.yaml");
        fs::write(&scenario, SCENARIO)?;
        let upstream = Server::start(|address| {
            let mut command = Command::new(program);
            command.args(["mock-server", "--http", &address.to_string(), "--scenario"]);
            command.arg(&scenario);
            command
        })?;
        let url = format!("http://{}/mcp", upstream.address());
        fs::write(
            folder.join("toolplane.json"),
            configuration(program, &scenario, &url).to_string(),
        )?;
        let collector = Collector::start()?;
        let start = |exporter: &[(&str, String)]| {
            let gateway = Server::start(|address| {
                let mut command = serving(program, &folder);
                command.args(["--http", &address.to_string()]);
                command.envs(exporter.iter().map(|(key, value)| (key, value)));
                command
            });
            gateway.map(Gateway)
        };
        Ok(Self {
            program: program.to_owned(),
            upstream,
            gateway: start(&[])?,
            tracing: start(&[("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url())])?,
            collector,
            folder,
        })
    }

    /// Makes calls as a client that starts the gateway itself.
    fn over_stdio(&self, n_calls: usize) -> Result<usize> {
        let mut gateway = serving(&self.program, &self.folder)
            .arg("--stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut stdin = gateway.stdin.take().context("stdin is no pipe")?;
        let mut answers = BufReader::new(gateway.stdout.take().context("stdout is no pipe")?).lines();
        let opening = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"train","version":"1"}}}"#;
        let opened = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let mut say = |message: &str| writeln!(stdin, "{message}");
        say(opening)?;
        let mut answer = || {
            answers
                .next()
                .context("the gateway closed stdout")?
                .context("stdout broke")
        };
        answer()?;
        say(opened)?;
        for id in 1..=n_calls {
            let tool = TOOLS[id % TOOLS.len()];
            let arguments = json!({"text": text(100)});
            say(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
            ))?;
            // Change notifications of lists may come in between.
            while !answer()?.contains("crêpes") {}
        }
        drop(stdin);
        let status = gateway.wait()?;
        ensure!(status.success(), "the gateway over stdio ended with {status}");
        Ok(n_calls)
    }

    fn end(self) -> Result<()> {
        self.gateway.0.end()?;
        self.tracing.0.end()?;
        self.upstream.end()?;
        ensure!(self.collector.n_requests() > 0, "no span was exported");
        fs::remove_dir_all(&self.folder)
            .with_context(|| format!("failed to remove `{}`", self.folder.display()))
    }
}

impl Gateway {
    /// Makes at least this many calls of a tool over several connections, and returns their number.
    fn load(&self, era: Era, tool: &'static str, text: &str, n_calls: usize, width: usize) -> Result<usize> {
        let arguments = json!({"text": text, "count": 7});
        let params = format!(r#""arguments":{arguments}"#);
        let params = &params;
        let work = |n_calls: usize| {
            let mut client = Client::open(self.0.address(), era)?;
            let request = client.request("tools/call", Some(tool), params);
            for _ in 0..n_calls {
                let answer = client.send(&request)?;
                ensure!(
                    answer.contains("crêpes"),
                    "`{tool}` answered something else: {answer}"
                );
            }
            Ok(n_calls)
        };
        let work = &work;
        thread::scope(|scope| {
            let workers: Vec<_> = (0..width)
                .map(|_| scope.spawn(move || work(n_calls.div_ceil(width))))
                .collect();
            workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or_else(|_| bail!("a worker panicked")))
                .sum::<Result<usize>>()
        })
        .with_context(|| format!("calling `{tool}` failed ({era:?})"))
    }

    fn list(&self, era: Era, n_calls: usize) -> Result<()> {
        let mut client = Client::open(self.0.address(), era)?;
        let request = client.request("tools/list", None, "");
        for _ in 0..n_calls {
            let answer = client.send(&request)?;
            ensure!(
                answer.contains("over_stdio__echo"),
                "a tool is not listed: {answer}"
            );
        }
        Ok(())
    }

    /// Calls with invalid arguments: rare, but not as rare as code that never runs.
    fn mistake(&self, era: Era) -> Result<()> {
        let mut client = Client::open(self.0.address(), era)?;
        let request = client.request("tools/call", Some("mock"), r#""arguments":{"count":"x"}"#);
        let answer = client.send(&request)?;
        ensure!(
            answer.contains("\"isError\":true"),
            "wrong arguments were taken: {answer}"
        );
        Ok(())
    }
}

fn serving(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    own_directories(&mut command, folder);
    command
        .args(["serve", "--config"])
        .arg(folder.join("toolplane.json"));
    command
}

fn configuration(program: &Path, scenario: &Path, url: &str) -> Value {
    let schema = json!({
        "type": "object",
        "properties": {"text": {"type": "string"}, "count": {"type": "integer"}},
        "required": ["text"],
        "additionalProperties": false
    });
    let mock = json!({"kind": "mock", "template": "{\"said\": {{ text }}}"});
    json!({
        "servers": {
            "over_http": {"url": url},
            "over_stdio": {
                "command": program,
                "args": ["mock-server", "--stdio", "--scenario", scenario]
            }
        },
        "tools": {
            "mock": {"description": "A mock.", "input_schema": schema, "executor": mock},
            "kept": {"description": "A mock whose answers are kept.", "input_schema": schema, "executor": mock, "cache": {}},
            "api": {
                "description": "An HTTP API: the server's endpoint, asked without MCP.",
                "input_schema": schema,
                "executor": {
                    "kind": "http",
                    "method": "POST",
                    "url": url,
                    "headers": {"Accept": "application/json, text/event-stream"},
                    "body": {
                        "jsonrpc": "2.0",
                        "id": 1,
                        "method": "tools/call",
                        "params": {"name": "echo", "arguments": {"text": "{text}"}}
                    },
                    "allow_private": true
                }
            }
        }
    })
}
