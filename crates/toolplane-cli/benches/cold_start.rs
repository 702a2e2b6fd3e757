//! Start of the program until its first list, with lists of MCP servers that an earlier run kept (target T8): in SQLite, in files,
//! and in PostgreSQL where it is installed. Measures the whole process over stdio: with the first answers of an earlier start, and
//! without, as after a change.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark measures real time and prints its figures"
)]

use std::{
    fmt::Write as _,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use mcp_mock::{MockServer, MockServerBuilder, MockTool};
use tokio::runtime::Runtime;
use toolplane::RawJson;
use tp_postgres::{PostgresServer, TestDatabase};

/// Numbers of servers.
const SIZES: [usize; 3] = [1, 50, 500];
/// Number of tools of each server.
const TOOLS: usize = 10;
/// Number of tools in the first page of a list.
const PAGE: usize = 1000;
/// Number of measured starts of each kind.
const ROUNDS: usize = 9;
/// Time in which a gateway keeps its first answers.
const TO_KEEP: Duration = Duration::from_millis(50);

/// Where the lists are kept, and the configuration of it.
type Place = (&'static str, String);

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    let mock = runtime.block_on(server().http()).expect("an address");
    let folder = tempfile::tempdir().expect("a folder");
    let postgres = PostgresServer::start().inspect_err(|reason| println!("PostgreSQL is left out: {reason}"));
    let mut databases = Vec::new();
    let mut starts = Vec::new();
    for size in SIZES {
        for (place, store) in places(folder.path(), postgres.as_ref().ok(), &mut databases, size) {
            let home = folder.path().join(format!("{place}-{size}"));
            fs::create_dir_all(&home).expect("a folder");
            let text = configuration(&store, &mock.url(), size);
            fs::write(home.join("toolplane.yaml"), text).expect("written");
            // The first start reads the lists from the servers and keeps them.
            let filled = program(&home).args(["tools", "ls"]).output().expect("it runs");
            assert!(filled.status.success(), "{filled:?}");
            starts.push((place, size, home, [Vec::new(), Vec::new()]));
        }
    }
    for _ in 0..ROUNDS {
        for (_, size, home, [without, with]) in &mut starts {
            let answers = home.join("XDG_CACHE_HOME/toolplane/answers");
            // There are none before the first round.
            let _ = fs::remove_dir_all(&answers);
            without.push(first_list(home, *size, Duration::ZERO));
            while fs::read_dir(&answers).map_or(0, Iterator::count) == 0 {
                first_list(home, *size, TO_KEEP);
            }
            with.push(first_list(home, *size, Duration::ZERO));
        }
    }
    println!(
        "start to the first list: median, minimum, each without and with the answers of an earlier start"
    );
    for (place, size, _, times) in starts {
        print!("  {place:8} {size:4} servers");
        for mut times in times {
            times.sort();
            print!(" {:7.1} ms {:7.1} ms", ms(times[times.len() / 2]), ms(times[0]));
        }
        println!();
    }
}

fn server() -> MockServer {
    let tools = (0..TOOLS).map(|index| {
        let schema = r#"{"type":"object","properties":{"query":{"type":"string","description":"The words to look for"},"limit":{"type":"integer","minimum":1}},"required":["query"]}"#;
        MockTool::new(format!("tool_{index}"))
            .description("Looks something up and says what was found, in one paragraph.")
            .input_schema(RawJson::parse(schema).expect("it is JSON"))
    });
    let server = MockServer::builder();
    tools.fold(server, MockServerBuilder::tool).build()
}

fn places(
    folder: &Path,
    postgres: Option<&PostgresServer>,
    databases: &mut Vec<TestDatabase>,
    size: usize,
) -> Vec<Place> {
    let sqlite = format!("store: {{sqlite: {}/{size}.db}}\n", folder.display());
    let mut places = vec![("SQLite", sqlite), ("files", String::new())];
    if let Some(postgres) = postgres {
        let database = postgres.create_database().expect("a database");
        places.push((
            "Postgres",
            format!("store: {{postgres: \"{}\"}}\n", database.url()),
        ));
        databases.push(database);
    }
    places
}

fn configuration(store: &str, url: &str, size: usize) -> String {
    let mut text = format!("{store}servers:\n");
    for server in 0..size {
        writeln!(text, "  server-{server}: {{url: \"{url}\"}}").expect("a text takes everything");
    }
    text
}

/// Returns the program with the folders of a user of its own.
fn program(home: &Path) -> Command {
    let mut command = Command::new(PathBuf::from(env!("CARGO_BIN_EXE_toolplane")));
    command.current_dir(home).env("HOME", home);
    for folder in [
        "XDG_CACHE_HOME",
        "XDG_DATA_HOME",
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
    ] {
        command.env(folder, home.join(folder));
    }
    command
}

/// Starts the program and measures the time to the list of all tools. The program runs for another `rest`.
fn first_list(home: &Path, size: usize, rest: Duration) -> Duration {
    let start = Instant::now();
    let mut child = program(home)
        .args(["serve", "--stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let list = exchange(&mut child);
    let took = start.elapsed();
    assert_eq!(list.matches("\"inputSchema\"").count(), (size * TOOLS).min(PAGE));
    sleep(rest);
    drop(child.stdin.take());
    child.wait().expect("it ends");
    took
}

/// Initializes a session and returns the answer to `tools/list`.
fn exchange(child: &mut Child) -> String {
    let requests = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
    ];
    let stdin = child.stdin.as_mut().expect("it is piped");
    writeln!(stdin, "{}", requests.join("\n")).expect("it reads");
    let lines = BufReader::new(child.stdout.as_mut().expect("it is piped")).lines();
    let is_list = |line: &String| line.contains("\"id\":2");
    lines.map_while(Result::ok).find(is_list).expect("an answer")
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
