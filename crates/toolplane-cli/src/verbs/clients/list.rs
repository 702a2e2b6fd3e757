//! `toolplane connect --list`.

use serde_json::{Value, json};

use super::origin;
use crate::{
    clients::{
        edit,
        file::TextFile,
        places::{ClientFile, Scope, Surroundings},
        table::{CLIENTS, Client},
    },
    error::CliError,
    exit::Exit,
    output::Console,
};

/// Row of the list.
struct Row {
    client: &'static Client,
    scope: Scope,
    file: ClientFile,
    /// Names under which the file has the gateway, or the reason for which it cannot be read.
    entries: Result<Vec<String>, String>,
}

/// Lists the known clients with their user's files, and the files of the project that exist; with `project`, all of them.
pub(super) fn run(project: bool, console: Console) -> Result<Exit, CliError> {
    let surroundings = Surroundings::current();
    let mut rows = Vec::new();
    for client in CLIENTS {
        for scope in [Scope::User, Scope::Project] {
            let file = surroundings.file(client, scope);
            let file = file.filter(|file| match scope {
                Scope::User => !project,
                Scope::Project => project || file.is_found,
            });
            // In the home, a project's file may be the user's.
            let file = file.filter(|file| rows.iter().all(|row: &Row| row.file.path != file.path));
            rows.extend(file.map(|file| row(client, scope, file)));
        }
    }
    let values: Vec<Value> = rows.iter().map(to_json).collect();
    console.list(&values, |table| {
        table
            .header(["CLIENT", "TITLE", "SCOPE", "FOUND", "CONNECTED", "FILE"])
            .rows(rows.iter().map(|row| {
                let connected = match &row.entries {
                    Ok(names) if names.is_empty() => "no".to_owned(),
                    Ok(names) => format!("as {}", names.join(", ")),
                    Err(reason) => format!("unknown: {reason}"),
                };
                [
                    row.client.name.to_owned(),
                    row.client.title.to_owned(),
                    row.scope.name().to_owned(),
                    if row.file.is_found { "yes" } else { "no" }.to_owned(),
                    connected,
                    row.file.path.display().to_string(),
                ]
            }))
    })?;
    Ok(Exit::Done)
}

fn row(client: &'static Client, scope: Scope, file: ClientFile) -> Row {
    let entries = TextFile::read(&file.path).map_err(|error| error.with_causes());
    let entries = entries.and_then(|read| {
        let root = edit::read(read.text.as_deref().unwrap_or_default(), client.format);
        let root = root.map_err(|error| error.to_string())?;
        Ok(origin::gateways(&read, client, &root))
    });
    Row {
        client,
        scope,
        file,
        entries,
    }
}

fn to_json(row: &Row) -> Value {
    let mut value = json!({
        "client": row.client.name,
        "title": row.client.title,
        "scope": row.scope.name(),
        "file": row.file.path,
        "found": row.file.is_found,
    });
    match &row.entries {
        Ok(names) => {
            value["connected"] = json!(!names.is_empty());
            value["names"] = json!(names);
        }
        Err(reason) => value["problem"] = json!(reason),
    }
    value
}
