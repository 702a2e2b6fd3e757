//! `toolplane disconnect`.

use super::{
    change::{self, NewText, Outcome, Target, Words},
    connect::unusable,
    origin::{self, Origin},
};
use crate::{
    clients::{
        edit,
        entry::{self, Entry},
        file::TextFile,
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
    let origin = origin::origin(&file, client, &change.name, value);
    let known = Entry::from_value(value);
    let is_ours = match &known {
        Some(Entry::Url(url)) => change
            .http
            .as_ref()
            .map_or(origin.is_some(), |given| given == url),
        Some(program) => program.is_gateway() || origin.is_some(),
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

/// Returns the configuration files that an entry names.
fn configuration(args: &[String]) -> Vec<String> {
    let pairs = args.windows(2).filter(|pair| pair[0] == "--config");
    pairs.map(|pair| pair[1].clone()).collect()
}
