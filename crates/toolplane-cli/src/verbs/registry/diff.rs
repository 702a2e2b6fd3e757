//! `toolplane tools diff TOOL@VERSION [VERSION]`.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolplane::{
    core::FieldChange,
    registry::{Publisher, StoredVersion, VersionRequest, definition_changes},
};

use super::tool_and_version;
use crate::{
    error::CliError,
    exit::Exit,
    output::{Console, text},
};

pub(super) async fn run(
    publisher: &Publisher,
    version: &str,
    other: Option<&str>,
    console: Console,
) -> Result<Exit, CliError> {
    let (tool, request) = tool_and_version(version)?;
    let other: VersionRequest = match other {
        // `tool@version` is accepted for both.
        Some(other) => other
            .rsplit_once('@')
            .map_or(other, |(_, version)| version)
            .parse()
            .map_err(|error: toolplane::registry::InvalidVersionRequest| {
                CliError::usage(error.to_string())
            })?,
        None => VersionRequest::Latest,
    };
    let before = publisher.find(tool, &request).await?;
    let after = publisher.find(tool, &other).await?;
    let changes = definition_changes(&before.manifest, &after.manifest);
    let files = changed_files(&before, &after);
    let value = json!({
        "tool": tool,
        "before": before.head.version.to_string(),
        "after": after.head.version.to_string(),
        "change": after.head.change,
        "changes": changes.iter().map(to_json).collect::<Vec<Value>>(),
        "files": files.iter().map(|(path, state)| json!({"path": path, "state": state})).collect::<Vec<Value>>(),
    });
    console.value(&value, || {
        let head = format!("{tool}: {} to {}", before.head.version, after.head.version);
        let changes = changes
            .iter()
            .map(|change| format!("  {}", text::line(&change.to_string())));
        let files = files
            .iter()
            .map(|(path, state)| format!("  file {}: {state}", text::line(path)));
        let mut lines: Vec<_> = std::iter::once(head).chain(changes).chain(files).collect();
        if lines.len() == 1 {
            lines.push("  no difference".to_owned());
        }
        lines.join("\n")
    })?;
    Ok(Exit::Done)
}

fn to_json(change: &FieldChange) -> Value {
    json!({"path": change.path, "before": change.before, "after": change.after})
}

fn changed_files<'a>(before: &'a StoredVersion, after: &'a StoredVersion) -> Vec<(&'a str, &'static str)> {
    let paths: BTreeSet<&str> = before
        .files
        .keys()
        .chain(after.files.keys())
        .map(String::as_str)
        .collect();
    let state = |path| match (before.files.get(path), after.files.get(path)) {
        (Some(old), Some(new)) if old == new => None,
        (Some(_), Some(_)) => Some("changed"),
        (Some(_), None) => Some("removed"),
        (None, _) => Some("new"),
    };
    paths
        .into_iter()
        .filter_map(|path| Some((path, state(path)?)))
        .collect()
}
