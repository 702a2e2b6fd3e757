//! The attacks E01 to E24 of the probe, at each level that isolates.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tool_sandbox::probe::probe;
use tool_sandbox::{Sandbox, SandboxCollect, SandboxExit, SandboxLevel, SandboxLimits};

use crate::support::{at, becomes, examples, isolating, mark, shell};

/// Attack that ends the process that probes; the test below does it.
const OUTLIVE: &str = "E16";

async fn hold(level: SandboxLevel) {
    let Some(sandbox) = at(level).await else {
        return;
    };
    let report = probe(&sandbox).await;
    let ids: Vec<_> = report.rows.iter().map(|row| row.id.to_owned()).collect();
    let all: Vec<_> = (1..=24).map(|number| format!("E{number:02}")).collect();
    assert_eq!(ids, all, "{report:#?}");
    let lost: Vec<_> = report
        .rows
        .iter()
        .filter(|row| !row.held && row.id != OUTLIVE)
        .collect();
    assert!(lost.is_empty(), "{level}: {lost:#?}");
    assert!(report.is_held());
}

#[tokio::test]
async fn namespaces_hold_against_the_attacks() {
    hold(SandboxLevel::Bwrap).await;
}

#[tokio::test]
async fn landlock_holds_against_the_attacks() {
    hold(SandboxLevel::Landlock).await;
}

/// A level that does not isolate is not attacked: the attacks would reach the host.
#[tokio::test]
async fn an_open_level_is_not_attacked() {
    let sandbox = Sandbox::at(SandboxLevel::Unsandboxed).await.unwrap();
    let report = probe(&sandbox).await;
    assert!(
        report.rows.iter().all(|row| !row.tried && !row.held),
        "{report:#?}"
    );
}

/// E16: a host that is killed takes the daemons of its sandboxes along.
#[tokio::test]
async fn the_end_of_the_host_ends_its_processes() {
    for sandbox in isolating().await {
        let level = sandbox.level();
        let mark = mark();
        let mut host = Command::new(examples().join("tool-sandbox-host"))
            .args([level.as_str(), &mark])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        assert!(becomes(&mark, true).await, "{level}: the daemon did not start");
        host.kill().await.unwrap();
        assert!(
            becomes(&mark, false).await,
            "{level}: the daemon outlived its host"
        );
    }
}

#[tokio::test]
async fn a_dropped_run_ends_its_processes() {
    for sandbox in isolating().await {
        let level = sandbox.level();
        let mark = mark();
        let script = format!("(sleep {mark} &) ; sleep 600");
        {
            let run = sandbox.run(shell(&script));
            tokio::select! {
                output = run => panic!("{level}: {output:?}"),
                started = becomes(&mark, true) => assert!(started, "{level}"),
            }
        }
        assert!(
            becomes(&mark, false).await,
            "{level}: the process outlived its run"
        );
    }
}

#[tokio::test]
async fn a_dropped_child_ends_its_processes() {
    for sandbox in isolating().await {
        let level = sandbox.level();
        let mark = mark();
        let child = sandbox
            .spawn(shell(&format!("(sleep {mark} &) ; sleep 600")))
            .unwrap();
        assert!(becomes(&mark, true).await, "{level}");
        drop(child);
        assert!(
            becomes(&mark, false).await,
            "{level}: the process outlived its handle"
        );
    }
}

/// Where a cgroup counts the memory, the limit holds for the tree, and the report says so.
#[tokio::test]
async fn memory_is_counted_for_the_tree_where_the_report_says_so() {
    for sandbox in isolating().await {
        if sandbox.enforcement().memory.as_str() != "tree" {
            continue;
        }
        let script = "for i in 1 2 3 4; do perl -e '$x = \"x\" x (24 << 20); sleep 1' & done; wait; \
                      perl -e '$x = \"x\" x (96 << 20); $y = $x . $x'";
        let limits = SandboxLimits::default()
            .with_memory(64 << 20)
            .with_wall_time(Duration::from_secs(20));
        let output = sandbox.run(shell(script).limits(limits)).await.unwrap();
        assert_eq!(output.exit, SandboxExit::OutOfMemory, "{output:?}");
    }
}

#[tokio::test]
async fn cpu_time_ends_a_process() {
    for sandbox in isolating().await {
        let limits = SandboxLimits::default().with_cpu_time(Duration::from_secs(1));
        let output = sandbox
            .run(shell("while :; do :; done").limits(limits))
            .await
            .unwrap();
        assert_eq!(output.exit, SandboxExit::TimedOut, "{}", sandbox.level());
    }
}

/// E03 with names that only the collector sees: a directory that became a link, and a path through one.
#[tokio::test]
async fn the_collector_follows_no_link() {
    for sandbox in isolating().await {
        let script =
            "mkdir real; echo inside > real/passwd; ln -s /etc etc; ln -s real way; ln -s /proc/self/fd fd";
        let wanted = SandboxCollect::new(["etc/passwd", "way/passwd", "fd/0", "real/passwd"]);
        let output = sandbox.run(shell(script).collect(wanted)).await.unwrap();
        let files: Vec<_> = output
            .files
            .iter()
            .map(|file| file.path.display().to_string())
            .collect();
        assert_eq!(files, ["real/passwd"], "{}", sandbox.level());
        assert_eq!(output.skipped_files.len(), 3, "{:?}", output.skipped_files);
    }
}

/// Secrets travel in variables; the arguments of a process can be read by every user.
#[tokio::test]
async fn variables_are_in_no_argument_of_a_process() {
    for sandbox in isolating().await {
        let level = sandbox.level();
        let (secret, mark) = (mark(), mark());
        let child = sandbox
            .spawn(shell(&format!("sleep {mark}")).env("SECRET", &secret))
            .unwrap();
        assert!(becomes(&mark, true).await, "{level}");
        let lines = std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        let leaked = lines
            .filter(|line| String::from_utf8_lossy(line).contains(&secret))
            .count();
        assert_eq!(leaked, 0, "{level}");
        drop(child);
    }
}
