//! Questions on the terminal.

use std::io::{self, BufRead, IsTerminal};

use super::Console;
use crate::{command::Format, error::CliError};

/// Asks whether to do something. Returns `true` at once if the answer was given on the command line.
///
/// # Errors
/// If nobody can be asked: stdin or stderr is no terminal, or the output is for programs.
pub(crate) fn confirm(console: Console, is_confirmed: bool, question: &str) -> Result<bool, CliError> {
    must_be_able_to_ask(console, is_confirmed)?;
    if is_confirmed {
        return Ok(true);
    }
    console.stderr(&format!("{question} [y/N]"));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.map_err(|error| CliError::failed("the answer cannot be read").with_source(&error))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Returns an error if there is a question and nobody to answer it.
///
/// # Errors
/// As [`confirm`].
pub(crate) fn must_be_able_to_ask(console: Console, is_confirmed: bool) -> Result<(), CliError> {
    let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    match is_confirmed || is_terminal && console.format == Format::Table {
        true => Ok(()),
        false => Err(CliError::usage("no terminal to ask on: nothing was changed")
            .with_hint("`--yes` writes without asking, and `--dry-run` only shows the change")),
    }
}
