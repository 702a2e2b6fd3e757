//! Tools that could be removed: those that nobody calls, and those that are deprecated.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use serde::Serialize;
use toolplane::{
    core::{Tool, UsageFigures, UsageKey, UtcDay},
    registry::{Deprecation, ToolRecord, VersionState},
};

use super::{Period, text_of};
use crate::{
    command::Format,
    error::CliError,
    exit::Exit,
    output::{Console, csv::csv, text},
    verbs::tools::server_of,
};

/// A tool that nobody called.
#[derive(Serialize)]
struct UnusedTool<'a> {
    tool: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    /// The server that runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    /// Place of the definition: the server, or the file and line.
    source: &'a str,
}

/// Lists the tools without a call in a period.
pub(super) fn unused(
    tools: &[Arc<Tool>],
    period: &Period,
    (as_csv, console): (bool, Console),
) -> Result<Exit, CliError> {
    let called = period.figures.iter().filter(|(_, figures)| figures.n_calls > 0);
    let called: BTreeSet<&str> = called.map(|(key, _)| &*key.tool).collect();
    let unused: Vec<_> = tools
        .iter()
        .filter(|tool| !called.contains(&**tool.name()))
        .collect();
    let rows: Vec<UnusedTool<'_>> = unused
        .iter()
        .map(|tool| UnusedTool {
            tool: tool.name(),
            version: tool.descriptor().version.as_deref(),
            server: server_of(tool),
            source: &tool.descriptor().origin.place,
        })
        .collect();
    let cells = |row: &UnusedTool<'_>| {
        [Some(row.tool), row.version, row.server, Some(row.source)]
            .map(|cell| cell.unwrap_or_default().to_owned())
            .to_vec()
    };
    let header = ["tool", "version", "server", "source"];
    if as_csv {
        console.data(&csv(&header, rows.iter().map(cells)))?;
    } else if rows.is_empty() && console.format == Format::Table {
        console.say(&format!("every tool was called {}", text_of(&period.days)));
    } else {
        console.list(&rows, |table| {
            table
                .header(header.map(str::to_uppercase))
                .rows(rows.iter().map(cells))
        })?;
        let (n_unused, n_tools) = (rows.len(), text::count(tools.len(), "tool"));
        console.say(&format!(
            "{n_unused} of {n_tools} not called {}",
            text_of(&period.days)
        ));
    }
    Ok(Exit::Done)
}

/// A deprecated version, and its use.
#[derive(Serialize)]
struct DeprecatedVersion<'a> {
    tool: &'a str,
    version: String,
    /// `true` if a call without a version gets it.
    is_latest: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    replacement: Option<&'a str>,
    /// Day on which it may disappear.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<&'a str>,
    calls: u64,
    /// Principals that called it.
    principals: BTreeSet<&'a str>,
    /// Day of the last call of the period.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_call: Option<String>,
}

/// Lists the deprecated versions with their calls in a period.
pub(super) fn deprecated(
    tools: &[ToolRecord],
    period: &Period,
    (as_csv, console): (bool, Console),
) -> Result<Exit, CliError> {
    let uses = uses(&period.figures);
    let mut rows: Vec<DeprecatedVersion<'_>> = Vec::new();
    for tool in tools {
        for head in &tool.versions {
            if let VersionState::Deprecated(deprecation) = &head.state {
                let version = head.version.to_string();
                let used = uses.get(&(&*tool.name, version.as_str()));
                let is_latest = tool.latest.as_ref() == Some(&head.version);
                rows.push(row(&tool.name, version.clone(), deprecation, is_latest, used));
            }
        }
    }
    let cells = |row: &DeprecatedVersion<'_>| {
        let principals: Vec<_> = row.principals.iter().copied().collect();
        let last_call = row.last_call.clone().unwrap_or_default();
        vec![
            row.tool.to_owned(),
            row.version.clone(),
            row.replacement.unwrap_or_default().to_owned(),
            row.until.unwrap_or_default().to_owned(),
            row.calls.to_string(),
            last_call,
            principals.join(" "),
        ]
    };
    let header = [
        "tool",
        "version",
        "replacement",
        "until",
        "calls",
        "last_call",
        "principals",
    ];
    if as_csv {
        console.data(&csv(&header, rows.iter().map(cells)))?;
    } else if rows.is_empty() && console.format == Format::Table {
        console.say("no version of the store is deprecated");
    } else {
        console.list(&rows, |table| {
            let header = header.map(|name| name.to_uppercase().replace('_', " "));
            table.header(header).rows(rows.iter().map(cells))
        })?;
        let n_idle = rows.iter().filter(|row| row.calls == 0).count();
        let n_versions = text::count(rows.len(), "deprecated version");
        console.say(&format!(
            "{n_idle} of {n_versions} not called {}",
            text_of(&period.days)
        ));
    }
    Ok(Exit::Done)
}

/// Use of one version.
#[derive(Default)]
struct VersionUse<'a> {
    n_calls: u64,
    principals: BTreeSet<&'a str>,
    last_call: Option<UtcDay>,
}

/// Returns the use of each version, by tool and version.
fn uses(figures: &[(UsageKey, UsageFigures)]) -> HashMap<(&str, &str), VersionUse<'_>> {
    let mut uses: HashMap<_, VersionUse<'_>> = HashMap::new();
    for (key, figures) in figures.iter().filter(|(_, figures)| figures.n_calls > 0) {
        let version = key.version.as_deref().unwrap_or_default();
        let of_version = uses.entry((&*key.tool, version)).or_default();
        of_version.n_calls = of_version.n_calls.saturating_add(figures.n_calls);
        of_version.principals.insert(&key.principal);
        of_version.last_call = of_version.last_call.max(Some(key.day));
    }
    uses
}

fn row<'a>(
    tool: &'a str,
    version: String,
    deprecation: &'a Deprecation,
    is_latest: bool,
    used: Option<&VersionUse<'a>>,
) -> DeprecatedVersion<'a> {
    DeprecatedVersion {
        tool,
        version,
        is_latest,
        replacement: deprecation.replacement.as_deref(),
        until: deprecation.until.as_deref(),
        calls: used.map_or(0, |used| used.n_calls),
        principals: used.map(|used| used.principals.clone()).unwrap_or_default(),
        last_call: used.and_then(|used| Some(used.last_call?.to_string())),
    }
}
