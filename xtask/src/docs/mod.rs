//! Writes the parts of the documentation that are generated from the code, and builds the book.

mod book;
mod book_links;

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};
use tool_core::ErrorKind;

use crate::build::program::{build, executable};
use crate::checks::examples::comparison::comparison_table;
use crate::checks::packages;
use crate::packages::package_table;
use crate::support::console::{Violation, refuse, say};
use crate::support::members::WorkspaceMembers;
use crate::support::repository::Repository;

pub(crate) use self::book::book;

/// Generator of one part of one file.
struct Generator {
    file: &'static str,
    /// Name in the markers `<!-- begin name -->` and `<!-- end name -->`.
    part: &'static str,
    write: fn(&Repository) -> Result<String>,
}

const GENERATORS: [Generator; 7] = [
    Generator {
        file: "ARCHITECTURE.md",
        part: "crates",
        write: crate_table,
    },
    Generator {
        file: "docs/src/reference/configuration.md",
        part: "configuration",
        write: |repository| printed(repository, "configuration"),
    },
    Generator {
        file: "docs/src/reference/cli.md",
        part: "cli",
        write: |repository| printed(repository, "cli"),
    },
    Generator {
        file: "docs/src/reference/errors.md",
        part: "kinds",
        write: |_| Ok(kind_table()),
    },
    Generator {
        file: "docs/src/library/comparison.md",
        part: "programs",
        write: comparison_table,
    },
    Generator {
        file: "docs/src/reference/packages.md",
        part: "packages",
        write: packages::table,
    },
    Generator {
        file: "docs/src/reference/publishing.md",
        part: "published",
        write: package_table,
    },
];

/// Writes the generated parts, or with `check` rejects those that are out of date, and builds the book. `parts` selects
/// some parts, of which `book` is one; if it is empty, all are processed.
///
/// # Errors
/// Returns an error if a part is out of date, if its file or its markers are missing, if it cannot be generated, or if
/// mdBook or a link of the book fails.
pub fn docs(repository: &Repository, check: bool, parts: &[String]) -> Result<()> {
    generate(repository, check, parts)?;
    if parts.is_empty() || parts.iter().any(|part| part == "book") {
        book(repository)?;
    }
    Ok(())
}

/// Writes the generated parts, or with `check` rejects those that are out of date.
pub(crate) fn generate(repository: &Repository, check: bool, parts: &[String]) -> Result<()> {
    let mut problems = Vec::new();
    let is_asked = |part: &str| parts.is_empty() || parts.iter().any(|name| name == part);
    for Generator { file, part, write } in GENERATORS.iter().filter(|generator| is_asked(generator.part)) {
        let text = repository
            .text(file)
            .with_context(|| format!("failed to read `{file}`"))?;
        let Some(fresh) = replace_part(&text, part, &write(repository)?) else {
            problems.push(Violation::in_file(
                file,
                format!("has no markers `<!-- begin {part} -->` and `<!-- end {part} -->`"),
            ));
            continue;
        };
        if fresh == text {
            continue;
        }
        if check {
            problems.push(Violation::in_file(
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

/// Replaces the text between the markers of a part with `content`.
pub(crate) fn replace_part(text: &str, part: &str, content: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- begin {part} -->\n"), format!("<!-- end {part} -->"));
    let start = text.find(&begin)? + begin.len();
    let stop = start + text[start..].find(&end)?;
    Some(format!("{}{content}{}", &text[..start], &text[stop..]))
}

/// Returns a page that the program prints about itself.
fn printed(repository: &Repository, page: &str) -> Result<String> {
    let built = build(repository, &["--package", "toolplane-cli", "--bin", "toolplane"])?;
    let program = executable(&built, "toolplane")?;
    let output = Command::new(program).args(["docs", page]).output();
    let output = output.with_context(|| format!("failed to run `toolplane docs {page}`"))?;
    if !output.status.success() {
        bail!("`toolplane docs {page}` ended with {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`toolplane docs {page}` wrote no text"))
}

/// Returns the table of the error kinds and their consequences.
fn kind_table() -> String {
    let yes = |flag: bool| if flag { "yes" } else { "no" };
    let mut table =
        "| kind | class | may pass later | counts for breakers | counts for health | another answer may be given | alerts operators | advice for a model |\n"
            .to_owned();
    table += "|---|---|---|---|---|---|---|---|\n";
    for &kind in ErrorKind::ALL {
        let class = kind.category().as_str();
        table += &format!(
            "| `{kind}` | {class} | {} | {} | {} | {} | {} | {} |\n",
            yes(kind.is_retryable()),
            yes(kind.counts_for_breaker()),
            yes(kind.counts_for_health()),
            yes(kind.degrades()),
            yes(kind.alerts()),
            kind.advice()
        );
    }
    table
}

fn crate_table(repository: &Repository) -> Result<String> {
    let members = WorkspaceMembers::load(repository.root())?;
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
