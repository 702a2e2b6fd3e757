//! Upstreams that hang, next to healthy ones.

use std::{fs, path::Path};

use mcp_mock::{MockServer, MockTool};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tp_fault::{ExecutionCounterOptions, Fault, Plan};

use super::{GRACE, SHORT, arguments, http_tool, outcome, with};
use crate::support::{
    Client as _, Configuration, Era, Gateway, Net, Stopwatch, arrivals, eventually, healthy_server,
    hostile_arguments, hostile_program,
};

/// Concurrency limit of a hanging upstream.
const MOST: usize = 4;
/// Number of concurrent calls, of five upstreams.
const CALLERS: usize = 200;

/// Finds the gateway's process with this argument.
fn process_with(gateway: &Gateway, argument: &Path) -> Pid {
    let family = gateway.client.process.descendants();
    let found = family.iter().find(|process| {
        let line = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(argument.to_str().unwrap())
    });
    Pid::from_raw(found.expect("the server runs").pid).unwrap()
}

/// Returns the number of calls that a server has recorded.
fn noted(notes: &Path) -> usize {
    let text = fs::read_to_string(notes).unwrap();
    text.lines().filter(|line| *line == "act").count()
}

#[test]
fn what_hangs_holds_up_nobody_else_and_has_no_more_calls_than_its_limit() {
    let net = Net::new();
    let ledger = net.ledger(ExecutionCounterOptions::default());
    let server = MockServer::builder().tool(MockTool::new("act")).build();
    let http = net.serve(&server);
    // One accepts connections and never answers, one never answers calls, and one is a stopped process.
    let (silent, mute) = (net.proxy(ledger.address()), net.proxy(http.address()));
    silent.set_plan(Plan::new([Fault::BlackHole])).unwrap();
    mute.set_plan(Plan::new([Fault::BlackHole]).matching("tools/call"))
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    let limited = json!({
        "timeout_ms": SHORT.as_millis() as u64,
        "concurrency": {"max": MOST, "queue": 8, "wait": "100ms"},
    });
    let stopped = json!({"command": hostile_program(), "args": hostile_arguments(Era::Legacy, &notes)});
    let configuration = Configuration::default()
        .tool("silent", with(http_tool(&silent.url("/")), &limited))
        .tool("counts", http_tool(&ledger.url("/")))
        .server("mute", with(json!({"url": mute.url("/mcp")}), &limited))
        .server("stopped", with(stopped, &limited))
        .server("healthy", healthy_server());
    let mut gateway = Gateway::stdio(&configuration);
    // All servers run before one is stopped.
    gateway.client.tools();
    let stopped = process_with(&gateway, &notes);
    kill_process(stopped, Signal::STOP).unwrap();

    let watch = Stopwatch::start();
    let tools = ["silent", "counts", "mute__act", "stopped__act", "healthy__echo"];
    let calls: Vec<_> = (0..CALLERS)
        .map(|n| {
            let (tool, id) = (tools[n % tools.len()], format!("call-{n}"));
            let call = gateway.client.begin_call(tool, &arguments(&id));
            (tool, id, call)
        })
        .collect();
    let mut n_sent = [0; 5];
    for (tool, id, call) in calls {
        let outcome = outcome(&gateway.client.wait(call), &id);
        match (tool, outcome.as_str()) {
            ("counts" | "healthy__echo", "fine") | (_, "overloaded") => {}
            ("silent" | "mute__act" | "stopped__act", "outcome_unknown") => {
                n_sent[tools.iter().position(|name| *name == tool).unwrap()] += 1;
            }
            (_, outcome) => panic!("{tool} {id}: {outcome}"),
        }
    }
    assert!(
        watch.elapsed() < SHORT + GRACE,
        "{:?}: the limit ends every call",
        watch.elapsed()
    );
    assert_eq!(ledger.total(), (CALLERS / tools.len()) as u64);
    // A permit is returned when a time limit has passed, and not before.
    let allowed = MOST * (1 + (watch.elapsed().as_millis() / SHORT.as_millis()) as usize);
    for (proxy, index) in [(&silent, 0), (&mute, 2)] {
        let most = proxy.history().max_concurrent_requests();
        assert!(
            (1..=MOST).contains(&most),
            "{most} calls at once of `{}`",
            tools[index]
        );
        assert!((1..=allowed).contains(&n_sent[index]), "{n_sent:?}");
    }
    let n_arrived = arrivals(silent.history());
    assert!(
        n_arrived <= n_sent[0],
        "{n_arrived} calls may have run, {n_sent:?} are told as unknown"
    );
    // The resumed process reads the messages of the meantime.
    kill_process(stopped, Signal::CONT).unwrap();
    eventually("the server has read what it was sent", || {
        noted(&notes) == n_sent[3]
    });
    assert!((1..=allowed).contains(&n_sent[3]), "{n_sent:?}");
    let again = gateway.client.call("stopped__echo", &arguments("again"));
    assert_eq!(outcome(&again, "again"), "fine");
    assert_eq!(gateway.end().code(), Some(0));
}
