//! Attacks on the resources of the machine.

use std::time::Duration;

use super::host::{Host, limits, nonce, shell, text};
use super::{Attempt, Finding};
use crate::{EnforcementScope, SandboxExit};

const MIB: u64 = 1024 * 1024;

pub(super) async fn fork(host: &Host) -> Attempt {
    const LIMIT: u32 = 16;
    const ATTEMPTS: u32 = 200;
    let mark = nonce();
    let program = format!(
        r#"$0 = "{mark}"; my $n = 0;
        while ($n < {ATTEMPTS}) {{ my $child = fork; last if !defined $child; if (!$child) {{ sleep 600; exit }} $n++ }}
        print $n;"#
    );
    let output = host.perl(&program, limits().with_processes(LIMIT)).await?;
    let count: u32 = text(&output).parse().unwrap_or(u32::MAX);
    let is_gone = !super::host::is_running(&mark);
    // Other processes of the same user may end meanwhile.
    let is_counted_alone = host.enforcement().processes == EnforcementScope::Tree;
    let is_stopped = count <= LIMIT || (!is_counted_alone && count < ATTEMPTS);
    let is_held = is_stopped && is_gone;
    Ok(Finding::new(
        is_held,
        format!("{count} of {ATTEMPTS} processes were started under a limit of {LIMIT}"),
    ))
}

pub(super) async fn memory(host: &Host) -> Attempt {
    let program = r#"my $x = "x" x (512 << 20); print length $x;"#;
    let output = host.perl(program, limits().with_memory(64 * MIB)).await?;
    let is_held = output.stdout.is_empty() && !output.exit.is_success();
    Ok(Finding::new(
        is_held,
        format!("512 MiB under a limit of 64 MiB ended with {:?}", output.exit),
    ))
}

pub(super) async fn cpu(host: &Host) -> Attempt {
    let command = shell("while :; do :; done & while :; do :; done", &[]);
    let output = host
        .run(command.limits(limits().with_wall_time(Duration::from_millis(500))))
        .await?;
    Ok(Finding::new(
        output.exit == SandboxExit::TimedOut,
        format!("two busy loops ended with {:?}", output.exit),
    ))
}

pub(super) async fn output(host: &Host) -> Attempt {
    let command = shell("exec head -c 1073741824 /dev/zero", &[]).limits(limits().with_output(MIB));
    let output = host.run(command).await?;
    let is_held = output.exit == SandboxExit::OutputLimit && output.stdout_truncated;
    Ok(Finding::new(
        is_held,
        format!("{} bytes of 1 GiB were kept", output.stdout.len()),
    ))
}
