//! Rules of the project that a program can check.

mod growth;
mod invariants;
mod links;
mod manifests;
mod promises;
mod published;
mod rust;
mod text;

use std::ffi::OsStr;
use std::path::Path;

use anyhow::Result;

use crate::checks::form::measure_form;
use crate::checks::packages;
use crate::checks::source::SourceFile;
use crate::support::console::Violation;
use crate::support::members::WorkspaceMembers;
use crate::support::repository::Repository;

/// Checks every file of the repository, and the rules that span several files.
///
/// # Errors
/// Returns an error if cargo cannot list the members.
pub fn check_tidy(repository: &Repository) -> Result<Vec<Violation>> {
    let mut problems = Vec::new();
    for file in repository.files() {
        if let Some(text) = repository.text(file) {
            problems.extend(tidy_file(file, &text));
        }
    }
    problems.extend(measure_form(repository).violations());
    problems.extend(links::check(repository));
    problems.extend(promises::check(repository));
    problems.extend(packages::check(repository)?);
    let members = WorkspaceMembers::load(repository.root())?;
    problems.extend(manifests::check(repository, &members));
    problems.extend(published::check(repository, &members));
    problems.extend(growth::check(repository, &members));
    Ok(problems)
}

/// Checks the text of one file. Its path decides which rules apply.
#[must_use]
pub fn tidy_file(path: &Path, text: &str) -> Vec<Violation> {
    let mut problems = text::check(path, text);
    if path.extension() == Some(OsStr::new("rs")) {
        let source = SourceFile::new(text);
        problems.extend(rust::check(path, &source));
        problems.extend(invariants::check(path, &source));
    }
    problems
}

/// Returns `true` if a file is test input that we did not write, and therefore keeps its form.
fn is_fixture(path: &Path) -> bool {
    path.iter().any(|part| part == "fixtures" || part == "snapshots")
        || path.extension() == Some(OsStr::new("snap"))
}

/// Returns `true` if a Rust file is built only for tests, benchmarks or examples.
fn is_test_file(path: &Path) -> bool {
    let is_apart = |part: &OsStr| {
        ["tests", "benches", "examples"]
            .iter()
            .any(|apart| part == *apart)
    };
    path.iter().any(is_apart) || path.file_name() == Some(OsStr::new("tests.rs"))
}
