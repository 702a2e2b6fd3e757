//! A store with 100,000 tools beside one with 10: load, memory beyond the text, and calls (target T10). Each size is measured
//! in a process of its own. Memory is allocated as in the program `toolplane`.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark measures real time and prints its figures"
)]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use mimalloc::MiMalloc;
use toolplane::{
    CallRequest, RawJson, Toolplane,
    registry::{
        LatestChange, NewVersion, Store, StoreOperation, StoredVersion, ToolChange, VersionHead, VersionState,
    },
    store_sqlite::{SqliteOptions, sqlite_store},
};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const SIZES: [usize; 2] = [10, 100_000];
/// Number of measured rounds of calls, which alternate between the sizes.
const ROUNDS: usize = 5;
const CALLS: u32 = 200_000;

/// Document of a tool with a description and a schema of usual size.
fn manifest(index: usize) -> RawJson {
    let text = format!(
        r#"{{"apiVersion":"toolplane.dev/v1","kind":"Tool","metadata":{{"name":"tool_{index}"}},"spec":{{"description":"Returns record {index} of the table of orders, with its customer, its items and its state. Use it when the number of the order is known.","version":"1.0.0","input_schema":{{"type":"object","properties":{{"order":{{"type":"string","description":"Number of the order."}},"fields":{{"type":"array","items":{{"type":"string"}},"description":"Fields to return."}},"limit":{{"type":"integer","minimum":1,"maximum":100}}}},"required":["order"]}},"executor":{{"kind":"mock","result":{{"order":{index}}}}}}}}}"#
    );
    RawJson::parse(text).expect("it is JSON")
}

fn change(index: usize) -> ToolChange {
    let new = NewVersion::new(
        format!("tool_{index}"),
        semver::Version::new(1, 0, 0),
        manifest(index),
    );
    let now = SystemTime::now();
    let head = VersionHead::new(
        new.version.clone(),
        new.digest(),
        VersionState::Published,
        now,
        "bench".into(),
    );
    let latest = LatestChange::new(Some(new.version), now, "bench".into());
    let stored = StoredVersion::new(head, new.manifest, new.files);
    let operations = vec![
        StoreOperation::Create {
            owner: "bench".into(),
        },
        StoreOperation::Put(Box::new(stored)),
        StoreOperation::SetLatest(latest),
    ];
    ToolChange::new(new.tool, 0, operations)
}

async fn fill(path: &Path, n_tools: usize) {
    let store = sqlite_store(SqliteOptions::new(path));
    for start in (0..n_tools).step_by(10_000) {
        let changes = (start..n_tools.min(start + 10_000)).map(change).collect();
        store.apply_all(changes).await.expect("stored");
    }
}

/// Resident memory of this process, in bytes.
fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").expect("readable");
    let pages: usize = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .expect("a number");
    pages * 4096
}

/// Loads the store, and calls one of its tools in rounds that the parent process begins.
async fn measure(path: &Path, n_tools: usize) {
    let text: usize = (0..n_tools).map(|index| manifest(index).as_str().len()).sum();
    let store = Arc::new(sqlite_store(SqliteOptions::new(path)));
    let before = resident();
    let start = Instant::now();
    let plane = Toolplane::builder().store(store).build().expect("usable");
    let name = format!("tool_{}", n_tools / 2);
    let found = plane.tool(&name, &plane.local_caller()).await.expect("there");
    let load = start.elapsed();
    // The allocator returns what the load needed for a moment only.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let more = resident().saturating_sub(before);
    let beyond = more.saturating_sub(text) / n_tools.max(1);
    println!("loaded {} {} {beyond}", found.name(), load.as_millis());
    let mut line = String::new();
    while std::io::stdin()
        .read_line(&mut line)
        .is_ok_and(|n_bytes| n_bytes > 0)
    {
        let start = Instant::now();
        for _ in 0..CALLS {
            let request = CallRequest::new(name.as_str())
                .json(r#"{"order": "7"}"#)
                .expect("JSON");
            plane.call(request).await.expect("a reply");
        }
        println!("calls {:.0}", f64::from(CALLS) / start.elapsed().as_secs_f64());
        line.clear();
    }
}

/// Process that measures one size.
struct Measured {
    child: std::process::Child,
    answers: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
}

impl Measured {
    fn start(path: &Path, n_tools: usize) -> Self {
        use std::{io::BufRead, process::Stdio};

        let program = env::current_exe().expect("known");
        let mut child = Command::new(program)
            .arg("--measure")
            .arg(path)
            .arg(n_tools.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let answers = std::io::BufReader::new(child.stdout.take().expect("piped")).lines();
        Self { child, answers }
    }

    fn line(&mut self) -> Vec<String> {
        let line = self.answers.next().expect("an answer").expect("readable");
        line.split(' ').map(str::to_owned).collect()
    }

    fn calls(&mut self) -> f64 {
        use std::io::Write;

        let stdin = self.child.stdin.as_mut().expect("piped");
        writeln!(stdin, "call").expect("written");
        self.line()[1].parse().expect("a number")
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let arguments: Vec<String> = env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--measure") {
        let path = PathBuf::from(&arguments[at + 1]);
        let n_tools = arguments[at + 2].parse().expect("a number");
        runtime.block_on(measure(&path, n_tools));
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let mut measured: Vec<Measured> = SIZES
        .iter()
        .map(|n_tools| {
            let path = directory.path().join(format!("{n_tools}.db"));
            runtime.block_on(fill(&path, *n_tools));
            Measured::start(&path, *n_tools)
        })
        .collect();
    for (process, n_tools) in measured.iter_mut().zip(SIZES) {
        let loaded = process.line();
        println!(
            "{n_tools} tools: loaded in {} ms, {} bytes each beyond the text",
            loaded[2], loaded[3]
        );
    }
    let mut rates = vec![Vec::new(); SIZES.len()];
    for _ in 0..ROUNDS {
        for (process, rates) in measured.iter_mut().zip(&mut rates) {
            rates.push(process.calls());
        }
    }
    let rates: Vec<f64> = rates.into_iter().map(median).collect();
    let ratio = 100.0 * rates[1] / rates[0];
    println!(
        "calls per second: {:.0} with {} tools, {:.0} with {} ({ratio:.1} %)",
        rates[0], SIZES[0], rates[1], SIZES[1]
    );
    for mut process in measured {
        drop(process.child.stdin.take());
        let _ = process.child.wait();
    }
}
