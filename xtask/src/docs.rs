//! Parts of the documents that are written from the code.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::console::{Problem, refuse, say};
use crate::members::Members;
use crate::process::{find, run};
use crate::repository::Repository;

/// Writes one generated part of one file.
struct Generator {
    file: &'static str,
    /// The name in the markers `<!-- begin name -->` and `<!-- end name -->`.
    part: &'static str,
    write: fn(&Repository) -> Result<String>,
}

const GENERATORS: [Generator; 1] = [Generator {
    file: "ARCHITECTURE.md",
    part: "crates",
    write: crate_table,
}];

/// Writes the generated parts, or with `check` refuses those that are out of date.
///
/// # Errors
/// When a part is out of date, its file or its markers are missing, or it cannot be made.
pub fn docs(repository: &Repository, check: bool) -> Result<()> {
    let mut problems = Vec::new();
    for Generator { file, part, write } in GENERATORS {
        let text = repository
            .text(file)
            .with_context(|| format!("failed to read `{file}`"))?;
        let Some(fresh) = replace_part(&text, part, &write(repository)?) else {
            problems.push(Problem::in_file(
                file,
                format!("has no markers `<!-- begin {part} -->` and `<!-- end {part} -->`"),
            ));
            continue;
        };
        if fresh == text {
            continue;
        }
        if check {
            problems.push(Problem::in_file(
                file,
                format!("part `{part}` is out of date: run `cargo xtask docs`"),
            ));
        } else {
            fs::write(repository.root().join(file), fresh)
                .with_context(|| format!("failed to write `{file}`"))?;
            say(format_args!("docs: wrote `{part}` in `{file}`"));
        }
    }
    refuse("docs", problems)
}

/// Builds the book where mdBook is installed; elsewhere the step `tidy` has checked what its pages link to.
pub(crate) fn book(repository: &Repository) -> Result<()> {
    if repository.text("docs/book.toml").is_none() || find("mdbook").is_none() {
        say("book: not built, mdBook is not installed; its links are checked by `tidy`");
        return Ok(());
    }
    run(Command::new("mdbook")
        .current_dir(repository.root())
        .args(["build", "docs"]))
}

/// Puts `content` between the markers of a part.
pub(crate) fn replace_part(text: &str, part: &str, content: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- begin {part} -->\n"), format!("<!-- end {part} -->"));
    let start = text.find(&begin)? + begin.len();
    let stop = start + text[start..].find(&end)?;
    Some(format!("{}{content}{}", &text[..start], &text[stop..]))
}

fn crate_table(repository: &Repository) -> Result<String> {
    let members = Members::load(repository.root())?;
    let mut table = "| layer | crate | what it is |\n|---|---|---|\n".to_owned();
    for package in members
        .packages
        .iter()
        .filter(|package| members.folder(package).starts_with("crates"))
    {
        let (layer, description) = (package.layer(), package.description.as_deref());
        table += &format!(
            "| {} | [`{name}`](crates/{name}) | {} |\n",
            layer.unwrap_or("?"),
            description.unwrap_or("?"),
            name = package.name,
        );
    }
    Ok(table)
}
