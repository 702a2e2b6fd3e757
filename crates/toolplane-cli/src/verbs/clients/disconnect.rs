//! `toolplane disconnect`.

use serde_json::Value;

use super::{
    change::{self, NewText, Outcome, Target, Words},
    connect::{start, unusable},
};
use crate::{
    clients::{
        edit,
        entry::{self, Entry},
        file::TextFile,
        table::Client,
    },
    command::{ClientChange, Disconnect},
    error::CliError,
    exit::Exit,
    output::Console,
};

const WORDS: Words = Words {
    done: "disconnected",
    planned: "would_disconnect",
    unchanged: "not_connected",
};

/// Text of a file before the gateway was connected.
enum Origin {
    /// There was a file with this text.
    Text(String),
    /// There was no file.
    Absent,
}

pub(crate) fn run(disconnect: &Disconnect, console: Console) -> Result<Exit, CliError> {
    let targets = change::targets(disconnect.client.as_deref(), &disconnect.change)?;
    change::each(&targets, disconnect.all, &WORDS, console, |target| {
        disconnect_one(target, &disconnect.change, console)
    })
}

fn disconnect_one(target: &Target, change: &ClientChange, console: Console) -> Result<Outcome, CliError> {
    let path = &target.file.path;
    let client = target.client;
    let file = TextFile::read(path)?;
    let text = file.text.as_deref().unwrap_or_default();
    let root = edit::read(text, client.format).map_err(|error| unusable(path, &error))?;
    let slot = entry::slot(client, &root, &change.name);
    let Some(value) = edit::find(&root, slot) else {
        return Ok(target.outcome(&change.name, WORDS.unchanged));
    };
    let origin = origin(&file, client, &change.name, value);
    let known = Entry::from_value(value);
    let is_ours = match &known {
        Some(Entry::Url(url)) => change
            .http
            .as_ref()
            .map_or(origin.is_some(), |given| given == url),
        Some(program) => program.is_gateway(),
        None => false,
    };
    if !is_ours {
        let message = format!(
            "the server `{}` of `{}` is not this gateway",
            change.name,
            path.display()
        );
        return Err(CliError::failed(message).with_hint(
            "`--name NAME` names another entry, and `--http URL` says which URL is the gateway's",
        ));
    }
    let (config, url) = match &known {
        Some(Entry::Program { args, .. }) => (configuration(args), None),
        Some(Entry::Url(url)) => (Vec::new(), Some(url.as_str())),
        None => (Vec::new(), None),
    };
    let undo = change::command_line("connect", &config, target, change, url);
    let new = match origin {
        Some(Origin::Text(text)) => NewText {
            text: Some(text),
            needs_backup: false,
            undo,
        },
        Some(Origin::Absent) => NewText {
            text: None,
            needs_backup: false,
            undo,
        },
        None => {
            let text = edit::remove(text, slot).map_err(|error| unusable(path, &error))?;
            NewText {
                text: Some(text),
                needs_backup: true,
                undo,
            }
        }
    };
    change::apply(target, change, &file, new, &WORDS, console)
}

/// Finds the text to which connecting added exactly this entry: a backup, or none if there was no file. `None` if the file was
/// changed since.
fn origin(file: &TextFile, client: &Client, name: &str, value: &Value) -> Option<Origin> {
    let current = file.text.as_deref()?;
    let leads_here = |text: &str| {
        let base = start(client, text);
        let root = edit::read(base, client.format);
        let edited = root.and_then(|root| edit::insert(base, entry::slot(client, &root, name), value));
        edited.is_ok_and(|edited| edited == current)
    };
    let backup = file.backups().find(|(_, text)| leads_here(text));
    match backup {
        Some((_, text)) => Some(Origin::Text(text)),
        None => leads_here("").then_some(Origin::Absent),
    }
}

/// Returns the configuration files that an entry names.
fn configuration(args: &[String]) -> Vec<String> {
    let pairs = args.windows(2).filter(|pair| pair[0] == "--config");
    pairs.map(|pair| pair[1].clone()).collect()
}
