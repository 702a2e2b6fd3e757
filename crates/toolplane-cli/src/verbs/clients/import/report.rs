//! Report on an import: by file, which servers are taken, and which are not and why.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use toolplane::core::hide_credentials;

use super::{
    collect::ReadFile,
    merge::{Decision, Merged},
};
use crate::{
    error::CliError,
    output::{Console, text},
    verbs::clients::masked,
};

/// Import as data.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    files: Vec<FileRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct FileRow {
    file: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<&'static str>,
    #[serde(skip)]
    is_named: bool,
    servers: Vec<ServerRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Debug, Serialize)]
struct ServerRow {
    name: String,
    /// `take`, `same`, `present` or `refuse`.
    decision: &'static str,
    /// Name under which it is taken or known.
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    taken_as: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Settings without secrets.
    #[serde(skip_serializing_if = "Value::is_null")]
    settings: Value,
    #[serde(skip)]
    summary: String,
}

impl Report {
    pub(super) fn new(files: &[ReadFile], merged: &[Merged]) -> Self {
        let rows = files.iter().enumerate().map(|(number, file)| {
            let servers = merged.iter().filter(|server| server.file == number);
            FileRow {
                file: file.path.clone(),
                client: file.client.map(|client| client.name),
                is_named: file.is_named,
                warnings: {
                    let known = file
                        .warnings
                        .iter()
                        .map(|warning| hide_credentials(warning).into_owned());
                    let taken = servers
                        .clone()
                        .filter(|server| matches!(server.decision, Decision::Take(_)));
                    known.chain(taken.flat_map(secret_warnings)).collect()
                },
                servers: servers.map(row).collect(),
                problem: file
                    .problem
                    .as_ref()
                    .map(|problem| hide_credentials(problem).into_owned()),
            }
        });
        Self {
            files: rows.collect(),
            written: None,
        }
    }

    /// Returns `true` if a file that the user named cannot be read.
    pub(super) fn has_failed(&self) -> bool {
        self.files
            .iter()
            .any(|file| file.is_named && file.problem.is_some())
    }

    /// Prints problems and warnings on stderr.
    pub(super) fn warn(&self, console: Console) {
        for file in &self.files {
            let name = file.file.display();
            if let Some(problem) = &file.problem {
                console.warn(&text::line(&format!("`{name}` cannot be used: {problem}")));
            }
            for warning in &file.warnings {
                console.warn(&text::line(warning));
            }
        }
    }

    /// Prints the servers of all files.
    pub(super) fn print(&mut self, written: Option<&Path>, console: Console) -> Result<(), CliError> {
        self.written = written.map(Path::to_owned);
        console.value(self, || {
            let files = self.files.iter().map(lines);
            files.collect::<Vec<_>>().join("\n")
        })
    }
}

fn secret_warnings(server: &Merged) -> impl Iterator<Item = String> {
    let secrets = masked::literal_secrets(&server.settings).into_iter();
    secrets.map(|(section, key)| {
        let variable = masked::variable(&key);
        format!(
            "the server `{}` has a secret written out in `{section}.{key}`: write `${{env:{variable}}}` instead",
            server.name
        )
    })
}

fn row(server: &Merged) -> ServerRow {
    let (decision, taken_as, reason) = match &server.decision {
        Decision::Take(name) => ("take", Some(name.clone()), None),
        Decision::Same(name) => ("same", Some(name.clone()), None),
        Decision::Present(name) => ("present", Some(name.clone()), None),
        Decision::Refuse(reason) => ("refuse", None, Some(hide_credentials(reason).into_owned())),
    };
    ServerRow {
        name: server.name.clone(),
        decision,
        taken_as,
        reason,
        settings: masked::settings(&server.settings),
        summary: masked::summary(&server.settings),
    }
}

fn lines(file: &FileRow) -> String {
    let client = file
        .client
        .map(|client| format!(" ({client})"))
        .unwrap_or_default();
    let mut lines = format!("{}{client}", file.file.display());
    match &file.problem {
        Some(_) => lines.push_str("\n  cannot be used"),
        None if file.servers.is_empty() => lines.push_str("\n  no servers"),
        None => {}
    }
    for server in &file.servers {
        let name = text::line(&server.name);
        let taken_as = server.taken_as.as_deref().unwrap_or_default();
        let said = match server.decision {
            "take" if taken_as == server.name => "take".to_owned(),
            "take" => format!("take as {}", text::line(taken_as)),
            "same" => format!("same as {}", text::line(taken_as)),
            "present" => format!("configured already as {}", text::line(taken_as)),
            _ => format!(
                "not taken: {}",
                text::line(server.reason.as_deref().unwrap_or_default())
            ),
        };
        lines.push_str(&format!("\n  {name}: {said}"));
        if !server.summary.is_empty() {
            lines.push_str(&format!("\n    {}", text::line(&server.summary)));
        }
    }
    lines
}
