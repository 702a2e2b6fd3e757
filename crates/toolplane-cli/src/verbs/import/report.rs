//! Report on an import: what is imported, what is not, and what the operator should check.

use std::{fmt::Write, path::Path};

use serde::Serialize;
use tool_openapi::{ImportedApi, ImportedTool};

use crate::output::{Console, text};

/// Import as data.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Report {
    title: String,
    version: String,
    format: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    tools: Vec<ToolRow>,
    skipped: Vec<SkippedRow>,
    secrets: Vec<SecretRow>,
    n_unselected: usize,
    warnings: Vec<String>,
    #[serde(skip)]
    source: String,
}

#[derive(Debug, Clone, Serialize)]
struct ToolRow {
    name: String,
    method: String,
    path: String,
    read_only: bool,
    warnings: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
struct SkippedRow {
    method: String,
    path: String,
    reason: String,
}

#[derive(Debug, Clone, Serialize)]
struct SecretRow {
    name: String,
    variable: String,
    description: String,
}

impl Report {
    pub(super) fn new(api: &ImportedApi, source: &str) -> Self {
        Self {
            title: api.title.clone(),
            version: api.version.clone(),
            format: api.format.clone(),
            file: None,
            tools: api.tools.iter().map(row).collect(),
            skipped: {
                let skipped = api.skipped.iter();
                let rows = skipped.map(|skipped| SkippedRow {
                    method: skipped.operation.method.clone(),
                    path: skipped.operation.path.clone(),
                    reason: skipped.reason.clone(),
                });
                rows.collect()
            },
            secrets: {
                let secrets = api.secrets.iter();
                let rows = secrets.map(|secret| SecretRow {
                    name: secret.name.clone(),
                    variable: secret.variable.clone(),
                    description: secret.description.clone(),
                });
                rows.collect()
            },
            n_unselected: api.n_unselected,
            warnings: api.warnings.clone(),
            source: source.to_owned(),
        }
    }

    /// Prints what an operator must know on stderr: operations that are skipped, warnings, and tools that change things.
    pub(super) fn tell(&self, console: Console) {
        for warning in &self.warnings {
            console.warn(&text::line(warning));
        }
        for skipped in &self.skipped {
            let line = format!("skipped {} {}: {}", skipped.method, skipped.path, skipped.reason);
            console.warn(&text::line(&line));
        }
        for tool in &self.tools {
            for warning in &tool.warnings {
                console.warn(&text::line(&format!("`{}`: {warning}", tool.name)));
            }
        }
        let changing: Vec<&str> = self
            .tools
            .iter()
            .filter(|tool| !tool.read_only)
            .map(|tool| tool.name.as_str())
            .collect();
        if let Some(first) = changing.first() {
            let counted = match changing.len() {
                1 => format!("1 tool may change things: `{first}`"),
                n => format!("{n} tools may change things, such as `{first}`"),
            };
            console.warn(&text::line(&format!(
                "{counted}; `policy` can block them or require an approval"
            )));
        }
    }

    pub(super) fn with_file(&self, file: String) -> Self {
        Self {
            file: Some(file),
            ..self.clone()
        }
    }

    /// Returns the summary for people.
    pub(super) fn summary(&self, out: &Path) -> String {
        let out = out.display();
        let mut summary = format!(
            "wrote {} of `{}` to `{out}`",
            text::count(self.tools.len(), "tool"),
            text::line(&self.source)
        );
        if !self.skipped.is_empty() {
            let _ = write!(
                summary,
                ", skipped {}",
                text::count(self.skipped.len(), "operation")
            );
        }
        if self.n_unselected > 0 {
            let _ = write!(summary, ", {} not selected", self.n_unselected);
        }
        for secret in &self.secrets {
            let _ = write!(
                summary,
                "\n  set `{}` to {} (secret `{}`)",
                secret.variable, secret.description, secret.name
            );
        }
        let _ = write!(
            summary,
            "\n  `read_only` and `idempotent` follow from the methods: check that the API keeps to them\n  \
             toolplane -c {out} check"
        );
        summary
    }
}

fn row(tool: &ImportedTool) -> ToolRow {
    ToolRow {
        name: tool.descriptor.name.to_string(),
        method: tool.operation.method.clone(),
        path: tool.operation.path.clone(),
        read_only: tool.descriptor.metadata.read_only == Some(true),
        warnings: tool.warnings.clone(),
    }
}
