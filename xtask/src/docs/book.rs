//! Builds the book by mdBook.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::book_links::BuiltBook;
use crate::peers;
use crate::support::console::{refuse, say};
use crate::support::repository::Repository;
use crate::support::tools::CargoTool;

/// mdBook. Its version is also in `tests/peers/requirements-book.txt`.
const MDBOOK: CargoTool = CargoTool {
    name: "mdbook",
    version: "0.5.4",
    ask_version: &["--version"],
};

/// Builds the book into `target/book`. A warning of mdBook, a page that is missing and a link that leads to nothing are
/// errors.
pub(crate) fn book(repository: &Repository) -> Result<()> {
    let Some(settings) = repository.text("docs/book.toml") else {
        say("book: there is no `docs/book.toml`");
        return Ok(());
    };
    let target = repository.target().join("book");
    if target.exists() {
        fs::remove_dir_all(&target).with_context(|| format!("failed to clear `{}`", target.display()))?;
    }
    build(repository, &program(repository)?, &target)?;
    let book = BuiltBook::open(repository, &target, &settings)?;
    let problems = book.finish()?;
    if problems.is_empty() {
        say(format_args!(
            "book: {} pages in `{}`",
            book.n_pages(),
            target.display()
        ));
    }
    refuse("book", problems)
}

/// Returns mdBook: an installed one of this version, the one from PyPI or, where that has none for this machine, one that
/// is compiled.
fn program(repository: &Repository) -> Result<PathBuf> {
    if let Some(program) = MDBOOK.installed(repository) {
        return Ok(program);
    }
    let folder = repository.target().join("tools/mdbook");
    match peers::install_python(repository, "requirements-book.txt", &folder) {
        Ok(()) => Ok(folder.join("bin/mdbook")),
        Err(error) => {
            say(format_args!("book: no prebuilt mdBook: {error:#}"));
            MDBOOK.program(repository)
        }
    }
}

fn build(repository: &Repository, program: &Path, target: &Path) -> Result<()> {
    let output = Command::new(program)
        .current_dir(repository.root())
        .args(["build", "docs", "--dest-dir"])
        .arg(target)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("failed to start `{}`", program.display()))?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    // mdBook reports a page with a missing include as an error, and succeeds.
    let mut lines = said.lines();
    let complains = lines.any(|line| matches!(line.split_whitespace().next(), Some("WARN" | "ERROR")));
    if complains || !output.status.success() {
        bail!(
            "mdBook ended with {} and said:\n{}",
            output.status,
            said.trim_end()
        );
    }
    Ok(())
}
