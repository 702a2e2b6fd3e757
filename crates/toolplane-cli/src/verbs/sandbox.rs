use std::fmt::Write;

use tool_sandbox::probe::{ProbeReport, ProbeRow, probe};
use tool_sandbox::{Sandbox, SandboxEnforcement, SandboxError, SandboxLevel};

use crate::{
    command::{ProbedLevel, Sandbox as Verb, SandboxProbe},
    error::CliError,
    exit::Exit,
    output::{Console, table::Table, text},
    process::runtime::{Signals, block_on},
};

pub(crate) fn run(verb: &Verb, console: Console) -> Result<Exit, CliError> {
    let Verb::Probe(SandboxProbe { level }) = verb;
    block_on(async {
        let mut signals = Signals::listen()?;
        let report = tokio::select! {
            report = attacked(*level) => report.map_err(|error| unavailable(&error))?,
            exit = signals.next() => return Err(CliError::silent(exit)),
        };
        console.value(&report, || page(&report, console))?;
        Ok(if report.is_held() {
            Exit::Done
        } else {
            Exit::Failed
        })
    })
}

/// Attacks the sandbox at `level`, or the strongest that works.
pub(super) async fn attacked(level: Option<ProbedLevel>) -> Result<ProbeReport, SandboxError> {
    let sandbox = match level {
        None => Sandbox::detect().await?,
        Some(ProbedLevel::Bwrap) => Sandbox::at(SandboxLevel::Bwrap).await?,
        Some(ProbedLevel::Landlock) => Sandbox::at(SandboxLevel::Landlock).await?,
    };
    Ok(probe(&sandbox).await)
}

fn unavailable(error: &SandboxError) -> CliError {
    let (message, hint) = parts(error);
    let failure = CliError::new(Exit::Unavailable, "sandbox_unavailable", message);
    match hint {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

/// Returns the message of an error and its advice.
pub(super) fn parts(error: &SandboxError) -> (String, Option<String>) {
    match error {
        SandboxError::Unavailable {
            level, reason, hint, ..
        } => (
            format!("no sandbox at level `{level}`: {reason}"),
            Some(hint.clone()),
        ),
        other => (other.to_string(), None),
    }
}

/// Describes the scopes in words, such as `memory: tree`.
pub(super) fn scopes(enforcement: &SandboxEnforcement) -> String {
    [
        ("memory", enforcement.memory),
        ("CPU time", enforcement.cpu),
        ("processes", enforcement.processes),
        ("disk", enforcement.disk),
        ("network", enforcement.network),
        ("files", enforcement.filesystem),
        ("kill", enforcement.kill),
    ]
    .map(|(limit, scope)| format!("{limit}: {}", scope.as_str()))
    .join(", ")
}

/// Returns how many attacks were tried, and those that were not held.
pub(super) fn lost(report: &ProbeReport) -> (usize, Vec<&ProbeRow>) {
    let tried = report.rows.iter().filter(|row| row.tried);
    (tried.clone().count(), tried.filter(|row| !row.held).collect())
}

fn page(report: &ProbeReport, console: Console) -> String {
    let rows = report.rows.iter().map(|row| {
        let outcome = match (row.tried, row.held) {
            (false, _) => "not tried",
            (true, true) => "held",
            (true, false) => "NOT HELD",
        };
        [row.id, row.title, outcome, &row.detail]
    });
    let table = Table::new(console.stdout_color(), text::terminal_width())
        .header(["ID", "ATTACK", "OUTCOME", "DETAIL"])
        .rows(rows);
    let mut page = table.to_string();
    let (n_tried, lost) = lost(report);
    let level = report.enforcement.level;
    let _ = write!(
        page,
        "\n\nlevel {level}: held against {} of {n_tried} attacks\nlimits hold for: {}",
        n_tried - lost.len(),
        scopes(&report.enforcement)
    );
    page
}
