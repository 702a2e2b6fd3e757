//! Benchmark of concurrent calls from clients that can be asked, to `mcp-server-time`: `isolation: auto`, where such
//! clients have their own process, against `isolation: shared`. Rounds alternate, so that a busy machine slows both.
//!
//! `cargo xtask bench own_connections` builds all it needs and runs it.
#![expect(clippy::print_stdout, reason = "the output of a benchmark is its result")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use serde_json::json;
use tool_testkit::{PeerCommand, Peers};
use toolplane_tests::{
    load::{Client, Era, Server},
    own_directories,
};

const ROUNDS: usize = 5;
const CALLS: usize = 50;
const ISOLATIONS: [&str; 2] = ["auto", "shared"];
/// The measured situations, in the order of a round.
const CASES: [&str; 5] = [
    "nothing runs, no list is kept",
    "again",
    "nothing runs, lists are kept",
    "again",
    "the server runs for its lists",
];

/// One measurement of a case.
#[derive(Clone, Copy)]
struct Burst {
    took: Duration,
    n_processes: usize,
}

fn main() {
    // `cargo test --benches` only checks that it builds.
    if !env::args().any(|argument| argument == "--bench") {
        return;
    }
    let toolplane = toolplane();
    let peer = match Peers::from_env().and_then(|peers| peers.time()) {
        Ok(peer) => peer,
        Err(skip) => return skip.report(),
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut bursts = [const { Vec::<[Burst; CASES.len()]>::new() }; ISOLATIONS.len()];
    for round in 0..ROUNDS {
        for turn in 0..ISOLATIONS.len() {
            let which = (round + turn) % ISOLATIONS.len();
            let configuration = configuration(folder.path(), &peer, ISOLATIONS[which]);
            let kept = folder.path().join(format!("kept-{round}-{which}"));
            bursts[which].push(measure(&toolplane, &configuration, &kept));
        }
    }
    println!(
        "{:<32} {:>8} {:>8} {:>6} {:>10} {:>7}",
        format!("{CALLS} calls at once"),
        "auto ms",
        "shared",
        "ratio",
        "processes",
        "shared"
    );
    for (case, name) in CASES.iter().enumerate() {
        let [auto, shared] = bursts.each_ref().map(|rounds| median(rounds, case));
        let most = bursts.each_ref().map(|rounds| {
            rounds
                .iter()
                .map(|round| round[case].n_processes)
                .max()
                .unwrap_or(0)
        });
        println!(
            "{name:<32} {:>8.0} {:>8.0} {:>6.2} {:>10} {:>7}",
            auto * 1e3,
            shared * 1e3,
            auto / shared,
            most[0],
            most[1]
        );
    }
}

/// Returns the measured program, which cargo puts two folders above this one.
fn toolplane() -> PathBuf {
    let program = env::current_exe().expect("this program has a path");
    let folder = program.ancestors().nth(2).expect("it is in the target folder");
    let toolplane = folder.join("toolplane");
    assert!(
        toolplane.is_file(),
        "`{}` is missing: run `cargo xtask bench own_connections`",
        toolplane.display()
    );
    toolplane
}

fn configuration(folder: &Path, peer: &PeerCommand, isolation: &str) -> PathBuf {
    let text = |text: &std::ffi::OsStr| text.to_str().expect("a path of this machine is UTF-8").to_owned();
    let args: Vec<String> = peer.args.iter().map(|arg| text(arg)).collect();
    let server = json!({
        "command": text(peer.program.as_os_str()), "args": args, "isolation": isolation, "start_timeout_ms": 60_000,
    });
    let file = folder.join(format!("{isolation}.json"));
    let gateway = json!({"list_wait": "60s"});
    fs::write(
        &file,
        json!({"servers": {"time": server}, "gateway": gateway}).to_string(),
    )
    .expect("a configuration is written");
    file
}

/// Measures all cases once, with the lists of servers kept below `kept`.
fn measure(toolplane: &Path, configuration: &Path, kept: &Path) -> [Burst; CASES.len()] {
    let start = || {
        let started = Server::start(|address| {
            let mut command = Command::new(toolplane);
            own_directories(&mut command, kept);
            command
                .args(["serve", "--http", &address.to_string(), "--config"])
                .arg(configuration);
            command
        });
        started.expect("the gateway starts")
    };
    let gateway = start();
    let (cold, warm) = (burst(&gateway), burst(&gateway));
    gateway.end().expect("the gateway ends in order");
    let gateway = start();
    let (kept, warm_again) = (burst(&gateway), burst(&gateway));
    gateway.end().expect("the gateway ends in order");
    let gateway = start();
    let mut client = open(&gateway);
    // The lists come from a server that a call of a client without capabilities starts.
    let call = request(&client);
    let asked = client.send(&call).expect("the server answers");
    assert!(asked.contains("UTC"), "not the time: {asked}");
    let listed = burst(&gateway);
    drop(gateway);
    [cold, warm, kept, warm_again, listed]
}

fn open(gateway: &Server) -> Client {
    Client::open(gateway.address(), Era::Modern).expect("the gateway accepts connections")
}

fn request(client: &Client) -> Vec<u8> {
    let arguments = r#""arguments":{"timezone":"UTC"}"#;
    client.request("tools/call", Some("time__get_current_time"), arguments)
}

/// Makes calls over several connections at once, and counts the server processes after them.
fn burst(gateway: &Server) -> Burst {
    let together = Barrier::new(CALLS + 1);
    let took = thread::scope(|scope| {
        let calls: Vec<_> = (0..CALLS)
            .map(|_| {
                let client = open(gateway).declaring(r#"{"elicitation":{}}"#);
                let together = &together;
                scope.spawn(move || {
                    let mut client = client;
                    let request = request(&client);
                    together.wait();
                    let answer = client.send(&request).expect("the server answers");
                    assert!(answer.contains("UTC"), "not the time: {answer}");
                })
            })
            .collect();
        together.wait();
        let start = now();
        for call in calls {
            call.join().expect("every answer is right");
        }
        start.elapsed()
    });
    Burst {
        took,
        n_processes: gateway.n_descendants(),
    }
}

fn median(rounds: &[[Burst; CASES.len()]], case: usize) -> f64 {
    let mut times: Vec<f64> = rounds
        .iter()
        .map(|round| round[case].took.as_secs_f64())
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn now() -> Instant {
    Instant::now()
}
