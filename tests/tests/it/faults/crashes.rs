//! Servers that crash repeatedly.

use std::fs;

use serde_json::json;

use super::outcome;
use crate::support::{
    Client as _, Configuration, Era, Gateway, Stopwatch, eventually, healthy_server, hostile_arguments,
    hostile_program, tp_fault,
};

/// Returns what the open files of a process are, sorted, but for the database, to which connections are opened as calls
/// need them.
fn open_files(pid: i32) -> Vec<String> {
    let mut files: Vec<String> = fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|file| fs::read_link(file.unwrap().path()).ok())
        .map(|target| target.display().to_string())
        .filter(|target| !target.contains("toolplane.db"))
        .collect();
    files.sort();
    files
}

/// Servers that crash at once, during the handshake, while listing, or at the first call: all are restarted, rarely,
/// and leave nothing behind.
#[test]
fn servers_that_end_again_and_again_are_started_seldom_and_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let file = |n: usize, what: &str| folder.path().join(format!("{what}-{n}"));
    // Number of messages before the crash: the handshake has two, then come lists.
    let lives: [&[&str]; 4] = [
        &["--fault", "crash=1"],
        &["--fault", "exit=1"],
        &["--fault", "exit=0", "--matching", "tools/list"],
        &["--fault", "exit=7", "--matching", "tools/call"],
    ];
    let mut configuration = Configuration::default().server("healthy", healthy_server());
    for (n, life) in lives.iter().enumerate() {
        let (history, notes) = (file(n, "history"), file(n, "notes"));
        let mut args = vec!["stdio", "--history", history.to_str().unwrap()];
        args.extend(*life);
        args.extend(["--", hostile_program()]);
        args.extend(hostile_arguments(Era::Legacy, &notes));
        let server = json!({"command": tp_fault().to_str().unwrap(), "args": args});
        configuration = configuration.server(&format!("s{n}"), server);
    }
    let mut gateway = Gateway::stdio(&configuration);
    let starts = |n: usize| {
        let history = fs::read_to_string(file(n, "history")).unwrap_or_default();
        history
            .lines()
            .filter(|line| line.contains(r#""event":"started""#))
            .count()
    };
    let watch = Stopwatch::start();
    let mut files_before = None;
    eventually("each has been started three times", || {
        for n in 0..lives.len() {
            let kind = outcome(&gateway.client.call(&format!("s{n}__echo"), "{}"), "{}");
            // Only the last server lives to see a call, and may have executed it.
            assert!(
                kind == "unavailable" || (n == 3 && kind == "outcome_unknown"),
                "s{n}: {kind}"
            );
            assert_eq!(outcome(&gateway.client.call("healthy__echo", "{}"), "{}"), "fine");
        }
        if files_before.is_none() {
            // After the first start of each: any later increase is a leak.
            eventually("none of them is left", || {
                gateway.client.process.descendants().len() == 1
            });
            files_before = Some(open_files(gateway.client.process.pid()));
        }
        (0..lives.len()).all(|n| starts(n) >= 3)
    });
    for n in 0..lives.len() {
        // At most six starts in the first minute and one in each further minute.
        let allowed = 6 + watch.elapsed().as_secs() as usize / 60;
        assert!(
            starts(n) <= allowed,
            "s{n}: {} starts in {:?}",
            starts(n),
            watch.elapsed()
        );
    }
    // A process that was not reaped would still be counted.
    eventually("none of them is left", || {
        gateway.client.process.descendants().len() == 1
    });
    let pid = gateway.client.process.pid();
    let before = files_before.unwrap();
    eventually(&format!("no other file is open than {before:#?}"), || {
        open_files(pid).len() <= before.len()
    });
    assert_eq!(gateway.end().code(), Some(0));
}
