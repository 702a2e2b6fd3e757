//! Reference page of the command line, generated from its types.

use std::fmt::Write;

use clap::{Arg, ArgAction, Command, builder::Str};

use crate::{command::command, exit::Exit};

pub(super) fn page() -> String {
    let mut root = command();
    root.build();
    let mut page = "# Command line\n\n".to_owned();
    if let Some(about) = root.get_about() {
        let _ = writeln!(page, "{about}\n");
    }
    page.push_str("Data go to stdout, everything else to stderr.\n\n## Global options\n\n");
    let globals: Vec<&Arg> = root
        .get_arguments()
        .filter(|argument| is_shown(argument))
        .collect();
    options(&mut page, &globals);
    for verb in root.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        describe(&mut page, verb, "toolplane", 2);
    }
    page.push_str("## Exit codes\n\n| code | meaning |\n|---:|---|\n");
    for exit in Exit::ALL {
        let _ = writeln!(page, "| {} | {} |", exit.code(), exit.meaning());
    }
    page
}

fn describe(page: &mut String, verb: &Command, parent: &str, level: usize) {
    let name = format!("{parent} {}", verb.get_name());
    let _ = writeln!(page, "{} `{name}`\n", "#".repeat(level));
    if let Some(about) = verb.get_about() {
        let _ = writeln!(page, "{about}.\n");
    }
    let own: Vec<&Arg> = verb
        .get_arguments()
        .filter(|argument| is_shown(argument) && !argument.is_global_set())
        .collect();
    if !own.is_empty() {
        let words: Vec<String> = own.iter().map(|argument| usage(argument)).collect();
        let _ = writeln!(page, "```text\n{name} {}\n```\n", words.join(" "));
        options(page, &own);
    }
    if let Some(more) = verb.get_after_help() {
        let _ = writeln!(page, "```text\n{more}\n```\n");
    }
    for child in verb
        .get_subcommands()
        .filter(|child| !child.is_hide_set() && child.get_name() != "help")
    {
        describe(page, child, &name, level + 1);
    }
}

fn is_shown(argument: &Arg) -> bool {
    let is_of_clap = matches!(
        argument.get_action(),
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
    );
    !argument.is_hide_set() && !is_of_clap
}

/// Formats an argument for a usage line.
fn usage(argument: &Arg) -> String {
    let word = spelling(argument);
    let repeated = if argument.is_positional() && matches!(argument.get_action(), ArgAction::Append) {
        "…"
    } else {
        ""
    };
    if argument.is_required_set() {
        format!("{word}{repeated}")
    } else {
        format!("[{word}{repeated}]")
    }
}

fn spelling(argument: &Arg) -> String {
    let value = argument
        .get_value_names()
        .into_iter()
        .flatten()
        .map(Str::as_str)
        .collect::<Vec<_>>()
        .join(" ");
    let long = argument.get_long().map(|long| format!("--{long}"));
    match long {
        None => value,
        Some(long) if argument.get_action().takes_values() => format!("{long} {value}"),
        Some(long) => long,
    }
}

fn options(page: &mut String, arguments: &[&Arg]) {
    page.push_str("| option | meaning |\n|---|---|\n");
    for argument in arguments {
        let short = argument
            .get_short()
            .map(|short| format!("`-{short}`, "))
            .unwrap_or_default();
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let values: Vec<String> = argument
            .get_possible_values()
            .iter()
            .filter(|value| !value.is_hide_set() && argument.get_action().takes_values())
            .map(|value| match value.get_help() {
                Some(help) => format!("`{}` ({})", value.get_name(), lower(&help.to_string())),
                None => format!("`{}`", value.get_name()),
            })
            .collect();
        let values = if values.is_empty() {
            String::new()
        } else {
            format!(": {}", values.join(", "))
        };
        let defaults = argument
            .get_default_values()
            .iter()
            .filter(|_| argument.get_action().takes_values())
            .filter_map(|value| value.to_str())
            .collect::<Vec<_>>()
            .join(", ");
        let defaults = if defaults.is_empty() {
            String::new()
        } else {
            format!(". Default: `{defaults}`")
        };
        let _ = writeln!(
            page,
            "| {short}`{}` | {} |",
            spelling(argument),
            cell(&format!("{help}{values}{defaults}"))
        );
    }
    page.push('\n');
}

/// Converts the first letter to lower case, unless the word is an abbreviation.
fn lower(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next();
    match (first, characters.clone().next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain(characters).collect()
        }
        _ => text.to_owned(),
    }
}

/// Escapes a text for a cell of a table.
pub(super) fn cell(text: &str) -> String {
    text.replace('|', "\\|")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}
