//! Attacks on processes of the host, and on the end of the sandbox's own.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};

use super::host::{Host, contains, is_running, limits, nonce, text};
use super::{Attempt, Finding};
use crate::SandboxExit;

/// Variables that a sandbox or its shell sets.
const VARIABLES: [&str; 8] = ["PATH", "HOME", "LANG", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_"];

pub(super) async fn read(host: &Host) -> Attempt {
    let output = host
        .shell(
            "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null; true",
            &[],
        )
        .await?;
    let read = |name: &str| fs::read(format!("/proc/self/{name}")).unwrap_or_default();
    let is_seen = ["cmdline", "environ"]
        .iter()
        .any(|name| contains(&output.stdout, &read(name)));
    Ok(Finding::new(
        !is_seen,
        format!("{} bytes about processes were read", output.stdout.len()),
    ))
}

pub(super) async fn environment(host: &Host) -> Attempt {
    let output = host.shell("env", &[]).await?;
    let said = text(&output);
    let foreign: Vec<_> = said
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name)
        .filter(|name| !VARIABLES.contains(name))
        .collect();
    Ok(Finding::new(
        foreign.is_empty(),
        format!("foreign variables: `{}`", foreign.join(" ")),
    ))
}

pub(super) async fn descriptors(host: &Host) -> Attempt {
    // A descriptor as a library might make it, which a child would inherit.
    let inheritable =
        memfd_create("tool-sandbox-probe", MemfdFlags::empty()).map_err(|error| error.to_string())?;
    let program = r#"for (3 .. 1023) { print "$_ " if open(F, "<&=$_") }"#;
    let output = host.perl(program, limits()).await?;
    drop(inheritable);
    let found = text(&output);
    Ok(Finding::new(
        found.is_empty(),
        format!("inherited descriptors: `{found}`"),
    ))
}

pub(super) async fn kill(host: &Host) -> Attempt {
    let mut victim = tokio::process::Command::new("/bin/sh")
        .args(["-c", "read -r _"])
        .env_clear()
        .stdin(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("the target does not start: {error}"))?;
    let id = victim.id().unwrap_or_default().to_string();
    host.shell(r#"kill -KILL "$1"; true"#, &[&id]).await?;
    let is_alive = matches!(victim.try_wait(), Ok(None));
    Ok(Finding::new(
        is_alive,
        if is_alive {
            "the target lives"
        } else {
            "the target was killed"
        },
    ))
}

pub(super) async fn daemon(host: &Host) -> Attempt {
    let mark = format!("86400.{}", nonce());
    let program = format!(
        r#"$SIG{{$_}} = "IGNORE" for qw(TERM INT HUP);
        if (!fork) {{ syscall({}); setpgrp; if (!fork) {{ exec "sleep", "{mark}" }} exit }}
        sleep 600;"#,
        libc::SYS_setsid
    );
    let output = host
        .perl(&program, limits().with_wall_time(Duration::from_secs(1)))
        .await?;
    let is_gone = !is_running(&mark);
    let is_held = is_gone && output.exit == SandboxExit::TimedOut;
    Ok(Finding::new(
        is_held,
        if is_gone {
            "the daemon is gone"
        } else {
            "the daemon lives"
        },
    ))
}

pub(super) async fn background(host: &Host) -> Attempt {
    let mark = format!("86400.{}", nonce());
    let output = host.shell(r#"sleep "$1" & echo main"#, &[&mark]).await?;
    let is_held = output.exit.is_success() && text(&output) == "main" && !is_running(&mark);
    Ok(Finding::new(
        is_held,
        format!("the run ended with {:?}", output.exit),
    ))
}
