pub(in crate::verbs) mod find;
mod names;

use std::{collections::HashMap, fmt::Write};

use serde::Serialize;
use toolplane::{
    BuildError,
    manifest::{Diagnostic, LoadOptions, Loaded, Severity, load},
};

use crate::{
    command::{Check, Format, Options},
    config,
    error::CliError,
    exit::Exit,
    output::{Console, text},
    process::runtime::block_on,
    store,
};

/// Contents and problems of a configuration.
#[derive(Debug, Default, Serialize)]
pub(super) struct CheckReport {
    ok: bool,
    n_errors: usize,
    n_warnings: usize,
    n_tools: usize,
    n_servers: usize,
    n_endpoints: usize,
    files: Vec<String>,
    pub(super) problems: Vec<Diagnostic>,
}

pub(crate) fn run(options: &Options, check: &Check, console: Console) -> Result<Exit, CliError> {
    let files = if check.files.is_empty() {
        config::named_files(options)?
    } else {
        check.files.clone()
    };
    block_on(async {
        let names = files.iter().map(|file| file.display().to_string()).collect();
        let paths = files.into_iter().fold(LoadOptions::new(), LoadOptions::path);
        let mut report = check_configuration(&paths, KeptLists::Read).await?;
        report.files = names;
        report.ok = report.n_errors == 0 && !(check.strict && report.n_warnings > 0);
        show(&report, check.strict, console)
    })
}

/// Use of the lists of servers that earlier runs kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeptLists {
    /// The lists are read.
    Read,
    /// The lists are ignored, because the caller asks the servers.
    Ignore,
}

/// Finds every problem that can be found without starting a server. Needs a runtime.
pub(super) async fn check_configuration(
    paths: &LoadOptions,
    lists: KeptLists,
) -> Result<CheckReport, CliError> {
    let mut report = CheckReport::default();
    match load(paths) {
        Ok(loaded) => {
            report.problems = problems(&loaded, lists).await?;
            report.n_tools = loaded.configuration.tools.len();
            report.n_servers = loaded.configuration.servers.len();
            report.n_endpoints = loaded.configuration.endpoints.len();
        }
        Err(problems) => report.problems = problems.into_iter().collect(),
    }
    let of = |severity| {
        report
            .problems
            .iter()
            .filter(move |problem| problem.severity == severity)
            .count()
    };
    (report.n_errors, report.n_warnings) = (of(Severity::Error), of(Severity::Warning));
    Ok(report)
}

/// Returns the problems of a configuration whose files were read.
async fn problems(loaded: &Loaded, lists: KeptLists) -> Result<Vec<Diagnostic>, CliError> {
    let mut problems = loaded.diagnostics.clone();
    find::settings_without_effect(loaded, &mut problems);
    let builder = config::local_builder(loaded);
    let builder = match store::open_store(loaded).await? {
        Some(store) => store
            .unless_empty(&loaded.configuration)
            .await
            .give_tools(builder, &loaded.configuration),
        None => builder,
    };
    match builder.build() {
        Ok(plane) => {
            if lists == KeptLists::Read {
                plane.recall().await;
            }
            find::refused(loaded, &plane, &mut problems);
            let warned = plane.warnings().into_iter();
            problems.extend(warned.map(|(tool, warning)| loaded.warning(&tool, &warning)));
            find::workflows(loaded, &plane, &mut problems);
            find::routes(loaded, &plane, &mut problems);
            find::idle_rules(loaded, &plane, &mut problems);
            find::principals(loaded, &plane, &mut problems).await;
            names::listed(loaded, &plane, &mut problems);
            names::too_long(&plane, &mut problems);
            find::defaults_of_servers(loaded, &plane, &mut problems);
        }
        // Reported above, with its line.
        Err(BuildError::NoProtection { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    find::lock_file(loaded, &mut problems);
    find::schemas(loaded, &mut problems);
    names::namespaces(loaded, &mut problems);
    names::definitions(loaded, &mut problems);
    find::references(loaded, &mut problems);
    // Sorted by file position, whichever check found them.
    problems.sort_by(|a, b| place(a).cmp(&place(b)));
    Ok(problems)
}

fn place(problem: &Diagnostic) -> (bool, &str, usize, usize) {
    match &problem.location {
        Some(at) => (false, &at.file, at.line, at.column),
        None => (true, "", 0, 0),
    }
}

fn show(report: &CheckReport, strict: bool, console: Console) -> Result<Exit, CliError> {
    let exit = if report.ok { Exit::Done } else { Exit::Usage };
    if console.format != Format::Table {
        console.value(report, String::new)?;
        return Ok(exit);
    }
    for (problem, n_more) in condensed(&report.problems) {
        let mut block = problem.render(console.stderr_color());
        if n_more > 0 {
            let _ = write!(
                block,
                "\n  = note: the same at {n_more} further places; `-o json` lists them"
            );
        }
        block.push('\n');
        if report.ok {
            console.say(&block);
        } else {
            console.stderr(&block);
        }
    }
    if report.ok {
        console.data(&summary(report))?;
        return Ok(exit);
    }
    let counted = counted(report);
    let failure = CliError::configuration(format!("the configuration cannot be used: {counted}"));
    Err(if strict && report.n_errors == 0 {
        failure.with_hint("`--strict` takes warnings for errors")
    } else {
        failure
    })
}

/// Number of places at which a problem is shown. Of one that is at more, only the first place is.
const SHOWN_PLACES: usize = 3;

/// Returns the problems to show, each with the number of further places that have the same one.
fn condensed(problems: &[Diagnostic]) -> Vec<(&Diagnostic, usize)> {
    let mut places: HashMap<_, usize> = HashMap::new();
    let same = |problem: &Diagnostic| (problem.severity, problem.message.clone());
    for problem in problems {
        *places.entry(same(problem)).or_default() += 1;
    }
    let mut shown = Vec::new();
    for problem in problems {
        match places.get_mut(&same(problem)) {
            Some(n) if *n > SHOWN_PLACES => {
                shown.push((problem, *n - 1));
                // The other places were counted here.
                *n = 0;
            }
            Some(0) => {}
            _ => shown.push((problem, 0)),
        }
    }
    shown
}

fn counted(report: &CheckReport) -> String {
    let kinds = [(report.n_errors, "error"), (report.n_warnings, "warning")];
    let parts: Vec<String> = kinds
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, kind)| text::count(n, kind))
        .collect();
    parts.join(", ")
}

fn summary(report: &CheckReport) -> String {
    let (tools, servers) = (
        text::count(report.n_tools, "tool"),
        text::count(report.n_servers, "server"),
    );
    let mut summary = format!("{}: ok, {tools}, {servers}", report.files.join(", "));
    if report.n_endpoints > 0 {
        let _ = write!(summary, ", {}", text::count(report.n_endpoints, "endpoint"));
    }
    if report.n_warnings > 0 {
        let _ = write!(summary, ", {}", text::count(report.n_warnings, "warning"));
    }
    summary
}
