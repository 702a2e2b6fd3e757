mod containers;
mod probe;
mod sandbox;

use std::fmt::Write;

use serde::Serialize;
use toolplane::{
    Toolplane,
    manifest::{LoadOptions, Loaded, Severity, load},
};

use super::check;
use crate::{
    command::{Format, Options},
    config,
    error::CliError,
    exit::Exit,
    lock,
    output::{Console, text},
    process::{
        logging,
        runtime::{Signals, block_on},
    },
};

/// Result of one check.
#[derive(Debug, Serialize)]
struct Finding {
    /// Subject of the check, such as `server files`.
    name: String,
    status: Status,
    /// Result in words.
    message: String,
    /// Advice on how to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
    /// Further details, such as the end of a server's stderr.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    Warn,
    Fail,
}

impl Finding {
    fn new(name: impl Into<String>, status: Status, message: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            status,
            message: message.into(),
            fix: None,
            detail: None,
        }
    }

    fn ok(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(name, Status::Ok, message)
    }

    fn warn(name: impl Into<String>, message: impl Into<String>, fix: impl Into<String>) -> Self {
        let fix = Some(fix.into());
        Self {
            fix,
            ..Self::new(name, Status::Warn, message)
        }
    }

    fn fail(name: impl Into<String>, message: impl Into<String>, fix: impl Into<String>) -> Self {
        let fix = Some(fix.into());
        Self {
            fix,
            ..Self::new(name, Status::Fail, message)
        }
    }
}

pub(crate) fn run(options: &Options, console: Console) -> Result<Exit, CliError> {
    let findings = block_on_findings(options, console)?;
    let failed = findings.iter().any(|finding| finding.status == Status::Fail);
    console.value(&findings, || page(&findings, console))?;
    Ok(if failed { Exit::Failed } else { Exit::Done })
}

fn block_on_findings(options: &Options, console: Console) -> Result<Vec<Finding>, CliError> {
    let mut findings = Vec::new();
    block_on(async {
        let mut signals = Signals::listen()?;
        examine(options, &mut signals, &mut findings, console).await?;
        Ok(Exit::Done)
    })?;
    Ok(findings)
}

async fn examine(
    options: &Options,
    signals: &mut Signals,
    findings: &mut Vec<Finding>,
    console: Console,
) -> Result<(), CliError> {
    findings.push(probe::certificates());
    findings.push(tokio::select! {
        finding = sandbox::sandbox() => finding,
        exit = signals.next() => return Err(CliError::silent(exit)),
    });
    let Some(loaded) = configuration(options, findings).await? else {
        return Ok(());
    };
    findings.push(tokio::select! {
        finding = containers::containers(&loaded) => finding,
        exit = signals.next() => return Err(CliError::silent(exit)),
    });
    findings.extend(probe::programs(&loaded).await);
    findings.push(probe::port(loaded.configuration.gateway.listen));
    let builder = Toolplane::builder().loaded(&loaded).redactor(logging::redactor());
    let plane = lock::with_pins(builder, &loaded, None, console).await?.build()?;
    let caller = plane.local_caller();
    let result = tokio::select! {
        _ = plane.view(&caller) => Ok(()),
        exit = signals.next() => Err(CliError::silent(exit)),
    };
    findings.extend(probe::servers(&loaded, &plane));
    findings.extend(probe::withheld(&plane));
    for rule in plane.idle_rules() {
        let message = rule.to_string();
        // The check of the files reports some of these rules already.
        if !findings.iter().any(|finding| finding.message.ends_with(&message)) {
            let fix = match rule.suggestion {
                Some(suggestion) => format!("did you mean `{suggestion}`?"),
                None => "`toolplane tools ls` lists the names".to_owned(),
            };
            findings.push(Finding::warn("configuration", message, fix));
        }
    }
    tokio::select! {
        () = plane.shutdown() => result,
        exit = signals.next() => Err(CliError::silent(exit)),
    }
}

/// Checks the configuration. Returns `None` if it cannot be used, which is one of the findings.
async fn configuration(options: &Options, findings: &mut Vec<Finding>) -> Result<Option<Loaded>, CliError> {
    const NAME: &str = "configuration";
    let files = match config::files(options) {
        Ok(files) => files,
        Err(failure) => {
            findings.push(Finding::fail(
                NAME,
                failure.message,
                failure.hint.unwrap_or_default(),
            ));
            return Ok(None);
        }
    };
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let names = match names.is_empty() {
        true => "none, but a store of the user".to_owned(),
        false => names.join(", "),
    };
    let paths = files.into_iter().fold(LoadOptions::new(), LoadOptions::path);
    // The servers themselves are asked later.
    let report = check::check_configuration(&paths, check::KeptLists::Ignore).await?;
    for problem in &report.problems {
        let fix = problem
            .hint
            .clone()
            .unwrap_or_else(|| "`toolplane check` shows the line".to_owned());
        findings.push(match problem.severity {
            Severity::Error => Finding::fail(NAME, problem.to_string(), fix),
            Severity::Warning => Finding::warn(NAME, problem.to_string(), fix),
        });
    }
    if report.problems.is_empty() {
        findings.push(Finding::ok(NAME, names));
    }
    // The remaining checks run even with errors: a missing variable of one server does not affect the others.
    Ok(load(&paths).ok())
}

/// Formats the findings for people.
fn page(findings: &[Finding], console: Console) -> String {
    let color = console.stdout_color();
    let mut page = String::new();
    for finding in findings {
        let (word, style) = match finding.status {
            Status::Ok => ("ok  ", text::GOOD),
            Status::Warn => ("warn", text::WARNING),
            Status::Fail => ("FAIL", text::ERROR),
        };
        let style = if color { style } else { text::PLAIN };
        let message = text::line(&finding.message);
        let _ = writeln!(
            page,
            "{style}{word}{style:#}  {}: {message}",
            text::line(&finding.name)
        );
        if let Some(fix) = &finding.fix {
            let _ = writeln!(page, "      fix: {}", text::line(fix));
        }
        for line in finding.detail.iter().flat_map(|detail| detail.lines()) {
            let _ = writeln!(page, "      | {}", text::line(line));
        }
    }
    let of = |status| {
        findings
            .iter()
            .filter(move |finding| finding.status == status)
            .count()
    };
    let (n_failed, n_warned) = (of(Status::Fail), of(Status::Warn));
    let _ = write!(
        page,
        "\n{}, {n_warned} warned, {n_failed} failed",
        text::count(findings.len(), "check")
    );
    debug_assert!(console.format == Format::Table, "a page is for people");
    page
}
