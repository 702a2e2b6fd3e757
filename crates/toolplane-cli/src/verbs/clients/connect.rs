//! `toolplane connect`.

use std::path::Path;

use serde_json::Value;

use super::{
    change::{self, NewText, Outcome, Target, Words},
    list,
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
const CONNECTION_KEYS: [&str; 9] = [
    "type",
    "source",
    "command",
    "cmd",
    "args",
    "url",
    "serverUrl",
    "httpUrl",
    "uri",
];

pub(crate) fn run(options: &Options, connect: &Connect, console: Console) -> Result<Exit, CliError> {
    if connect.list {
        return list::run(connect.change.project, console);
    }
    let targets = change::targets(connect.client.as_deref(), &connect.change)?;
    let entry = match &connect.change.http {
        Some(url) => Entry::Url(checked_url(url)?),
        None => program(options)?,
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
    let old = file.text.as_deref().unwrap_or_default();
    let unusable = |error: &edit::EditError| unusable(path, error);
    let root = edit::read(old, client.format).map_err(|error| unusable(&error))?;
    let slot = entry::slot(client, &root, &change.name);
    let others = entry::gateways(client, &root);
    if let Some(other) = others.keys().find(|name| **name != change.name) {
        console.warn(&format!(
            "`{}` has the gateway as `{other}` too: its tools are offered twice",
            path.display()
        ));
    }
    let base = start(client, old);
    let text = match edit::find(&root, slot) {
        None => edit::insert(base, slot, &wanted),
        Some(known) if contains(known, &wanted) => return Ok(target.outcome(&change.name, WORDS.unchanged)),
        Some(known) if is_ours(known, entry) => {
            let merged = merged(known, wanted);
            edit::remove(old, slot).and_then(|text| edit::insert(&text, slot, &merged))
        }
        Some(_) => {
            let message = format!(
                "`{}` has another server of the name `{}`",
                path.display(),
                change.name
            );
            return Err(CliError::failed(message).with_hint("`--name NAME` gives the gateway another name"));
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

/// Returns the text that an entry is added to: that of the file, or else the one with which a client's file begins.
pub(super) fn start<'a>(client: &crate::clients::table::Client, text: &'a str) -> &'a str {
    match text.trim().is_empty() {
        true if !client.template.is_empty() => client.template,
        _ => text,
    }
}

pub(super) fn unusable(path: &Path, error: &edit::EditError) -> CliError {
    CliError::failed(format!("`{}` is not changed: {error}", path.display()))
        .with_hint("correct the file, or add the entry by hand")
}

/// Returns `true` if an entry has all members of another.
fn contains(known: &Value, wanted: &Value) -> bool {
    let mut members = wanted.as_object().into_iter().flatten();
    members.all(|(key, value)| known.get(key) == Some(value))
}

/// Returns `true` if an entry is the gateway: it starts this program, or has the same URL.
fn is_ours(known: &Value, entry: &Entry) -> bool {
    let known = Entry::from_value(known);
    known.is_some_and(|known| known.is_gateway() || known == *entry)
}

/// Returns the wanted entry with what the user added to the known one, such as time limits.
fn merged(known: &Value, mut wanted: Value) -> Value {
    if let (Some(known), Some(members)) = (known.as_object(), wanted.as_object_mut()) {
        for (key, value) in known
            .iter()
            .filter(|(key, _)| !CONNECTION_KEYS.contains(&key.as_str()))
        {
            members.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    wanted
}

/// Returns the entry that starts this program with the configuration in use.
fn program(options: &Options) -> Result<Entry, CliError> {
    let not_text = |path: &Path| CliError::failed(format!("`{}` is no path in UTF-8", path.display()));
    let path = config::variable("PATH");
    let program = entry::program(path.as_deref())
        .map_err(|error| CliError::failed("the path of this program is not known").with_source(&error))?;
    let command = program.to_str().ok_or_else(|| not_text(&program))?.to_owned();
    let mut args = Vec::new();
    for file in config::files(options)? {
        let absolute = file.canonicalize().map_err(|error| {
            CliError::configuration(format!("the configuration `{}` cannot be read", file.display()))
                .with_source(&error)
        })?;
        let absolute = absolute.to_str().ok_or_else(|| not_text(&absolute))?;
        args.extend(["--config".to_owned(), absolute.to_owned()]);
    }
    args.extend(["serve".to_owned(), "--stdio".to_owned()]);
    Ok(Entry::Program { command, args })
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
