//! Tools with code through the whole stack: single calls against bare processes and `docker run` in the same rounds, and 100 calls
//! at once, with the memory of everything that they start.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark measures real time and prints its figures"
)]

use std::{
    collections::HashMap,
    fs,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tokio::{runtime::Runtime, task::JoinSet};
use toolplane::{CallRequest, Toolplane};
use tp_containers::{EngineKind, TestEngine};

/// Number of rounds. Each makes one call of each kind.
const ROUNDS: usize = 25;
/// Number of calls at once.
const CONCURRENT: usize = 100;

const TOOLS: &str = r#"
defaults: {call_timeout: 120s, attempt_timeout: 120s}
tools:
  mock: {description: M., executor: {kind: mock, result: 1}}
  bash_bwrap: {description: B., executor: {kind: bash, sandbox: bwrap, code: echo 1}}
  bash_landlock: {description: B., executor: {kind: bash, sandbox: landlock, code: echo 1}}
  bash_bare: {description: B., executor: {kind: bash, sandbox: none, code: echo 1}}
  python_cold: {description: P., executor: {kind: python, code: "import json\ndef run():\n    return 1"}}
  python_warm: {description: P., executor: {kind: python, stateless: true, code: "import json\ndef run():\n    return 1"}}
"#;

/// Tools that are called, and called at once.
const CALLED: [&str; 6] = [
    "mock",
    "bash_bwrap",
    "bash_landlock",
    "bash_bare",
    "python_cold",
    "python_warm",
];

async fn call(plane: &Toolplane, tool: &str) {
    let outcome = plane.call(CallRequest::new(tool)).await.expect("a result");
    outcome.into_reply().expect("a reply");
}

fn timed(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

fn run(command: &mut Command) {
    let command = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    assert!(command.status().expect("it starts").success());
}

/// Runs a command in a container by the engine's own program, with the limits that a tool has.
fn run_in_container(engine: &TestEngine) {
    let options = "run --rm --interactive --init --network none --read-only --cap-drop ALL --security-opt no-new-privileges \
                   --memory 512m --pids-limit 64 --cpus 1 --user 65534:65534 --tmpfs /tmp:noexec,size=64m --log-driver none";
    let mut words: Vec<&str> = options.split_whitespace().collect();
    words.extend([engine.image(), "echo", "1"]);
    run(&mut engine.command(words));
}

fn single_calls(runtime: &Runtime, plane: &Toolplane) {
    let engines: Vec<(EngineKind, TestEngine)> = EngineKind::ALL
        .iter()
        .filter_map(|kind| match TestEngine::start(*kind) {
            Ok(engine) => Some((*kind, engine)),
            Err(reason) => {
                println!("{kind:?} is left out: {reason}");
                None
            }
        })
        .collect();
    let mut times: Vec<(String, Vec<Duration>)> = Vec::new();
    let mut record = |name: String, time: Duration| match times.iter_mut().find(|(known, _)| *known == name) {
        Some((_, times)) => times.push(time),
        None => times.push((name, vec![time])),
    };
    for round in 0..=ROUNDS {
        let mut found = Vec::new();
        for tool in CALLED {
            found.push((tool.to_owned(), timed(|| runtime.block_on(call(plane, tool)))));
        }
        let bash = || run(Command::new("bash").args(["--noprofile", "--norc", "-c", "echo 1"]));
        found.push(("a bare process of bash".to_owned(), timed(bash)));
        let python = || run(Command::new("/usr/bin/python3").args(["-I", "-c", "import json"]));
        found.push(("a bare process of Python".to_owned(), timed(python)));
        for (kind, engine) in &engines {
            found.push((format!("{kind:?} run"), timed(|| run_in_container(engine))));
        }
        // The first round finds interpreters, sandboxes and images.
        if round > 0 {
            found.into_iter().for_each(|(name, time)| record(name, time));
        }
    }
    println!("one call, {ROUNDS} rounds: median, minimum");
    for (name, mut times) in times {
        times.sort();
        println!(
            "  {name:28} {:8.1} ms {:8.1} ms",
            ms(times[times.len() / 2]),
            ms(times[0])
        );
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn concurrent_calls(runtime: &Runtime, plane: &Toolplane) {
    println!(
        "{CONCURRENT} calls at once: time of all, calls a second, most memory beyond that of the gateway, and for each call"
    );
    for tool in CALLED {
        let watch = MemoryWatch::start();
        let time = timed(|| {
            runtime.block_on(async {
                let mut calls = JoinSet::new();
                for _ in 0..CONCURRENT {
                    let (plane, tool) = (plane.clone(), tool.to_owned());
                    calls.spawn(async move { call(&plane, &tool).await });
                }
                while let Some(ended) = calls.join_next().await {
                    ended.expect("a result");
                }
            });
        });
        let most = watch.most();
        println!(
            "  {tool:28} {:8.0} ms {:8.0}/s {:8.1} MiB {:8.2} MiB",
            ms(time),
            100.0 / time.as_secs_f64(),
            mib(most),
            mib(most) / 100.0
        );
    }
}

#[expect(clippy::cast_precision_loss, reason = "it is shown with one decimal")]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Samples the memory of this process and of all that it started: the sum of their proportional set sizes.
struct MemoryWatch {
    is_over: Arc<AtomicBool>,
    sampler: thread::JoinHandle<u64>,
    before: u64,
}

impl MemoryWatch {
    fn start() -> Self {
        let is_over = Arc::<AtomicBool>::default();
        let flag = Arc::clone(&is_over);
        let before = memory_of_tree();
        let sampler = thread::spawn(move || {
            let mut most = 0;
            while !flag.load(Ordering::Relaxed) {
                most = most.max(memory_of_tree());
                thread::sleep(Duration::from_millis(20));
            }
            most
        });
        Self {
            is_over,
            sampler,
            before,
        }
    }

    /// Returns the largest memory beyond that at the start, in bytes.
    fn most(self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        let most = self.sampler.join().expect("it samples");
        most.saturating_sub(self.before)
    }
}

/// Returns the proportional set size of this process and its descendants, in bytes. Processes that end meanwhile do not count.
fn memory_of_tree() -> u64 {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").expect("readable").flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let parent = fs::read_to_string(entry.path().join("stat"))
            .ok()
            .and_then(|stat| {
                let rest = stat.rsplit_once(") ")?.1;
                rest.split(' ').nth(1)?.parse::<u32>().ok()
            });
        children.entry(parent.unwrap_or_default()).or_default().push(pid);
    }
    let (mut open, mut sum) = (vec![std::process::id()], 0);
    while let Some(pid) = open.pop() {
        open.extend(children.remove(&pid).unwrap_or_default());
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
        let kib = pss.and_then(|pss| pss.trim().trim_end_matches(" kB").trim().parse::<u64>().ok());
        sum += kib.unwrap_or_default() * 1024;
    }
    sum
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("toolplane.yaml");
    fs::write(&file, TOOLS).expect("written");
    let plane = runtime
        .block_on(async { Toolplane::from_file(&file) })
        .expect("usable");
    single_calls(&runtime, &plane);
    concurrent_calls(&runtime, &plane);
    runtime.block_on(plane.shutdown());
}
