//! Change of a client's file: shown, confirmed, backed up and written.

use std::path::PathBuf;

use serde::Serialize;

use crate::{
    clients::{
        entry,
        file::{TextFile, remove_empty_directories},
        places::{ClientFile, Scope, Surroundings},
        table::{CLIENTS, Client, client},
    },
    command::{ClientChange, Format},
    error::CliError,
    exit::Exit,
    output::{Console, confirm::confirm, diff},
};

/// Client whose file is changed.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) client: &'static Client,
    pub(super) scope: Scope,
    pub(super) file: ClientFile,
}

/// Result for one client, as data.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    pub(super) client: &'static str,
    #[serde(skip)]
    pub(super) title: &'static str,
    pub(super) scope: &'static str,
    pub(super) file: PathBuf,
    pub(super) name: String,
    pub(super) state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) backup: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) diff: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) undo: Option<String>,
}

/// Text that a file gets.
pub(super) struct NewText {
    /// The text. `None` removes the file.
    pub(super) text: Option<String>,
    /// `true` if the present text is kept as a backup.
    pub(super) needs_backup: bool,
    /// Command that undoes the change.
    pub(super) undo: String,
}

/// Words of a change: the state that data show, and the verbs of messages.
pub(super) struct Words {
    pub(super) done: &'static str,
    pub(super) planned: &'static str,
    pub(super) unchanged: &'static str,
}

impl Target {
    /// Returns an outcome without a change.
    pub(super) fn outcome(&self, name: &str, state: &'static str) -> Outcome {
        Outcome {
            client: self.client.name,
            title: self.client.title,
            scope: self.scope.name(),
            file: self.file.path.clone(),
            name: name.to_owned(),
            state,
            backup: None,
            diff: None,
            undo: None,
        }
    }
}

/// Returns the clients of a command line: the named one, or all that are found.
///
/// # Errors
/// If the client has no file of this scope, or no client is found.
pub(super) fn targets(name: Option<&str>, change: &ClientChange) -> Result<Vec<Target>, CliError> {
    let surroundings = Surroundings::current();
    let scope = if change.project {
        Scope::Project
    } else {
        Scope::User
    };
    let Some(name) = name else {
        let found = CLIENTS.iter().filter_map(|client| {
            let file = surroundings.file(client, scope).filter(|file| file.is_found)?;
            Some(Target { client, scope, file })
        });
        let found: Vec<Target> = found.collect();
        return match found.is_empty() {
            true => Err(
                CliError::new(Exit::NotFound, "not_found", "no known client is found here")
                    .with_hint("`toolplane connect --list` shows the places that were looked at"),
            ),
            false => Ok(found),
        };
    };
    let client = client(name).ok_or_else(|| CliError::usage(format!("unknown client `{name}`")))?;
    match surroundings.file(client, scope) {
        Some(file) => Ok(vec![Target { client, scope, file }]),
        None if change.project => Err(
            CliError::usage(format!("{} has no file of a project", client.title))
                .with_hint("leave out `--project`"),
        ),
        None => Err(
            CliError::failed(format!("the place of the file of {} is unknown", client.title))
                .with_hint("set `HOME`"),
        ),
    }
}

/// Shows a change, asks, and writes it.
///
/// # Errors
/// If nobody can be asked, or the file cannot be written.
pub(super) fn apply(
    target: &Target,
    change: &ClientChange,
    file: &TextFile,
    new: NewText,
    words: &Words,
    console: Console,
) -> Result<Outcome, CliError> {
    let old = file.text.as_deref().unwrap_or_default();
    let path = &target.file.path;
    let diff = diff::unified(path, old, new.text.as_deref().unwrap_or_default());
    if console.format == Format::Table {
        console.data(&diff)?;
    }
    let mut outcome = target.outcome(&change.name, words.planned);
    outcome.diff = Some(diff);
    if change.dry_run {
        return Ok(outcome);
    }
    let verb = if new.text.is_some() { "write" } else { "remove" };
    if !confirm(console, change.yes, &format!("{verb} `{}`?", path.display()))? {
        outcome.state = "declined";
        return Ok(outcome);
    }
    file.check_writable()?;
    if new.needs_backup {
        outcome.backup = file.back_up()?;
    }
    file.replace(new.text.as_deref())?;
    if new.text.is_none() {
        remove_empty_directories(path, &target.file.base);
    }
    outcome.state = words.done;
    outcome.undo = Some(new.undo);
    Ok(outcome)
}

/// Changes each target, and prints the results. One that fails is reported, and the others are still changed.
///
/// # Errors
/// If the only target fails, or the output cannot be written.
pub(super) fn each(
    targets: &[Target],
    is_all: bool,
    words: &Words,
    console: Console,
    mut one: impl FnMut(&Target) -> Result<Outcome, CliError>,
) -> Result<Exit, CliError> {
    let mut outcomes = Vec::new();
    let mut exit = Exit::Done;
    for target in targets {
        match one(target) {
            Ok(outcome) => {
                if outcome.state == "declined" {
                    exit = Exit::Failed;
                }
                if console.format == Format::Table {
                    console.data(&lines(&outcome, words))?;
                }
                outcomes.push(outcome);
            }
            Err(failure) if is_all => {
                console.failure(&failure);
                exit = Exit::Failed;
            }
            Err(failure) => return Err(failure),
        }
    }
    match outcomes.as_slice() {
        _ if console.format == Format::Table => {}
        [outcome] if !is_all => console.value(outcome, String::new)?,
        outcomes => console.value(outcomes, String::new)?,
    }
    Ok(exit)
}

fn lines(outcome: &Outcome, words: &Words) -> String {
    let Outcome {
        title,
        file,
        name,
        state,
        ..
    } = outcome;
    let file = file.display();
    if *state == "declined" {
        return format!("{title}: nothing was changed");
    }
    if *state == words.unchanged {
        return format!("{title}: {} (`{name}` in `{file}`)", state.replace('_', " "));
    }
    if *state == words.planned {
        return format!("{title}: nothing was changed; without `--dry-run` `{file}` is written");
    }
    let mut lines = format!("{title}: {state} (`{name}` in `{file}`)");
    if let Some(backup) = &outcome.backup {
        lines.push_str(&format!("\n  backup: `{}`", backup.display()));
    }
    if let Some(undo) = &outcome.undo {
        lines.push_str(&format!("\n  undo: {undo}"));
    }
    lines.push_str(&format!("\n  restart {title} so that it reads the file"));
    lines
}

/// Returns the command that makes or undoes this change.
pub(super) fn command_line(
    verb: &str,
    config: &[String],
    target: &Target,
    change: &ClientChange,
    url: Option<&str>,
) -> String {
    let mut words = vec!["toolplane".to_owned()];
    for file in config {
        words.extend(["-c".to_owned(), quoted(file)]);
    }
    words.extend([verb.to_owned(), target.client.name.to_owned()]);
    if change.project {
        words.push("--project".to_owned());
    }
    if let Some(url) = url {
        words.extend(["--http".to_owned(), quoted(url)]);
    }
    if change.name != entry::PROGRAM {
        words.extend(["--name".to_owned(), change.name.clone()]);
    }
    words.join(" ")
}

/// Quotes a word for a shell, if it needs that.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
