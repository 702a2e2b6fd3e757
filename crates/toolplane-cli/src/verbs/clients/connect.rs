//! `toolplane connect`.

use std::path::{Path, PathBuf};

use serde_json::Value;
use toolplane::manifest::{LoadOptions, Severity, load};

use super::{
    change::{self, NewText, Outcome, Target, Words},
    list,
    origin::{self, start},
};
use crate::{
    clients::{
        edit,
        entry::{self, Entry},
        file::TextFile,
    },
    command::{ClientChange, Connect, Options},
    config,
    error::CliError,
    exit::Exit,
    output::Console,
};

const WORDS: Words = Words {
    done: "connected",
    planned: "would_connect",
    unchanged: "connected_already",
};
/// Keys of an entry that say how the server is reached.
const CONNECTION_KEYS: [&str; 8] = [
    "type",
    "command",
    "cmd",
    "args",
    "url",
    "serverUrl",
    "httpUrl",
    "uri",
];
/// Keys of an entry that belong to a program, and to a URL.
const OF_PROGRAMS: [&str; 6] = ["env", "env_vars", "envs", "environment", "envFile", "cwd"];
const OF_URLS: [&str; 6] = [
    "headers",
    "http_headers",
    "env_http_headers",
    "bearer_token_env_var",
    "oauth",
    "oauth_resource",
];

pub(crate) fn run(options: &Options, connect: &Connect, console: Console) -> Result<Exit, CliError> {
    if connect.list {
        return list::run(connect.change.project, console);
    }
    let targets = change::targets(connect.client.as_deref(), &connect.change)?;
    let entry = match &connect.change.http {
        Some(url) => Entry::Url(checked_url(url)?),
        None => program(options, console)?,
    };
    change::each(&targets, connect.all, &WORDS, console, |target| {
        connect_one(target, &connect.change, &entry, console)
    })
}

fn connect_one(
    target: &Target,
    change: &ClientChange,
    entry: &Entry,
    console: Console,
) -> Result<Outcome, CliError> {
    let path = &target.file.path;
    let client = target.client;
    let Some(wanted) = entry.to_value(client, &change.name) else {
        let message = format!("{} reads no URLs from its file", client.title);
        return Err(CliError::usage(message)
            .with_hint("leave out `--http`: the client starts the gateway; or add the URL in its settings"));
    };
    if let (Entry::Program { args, .. }, Ok(real)) = (entry, path.canonicalize())
        && args.iter().any(|arg| Path::new(arg) == real)
    {
        let message = format!(
            "`{}` is the configuration in use: it would have itself as a server",
            path.display()
        );
        return Err(CliError::usage(message)
            .with_hint("`toolplane import mcp-json --out FILE` makes a configuration of its own"));
    }
    let file = TextFile::read(path)?;
    refuse_replacement(target, &file)?;
    let old = file.text.as_deref().unwrap_or_default();
    let unusable = |error: &edit::EditError| unusable(path, error);
    let root = edit::read(old, client.format).map_err(|error| unusable(&error))?;
    let slot = entry::slot(client, &root, &change.name);
    let others = origin::gateways(&file, client, &root);
    if let Some(other) = others.iter().find(|name| **name != change.name) {
        console.warn(&format!(
            "`{}` has the gateway as `{other}` too: its tools are offered twice",
            path.display()
        ));
    }
    let base = start(client, old);
    let text = match edit::find(&root, slot) {
        None => edit::insert(base, slot, &wanted),
        Some(known) if is_same_connection(known, &wanted) => {
            warn_of_switched_off(known, target, change, console);
            return Ok(target.outcome(&change.name, WORDS.unchanged));
        }
        Some(known)
            if is_ours(known, entry) || origin::origin(&file, client, &change.name, known).is_some() =>
        {
            let (merged, dropped) = merged(known, wanted);
            if !dropped.is_empty() {
                let dropped = toolplane::settings::suggest::list(&dropped);
                console.warn(&format!(
                    "{dropped} of the entry is left out: it does not belong to the new connection"
                ));
            }
            warn_of_switched_off(&merged, target, change, console);
            edit::replace(old, slot, &merged)
        }
        Some(known) => {
            let message = format!(
                "`{}` has another server of the name `{}`",
                path.display(),
                change.name
            );
            return Err(CliError::failed(message).with_hint(hint_at_other(known, target, change)));
        }
    };
    let url = change.http.as_deref();
    let new = NewText {
        text: Some(text.map_err(|error| unusable(&error))?),
        needs_backup: true,
        undo: change::command_line("disconnect", &[], target, change, url),
    };
    change::apply(target, change, &file, new, &WORDS, console)
}

/// Returns advice on an entry that is another server, or a gateway that is not recognized. Its URL may contain credentials.
fn hint_at_other(known: &Value, target: &Target, change: &ClientChange) -> String {
    let name = "`--name NAME` gives the gateway another name";
    let disconnect = change::command_line("disconnect", &[], target, change, None);
    match Entry::from_value(known) {
        Some(Entry::Url(_)) => {
            format!("if it is the gateway, `{disconnect} --http URL` takes it out; otherwise {name}")
        }
        _ => name.to_owned(),
    }
}

pub(super) fn unusable(path: &Path, error: &edit::EditError) -> CliError {
    CliError::failed(format!("`{}` is not changed: {error}", path.display())).with_hint(error.hint())
}

/// Refuses to make a file because of which the client would not read another one any more.
fn refuse_replacement(target: &Target, file: &TextFile) -> Result<(), CliError> {
    let replaced = target.client.replaces.filter(|_| file.text.is_none());
    let Some(replaced) = replaced.map(|name| target.file.path.with_file_name(name)) else {
        return Ok(());
    };
    if !replaced.exists() {
        return Ok(());
    }
    let (title, path) = (target.client.title, target.file.path.display());
    Err(CliError::failed(format!(
        "{title} would not read `{}` any more if there were `{path}`",
        replaced.display()
    ))
    .with_hint("move its settings to the new file first, or add the gateway in the settings of the client"))
}

/// Warns of an entry that the client does not use.
fn warn_of_switched_off(known: &Value, target: &Target, change: &ClientChange, console: Console) {
    let key = match (&known["enabled"], &known["disabled"]) {
        (Value::Bool(false), _) => "enabled",
        (_, Value::Bool(true)) => "disabled",
        _ => return,
    };
    console.warn(&format!(
        "`{}` of {} is switched off there by `{key}`",
        change.name, target.client.title
    ));
}

/// Returns `true` if two entries reach the server in the same way.
fn is_same_connection(known: &Value, wanted: &Value) -> bool {
    let mut keys = CONNECTION_KEYS.iter();
    keys.all(|key| known.get(key) == wanted.get(key))
}

/// Returns `true` if an entry is the gateway: it starts this program, or has the same URL.
fn is_ours(known: &Value, entry: &Entry) -> bool {
    let known = Entry::from_value(known);
    known.is_some_and(|known| known.is_gateway() || known == *entry)
}

/// Returns the wanted entry with what the user wrote into the known one, such as time limits and switches, and the keys that do not
/// belong to it any more.
fn merged(known: &Value, mut wanted: Value) -> (Value, Vec<&str>) {
    let mut dropped = Vec::new();
    let is_program = |value: &Value| matches!(Entry::from_value(value), Some(Entry::Program { .. }));
    let foreign: &[&str] = match (is_program(known), is_program(&wanted)) {
        (true, false) => &OF_PROGRAMS,
        (false, true) => &OF_URLS,
        _ => &[],
    };
    // Zed had the variables of a program below its command.
    let nested = known["command"]
        .get("env")
        .filter(|_| is_program(&wanted))
        .cloned();
    let (Some(known), Some(members)) = (known.as_object(), wanted.as_object_mut()) else {
        return (wanted, dropped);
    };
    for (key, value) in known {
        match key.as_str() {
            key if CONNECTION_KEYS.contains(&key) => {}
            key if foreign.contains(&key) => dropped.push(key),
            _ => {
                members.insert(key.clone(), value.clone());
            }
        }
    }
    if let Some(env) = nested {
        members.entry("env").or_insert(env);
    }
    (wanted, dropped)
}

/// Returns the entry that starts this program with the configuration in use.
fn program(options: &Options, console: Console) -> Result<Entry, CliError> {
    let not_text = |path: &Path| CliError::failed(format!("`{}` is no path in UTF-8", path.display()));
    let path = config::variable("PATH");
    let program = entry::program(path.as_deref())
        .map_err(|error| CliError::failed("the path of this program is not known").with_source(&error))?;
    let command = program.to_str().ok_or_else(|| not_text(&program))?.to_owned();
    let mut args = Vec::new();
    let files = config::files(options)?;
    for file in &files {
        let absolute = file.canonicalize().map_err(|error| {
            CliError::configuration(format!("the configuration `{}` cannot be read", file.display()))
                .with_source(&error)
        })?;
        let absolute = absolute.to_str().ok_or_else(|| not_text(&absolute))?;
        args.extend(["--config".to_owned(), absolute.to_owned()]);
    }
    warn_of_errors(&files, console);
    args.extend(["serve".to_owned(), "--stdio".to_owned()]);
    Ok(Entry::Program { command, args })
}

/// Warns of a configuration with which the gateway would not start.
fn warn_of_errors(files: &[PathBuf], console: Console) {
    let options = files.iter().fold(LoadOptions::new(), LoadOptions::path);
    let Err(problems) = load(&options) else { return };
    let mut errors = problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error);
    if let Some(error) = errors.next() {
        console.warn(&format!(
            "the gateway does not start with this configuration: {error}; `toolplane check` shows all errors"
        ));
    }
}

fn checked_url(url: &str) -> Result<String, CliError> {
    let is_web = reqwest::Url::parse(url).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none()
    });
    match is_web {
        true => Ok(url.to_owned()),
        false => Err(CliError::usage(format!(
            "`{}` is no URL of a gateway",
            toolplane::core::hide_credentials(url)
        ))
        .with_hint("write it as `http://HOST:PORT/mcp` or `https://HOST/mcp`, without credentials")),
    }
}
