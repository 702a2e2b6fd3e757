//! Attacks of the probe.

mod files;
mod host;
mod kernel;
mod network;
mod processes;
mod resources;
mod tenants;

use self::host::Host;
use crate::probe::ProbeRow;
use crate::{Sandbox, SandboxLevel};

/// Result of an attack.
#[derive(Debug)]
struct Finding {
    is_held: bool,
    is_tried: bool,
    detail: String,
}

impl Finding {
    fn new(is_held: bool, detail: impl Into<String>) -> Self {
        Self {
            is_held,
            is_tried: true,
            detail: detail.into(),
        }
    }

    fn untried(detail: impl Into<String>) -> Self {
        Self {
            is_held: false,
            is_tried: false,
            detail: detail.into(),
        }
    }

    fn row(self, id: &'static str, title: &'static str) -> ProbeRow {
        ProbeRow {
            id,
            title,
            held: self.is_held,
            tried: self.is_tried,
            detail: self.detail,
        }
    }
}

/// Attack that failed to start, which shows nothing about the sandbox.
type Attempt = Result<Finding, String>;

/// Runs all attacks.
pub(crate) async fn all(sandbox: &Sandbox) -> Vec<ProbeRow> {
    if sandbox.level() == SandboxLevel::Unsandboxed {
        return vec![Finding::untried("the level isolates nothing").row("E00", "prepare the attacks")];
    }
    let host = match Host::new(sandbox.clone()) {
        Ok(host) => host,
        Err(error) => {
            let detail = format!("the targets of the attacks could not be made: {error}");
            return vec![Finding::untried(detail).row("E00", "prepare the attacks")];
        }
    };
    let mut rows = confidentiality(&host).await;
    rows.extend(processes_and_limits(&host).await);
    rows.extend(kernel_and_tenants(&host).await);
    rows.sort_by_key(|row| row.id);
    rows
}

fn row(id: &'static str, title: &'static str, attempt: Attempt) -> ProbeRow {
    attempt.unwrap_or_else(Finding::untried).row(id, title)
}

/// Attacks on the files, sockets and processes of the host.
async fn confidentiality(host: &Host) -> Vec<ProbeRow> {
    vec![
        row("E01", "read files of the host", files::read(host).await),
        row("E02", "write files of the host", files::write(host).await),
        row(
            "E03",
            "have a link collected that leads outside",
            files::collect_link(host).await,
        ),
        row(
            "E04",
            "make devices, endless files and too many bytes",
            files::fill(host).await,
        ),
        row(
            "E05",
            "reach a listener on the host over TCP and UDP",
            network::internet(host).await,
        ),
        row(
            "E06",
            "open VSOCK, netlink, packet and crypto sockets",
            network::families(host).await,
        ),
        row("E07", "reach UNIX sockets of the host", network::unix(host).await),
        row(
            "E08",
            "read other processes in /proc",
            processes::read(host).await,
        ),
        row(
            "E09",
            "see the environment of the host process",
            processes::environment(host).await,
        ),
        row(
            "E10",
            "use inherited descriptors",
            processes::descriptors(host).await,
        ),
        row("E11", "kill a process of the host", processes::kill(host).await),
    ]
}

/// Attacks on the limits and on the end of the process tree.
async fn processes_and_limits(host: &Host) -> Vec<ProbeRow> {
    vec![
        row("E12", "start processes without end", resources::fork(host).await),
        row("E13", "use memory without end", resources::memory(host).await),
        row(
            "E14",
            "use the CPU beyond the deadline",
            resources::cpu(host).await,
        ),
        row(
            "E15",
            "outlive the deadline as a daemon that ignores signals",
            processes::daemon(host).await,
        ),
        row("E16", "outlive the host process", Err(OUTLIVE.to_owned())),
        row("E17", "write output without end", resources::output(host).await),
        row(
            "E21",
            "hold the output open after the end",
            processes::background(host).await,
        ),
    ]
}

/// Attacks on the kernel, and of one run on another.
async fn kernel_and_tenants(host: &Host) -> Vec<ProbeRow> {
    vec![
        row(
            "E18",
            "make namespaces and mounts",
            kernel::namespaces(host).await,
        ),
        row(
            "E19",
            "use io_uring, bpf, keyrings and the like",
            kernel::interfaces(host).await,
        ),
        row(
            "E20",
            "gain rights with a setuid program",
            kernel::privileges(host).await,
        ),
        row("E22", "leave files for the next run", tenants::leave(host).await),
        row(
            "E23",
            "change the bytes of a file that is run",
            tenants::replace(host).await,
        ),
        row(
            "E24",
            "meet another run in shared memory",
            tenants::share(host).await,
        ),
    ]
}

const OUTLIVE: &str = "the process that probes would have to be killed; the tests of the crate do that";

#[cfg(test)]
mod tests {
    use super::*;

    /// An attack that cannot succeed shows nothing: without isolation, those that leave no trace do.
    #[tokio::test]
    async fn attacks_succeed_without_a_sandbox() {
        let open = Sandbox::at(SandboxLevel::Unsandboxed).await.unwrap();
        let host = Host::new(open).unwrap();
        let findings = [
            ("read", files::read(&host).await),
            ("internet", network::internet(&host).await),
            ("unix", network::unix(&host).await),
            ("processes", processes::read(&host).await),
            ("kill", processes::kill(&host).await),
            ("privileges", kernel::privileges(&host).await),
        ];
        for (name, finding) in findings {
            let finding = finding.unwrap();
            assert!(finding.is_tried && !finding.is_held, "{name}: {finding:?}");
        }
    }
}
