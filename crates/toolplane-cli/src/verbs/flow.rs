//! `toolplane flow`: workflows are checked, drawn and run.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use toolplane::{
    RawJson, Toolplane,
    core::{Outcome, Tool, ToolError},
    flow::{GraphFormat, WorkflowExecutor, workflow_graph},
    manifest::{Diagnostic, Loaded, Severity},
};

use super::{call, configuration::check::find, on_plane};
use crate::{
    command::{Call, Flow, Format, GraphLanguage, Options},
    error::CliError,
    exit::Exit,
    output::{Console, table::Table, text},
};

pub(crate) fn run(options: &Options, flow: &Flow, console: Console) -> Result<Exit, CliError> {
    match flow {
        Flow::Check { workflow } => on_plane(options, console, async |loaded, plane| {
            check(loaded, plane, workflow.as_deref(), console).await
        }),
        Flow::Graph { workflow, format } => on_plane(options, console, async |_, plane| {
            graph(plane, workflow, *format, console).await
        }),
        Flow::Run(run) => call::run_with(options, run, |result| show_steps(run, result, console), console),
    }
}

/// Result of a check.
#[derive(Serialize)]
struct FlowReport {
    workflow: String,
    ok: bool,
    problems: Vec<Diagnostic>,
}

/// Checks workflows, once the servers of their tools have given their lists.
async fn check(
    loaded: &Loaded,
    plane: &Toolplane,
    wanted: Option<&str>,
    console: Console,
) -> Result<Exit, CliError> {
    plane.view(&plane.local_caller()).await;
    let refused = plane.refused();
    let problems = plane.workflow_problems();
    let tools = loaded.configuration.tools.iter();
    let workflows = tools.filter(|tool| WorkflowExecutor::settings(tool).is_some());
    let mut names: BTreeSet<&str> = workflows.map(|tool| &*tool.name).collect();
    // Also those of a store.
    names.extend(problems.iter().map(|(workflow, _)| &**workflow));
    names.retain(|name| wanted.is_none_or(|wanted| wanted == *name));
    let reports = names.into_iter().map(|name| {
        let unusable = refused.iter().filter(|refused| refused.name == name);
        let unusable = unusable.flat_map(|refused| &refused.problems);
        let mut found: Vec<_> = unusable.map(|problem| loaded.diagnose(name, problem)).collect();
        let of_it = problems.iter().filter(|(workflow, _)| &**workflow == name);
        found.extend(of_it.map(|(workflow, problem)| find::diagnostic(loaded, workflow, problem)));
        FlowReport {
            workflow: name.to_owned(),
            ok: found.iter().all(|problem| problem.severity != Severity::Error),
            problems: found,
        }
    });
    let reports: Vec<_> = reports.collect();
    if let Some(wanted) = wanted.filter(|_| reports.is_empty()) {
        return Err(no_workflow(plane, wanted));
    }
    let n_bad = reports.iter().filter(|report| !report.ok).count();
    if console.format == Format::Table {
        for report in &reports {
            for problem in &report.problems {
                console.stderr(&format!("{}\n", problem.render(console.stderr_color())));
            }
        }
    }
    console.list(&reports, |table| {
        let rows = reports.iter().map(|report| {
            let n_problems = report.problems.len();
            let state = match (report.ok, n_problems) {
                (true, 0) => "ok".to_owned(),
                _ => text::count(n_problems, "problem"),
            };
            vec![report.workflow.clone(), state]
        });
        table.header(["WORKFLOW", "STATE"]).rows(rows)
    })?;
    if n_bad > 0 {
        let counted = text::count(n_bad, "workflow");
        return Err(CliError::configuration(format!("{counted} cannot be used")));
    }
    Ok(Exit::Done)
}

async fn graph(
    plane: &Toolplane,
    workflow: &str,
    format: GraphLanguage,
    console: Console,
) -> Result<Exit, CliError> {
    let tool = plane.tool(workflow, &plane.local_caller()).await?;
    let settings = WorkflowExecutor::settings(tool.descriptor()).ok_or_else(|| not_a_workflow(&tool))?;
    let format = match format {
        GraphLanguage::Mermaid => GraphFormat::Mermaid,
        GraphLanguage::Dot => GraphFormat::Dot,
    };
    // It is offered, so that its settings are valid.
    let graph = workflow_graph(settings, format).unwrap_or_default();
    console.value(&graph, || graph.trim_end().to_owned())?;
    Ok(Exit::Done)
}

fn not_a_workflow(tool: &Tool) -> CliError {
    let kind = &tool.descriptor().executor.kind;
    CliError::usage(format!(
        "`{}` is no workflow: its executor is `{kind}`",
        tool.name()
    ))
}

fn no_workflow(plane: &Toolplane, wanted: &str) -> CliError {
    let failure = CliError::new(
        Exit::NotFound,
        "not_found",
        format!("there is no workflow `{wanted}`"),
    );
    match plane.refused().iter().find(|refused| refused.name == wanted) {
        Some(refused) => failure.with_hint(refused.reason.clone()),
        None => failure,
    }
}

/// Shows how the steps of a run ended, on stderr.
fn show_steps(call: &Call, result: &Result<Outcome, ToolError>, console: Console) {
    let summary = match result {
        Ok(Outcome::Reply(reply)) => {
            let mut meta = reply.meta().iter();
            meta.find(|(key, _)| *key == WorkflowExecutor::META_KEY)
                .map(|(_, summary)| summary.clone())
        }
        Ok(_) => None,
        Err(error) => error.detail().and_then(|detail| detail.get("workflow")),
    };
    let Some(summary) = summary else {
        if matches!(result, Ok(Outcome::Reply(_))) {
            console.warn(&format!("`{}` is no workflow, so it has no steps", call.tool));
        }
        return;
    };
    if console.format == Format::Table {
        let rows = rows(&summary);
        let table = Table::new(console.stderr_color(), text::terminal_width());
        let table = table
            .header(["STEP", "TOOL", "STATUS", "ATTEMPTS", "TIME", "ERROR"])
            .rows(rows);
        console.stderr(&format!("{table}\n"));
    }
}

fn rows(summary: &RawJson) -> Vec<Vec<String>> {
    let steps: Vec<Value> = summary
        .get("steps")
        .and_then(|steps| steps.to().ok())
        .unwrap_or_default();
    let word = |value: &Value| value.as_str().map(text::line).unwrap_or_default().into_owned();
    let rows = steps.iter().map(|step| {
        let attempts = step["attempts"].as_u64().map(|attempts| attempts.to_string());
        let time = step["duration_ms"].as_f64().map(|time| format!("{time:.1} ms"));
        let error = match step["error"]["kind"].as_str() {
            Some(kind) => format!("{kind}: {}", word(&step["error"]["message"])),
            None => String::new(),
        };
        vec![
            word(&step["step"]),
            word(&step["tool"]),
            word(&step["status"]),
            attempts.unwrap_or_default(),
            time.unwrap_or_default(),
            error,
        ]
    });
    rows.collect()
}
