//! Files of clients, and the servers that they have.

use std::path::{Path, PathBuf};

use serde_json::Value;
use toolplane::manifest::{LoadOptions, ServerTransport, Severity, Syntax, load};

use super::super::origin;
use crate::{
    clients::{
        edit,
        entry::{self, Entry},
        file::TextFile,
        places::{Scope, Surroundings},
        table::{CLIENTS, Client, client},
    },
    command::ImportClients,
    error::CliError,
    exit::Exit,
};

/// File that is read.
#[derive(Debug)]
pub(super) struct FoundFile {
    path: PathBuf,
    client: Option<&'static Client>,
    /// `true` if the user named the file.
    is_named: bool,
}

/// File with its servers.
#[derive(Debug)]
pub(super) struct ReadFile {
    pub(super) path: PathBuf,
    pub(super) client: Option<&'static Client>,
    pub(super) is_named: bool,
    pub(super) servers: Vec<FoundServer>,
    /// Warnings and errors about parts of the file.
    pub(super) warnings: Vec<String>,
    /// Reason for which nothing of the file can be used.
    pub(super) problem: Option<String>,
}

/// Server of a file.
#[derive(Debug)]
pub(super) struct FoundServer {
    pub(super) name: String,
    /// Settings in our own form.
    pub(super) settings: Value,
    pub(super) refusal: Option<String>,
}

/// Returns the files to read: the named ones, or those of the clients that exist.
///
/// # Errors
/// If there is none.
pub(super) fn files(import: &ImportClients) -> Result<Vec<FoundFile>, CliError> {
    let surroundings = Surroundings::current();
    let wanted: Vec<&Client> = match import.from.is_empty() {
        true => CLIENTS.iter().collect(),
        false => import.from.iter().filter_map(|name| client(name)).collect(),
    };
    let mut known: Vec<(&'static Client, PathBuf, bool)> = Vec::new();
    for client in CLIENTS {
        let is_wanted = wanted.iter().any(|wanted| wanted.name == client.name);
        for scope in [Scope::User, Scope::Project] {
            let files = surroundings
                .files(client, scope)
                .into_iter()
                .filter(|file| file.path.is_file());
            for file in files {
                // In the home, a project's file may be the user's.
                if known.iter().all(|(_, path, _)| *path != file.path) {
                    known.push((client, file.path, is_wanted));
                }
            }
        }
    }
    if !import.files.is_empty() {
        let client_of = |path: &Path| {
            let real = path.canonicalize().ok();
            let mut same = known
                .iter()
                .filter(|(_, known, _)| known.canonicalize().ok() == real && real.is_some());
            same.next().map(|(client, ..)| *client)
        };
        let named = import.files.iter().map(|path| FoundFile {
            client: client_of(path),
            path: path.clone(),
            is_named: true,
        });
        return Ok(named.collect());
    }
    let found: Vec<FoundFile> = known
        .into_iter()
        .filter(|(.., is_wanted)| *is_wanted)
        .map(|(client, path, _)| FoundFile {
            path,
            client: Some(client),
            is_named: false,
        })
        .collect();
    match found.is_empty() {
        true => Err(
            CliError::new(Exit::NotFound, "not_found", "no file of a known client is found").with_hint(
                "name a file, or see `toolplane connect --list` for the places that were looked at",
            ),
        ),
        false => Ok(found),
    }
}

/// Reads the servers of a file. Never fails: a file that cannot be read has a problem.
pub(super) fn read(file: FoundFile) -> ReadFile {
    let FoundFile {
        path,
        client,
        is_named,
    } = file;
    let mut read = ReadFile {
        path,
        client,
        is_named,
        servers: Vec::new(),
        warnings: Vec::new(),
        problem: None,
    };
    // Names of entries that are the gateway.
    let mut gateways = Vec::new();
    match client.map(|client| entries(&read.path, client)) {
        // The settings of a client may have no servers at all, and then are no configuration.
        Some(Ok(None)) => return read,
        Some(Err(problem)) => {
            read.problem = Some(problem);
            return read;
        }
        Some(Ok(Some(found))) => gateways = found,
        None => {}
    }
    let loaded = match load(&LoadOptions::new().path(&read.path)) {
        Ok(loaded) => loaded,
        Err(problems) => {
            let errors = problems
                .into_iter()
                .filter(|problem| problem.severity == Severity::Error);
            read.problem = Some(
                errors
                    .map(|problem| problem.to_string())
                    .collect::<Vec<_>>()
                    .join("; "),
            );
            return read;
        }
    };
    read.warnings = loaded.diagnostics.iter().map(ToString::to_string).collect();
    for server in &loaded.configuration.servers {
        let settings = loaded
            .server_settings(&server.name)
            .and_then(|settings| settings.to::<Value>().ok());
        let mut found = FoundServer {
            name: server.name.clone(),
            settings: Value::Null,
            refusal: None,
        };
        if let ServerTransport::Refused { reason } = &server.transport {
            found.refusal = Some(reason.clone());
            read.servers.push(found);
            continue;
        }
        match settings {
            None => found.refusal = Some("it cannot be written as a document".to_owned()),
            Some(mut settings) => {
                // The rules of the file's sandbox are in `sandbox`.
                if let Some(settings) = settings.as_object_mut()
                    && settings.contains_key("sandbox")
                {
                    settings.shift_remove("sandboxEnabled");
                }
                let is_gateway = Entry::from_value(&settings).is_some_and(|entry| entry.is_gateway());
                if is_gateway || gateways.contains(&server.name) {
                    found.refusal = Some("it is this gateway".to_owned());
                }
                found.settings = settings;
            }
        }
        if found.refusal.is_none() {
            usable(&mut found, &mut read.warnings);
        }
        read.servers.push(found);
    }
    read
}

/// Returns the names of the entries that are the gateway; `None` if the file has no servers at all.
fn entries(path: &Path, client: &Client) -> Result<Option<Vec<String>>, String> {
    let file = TextFile::read(path).map_err(|error| error.with_causes())?;
    let text = file.text.as_deref().unwrap_or_default();
    let root = edit::read(text, client.format).map_err(|error| error.to_string())?;
    // Claude Code has servers of projects as well.
    let has_servers = root.get("projects").is_some() || !entry::entries(client, &root).is_empty();
    Ok(has_servers.then(|| origin::gateways(&file, client, &root)))
}

/// Checks that settings can be used as those of a server of a configuration. Removes keys that only the client knows, and which the
/// reader of the file left out as well.
fn usable(found: &mut FoundServer, warnings: &mut Vec<String>) {
    loop {
        // As YAML, since JSON may be taken for the file of a client.
        let document = serde_json::json!({"servers": {found.name.as_str(): found.settings}}).to_string();
        let options = LoadOptions::new().text("settings", Syntax::Yaml, document);
        let Err(problems) = load(&options) else {
            return;
        };
        let messages: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
        let unknown = messages.iter().find_map(|message| {
            let key = message.strip_prefix("unknown key `")?.split('`').next()?;
            found.settings.get(key).map(|_| key.to_owned())
        });
        let Some(key) = unknown else {
            found.refusal = Some(messages.join("; "));
            return;
        };
        if let Some(settings) = found.settings.as_object_mut() {
            settings.shift_remove(&key);
        }
        warnings.push(format!(
            "`{}`: `{key}` is a setting of the client alone, and is left out",
            found.name
        ));
    }
}
