//! `toolplane route`: which tool a call for a capability goes to.

use std::collections::BTreeSet;

use toolplane::{
    Toolplane,
    core::format_duration,
    route::{RouteDefinition, RouteReport},
};

use super::on_plane;
use crate::{
    command::{Options, Priority, Route},
    error::CliError,
    exit::Exit,
    output::{Console, table::Table, text},
};

/// Maximum number of capabilities that a hint tells.
const MAX_TOLD: usize = 10;

pub(crate) fn run(options: &Options, route: &Route, console: Console) -> Result<Exit, CliError> {
    on_plane(options, console, async |_, plane| {
        let definition = definition(plane, route).await;
        let report = plane.route(definition, &plane.local_caller()).await;
        show(plane, route, &report, console)
    })
}

/// Returns the definition of the route of this name, or of one among the tools with this capability.
async fn definition(plane: &Toolplane, route: &Route) -> RouteDefinition {
    let named = plane.tool(&route.wanted, &plane.local_caller()).await;
    let named = named.ok().and_then(|tool| RouteDefinition::of(tool.descriptor()));
    let mut definition = named.unwrap_or_else(|| RouteDefinition::for_capability(route.wanted.as_str()));
    definition.wanted.tags.extend(route.tag.iter().cloned());
    definition.requirements.extend(route.requirement.iter().cloned());
    for priority in &route.priority {
        match priority {
            Priority::Speed => definition.priority.speed = true,
            Priority::Cost => definition.priority.cost = true,
            Priority::Reliability => definition.priority.reliability = true,
        }
    }
    definition.max_latency = route.max_latency.or(definition.max_latency);
    definition.max_cost = route.max_cost.or(definition.max_cost);
    definition.min_sla = route.min_sla.or(definition.min_sla);
    definition
}

fn show(plane: &Toolplane, route: &Route, report: &RouteReport, console: Console) -> Result<Exit, CliError> {
    if route.explain {
        console.value(report, || {
            let rows = report.candidates.iter().map(|candidate| {
                let is_chosen = Some(&candidate.tool) == report.tool.as_ref();
                let latency = candidate
                    .latency
                    .map(|latency| format_duration(latency).to_string());
                let why = match &candidate.out {
                    Some(out) => format!("out: {out}"),
                    None => candidate.because.join(", "),
                };
                vec![
                    if is_chosen { "*".to_owned() } else { String::new() },
                    candidate.tool.clone(),
                    candidate
                        .score
                        .map(|score| format!("{score:.1}"))
                        .unwrap_or_default(),
                    latency.unwrap_or_default(),
                    text::line(&why).into_owned(),
                ]
            });
            let table = Table::new(console.stdout_color(), text::terminal_width());
            table
                .header(["", "TOOL", "SCORE", "LATENCY", "WHY"])
                .rows(rows)
                .to_string()
        })?;
    }
    match &report.tool {
        Some(_) if route.explain => Ok(Exit::Done),
        Some(tool) => {
            console.value(tool, || tool.clone())?;
            Ok(Exit::Done)
        }
        None => Err(no_tool(plane, route, report)),
    }
}

fn no_tool(plane: &Toolplane, route: &Route, report: &RouteReport) -> CliError {
    let wanted = text::line(&route.wanted).into_owned();
    if report.candidates.is_empty() {
        let message = format!("no tool has the capability `{wanted}`");
        let error = CliError::new(Exit::NotFound, "not_found", message);
        return error.with_hint(capabilities(plane));
    }
    let message = format!("every candidate for `{wanted}` is out");
    let error = CliError::new(Exit::Unavailable, "unavailable", message);
    match route.explain {
        true => error,
        false => error.with_hint("`--explain` shows the reasons"),
    }
}

/// Tells which capabilities tools have.
fn capabilities(plane: &Toolplane) -> String {
    let view = plane.cached_view(&plane.local_caller());
    let known = view
        .tools()
        .iter()
        .flat_map(|tool| &tool.descriptor().metadata.capabilities);
    let known: BTreeSet<String> = known.map(|name| format!("`{}`", text::line(name))).collect();
    if known.is_empty() {
        return "write `capabilities: [..]` into the tools that have it".to_owned();
    }
    let known: Vec<_> = known.into_iter().take(MAX_TOLD).collect();
    format!("tools have {}", known.join(", "))
}
