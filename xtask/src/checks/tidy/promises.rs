//! Checks that the tests named on the page of promises exist.

use std::path::Path;

use crate::checks::source::SourceFile;
use crate::support::console::Violation;
use crate::support::repository::Repository;

const PAGE: &str = "docs/src/reference/promises.md";

/// Line of the page that names a file and tests in it.
struct Proof<'a> {
    line: usize,
    file: &'a str,
    tests: Vec<&'a str>,
}

pub(super) fn check(repository: &Repository) -> Vec<Violation> {
    let Some(text) = repository.text(PAGE) else {
        return Vec::new();
    };
    let proofs: Vec<_> = proofs(&text).collect();
    let mut problems: Vec<_> = proofs
        .iter()
        .flat_map(|proof| check_proof(repository, proof))
        .collect();
    problems.extend(unproved(&text, &proofs));
    problems
}

/// Finds lines such as ``- `crates/x/tests/it/y.rs`: `one_test`, `another_one` ``.
fn proofs(text: &str) -> impl Iterator<Item = Proof<'_>> {
    text.lines().enumerate().filter_map(|(index, line)| {
        let mut spans = line.strip_prefix("- `")?.split('`').step_by(2);
        let file = spans.next().filter(|file| file.ends_with(".rs"))?;
        Some(Proof {
            line: index + 1,
            file,
            tests: spans.filter(|name| !name.is_empty()).collect(),
        })
    })
}

fn check_proof(repository: &Repository, proof: &Proof<'_>) -> Vec<Violation> {
    let Proof { line, file, tests } = proof;
    let Some(text) = repository.text(file) else {
        return vec![Violation::on_line(PAGE, *line, format!("`{file}` is missing"))];
    };
    let source = SourceFile::new(&text);
    let known = source.tests();
    let unknown = tests.iter().filter(|test| !known.contains(test));
    let mut problems: Vec<_> = unknown
        .map(|test| Violation::on_line(PAGE, *line, format!("there is no test `{test}` in `{file}`")))
        .collect();
    if tests.is_empty() {
        problems.push(Violation::on_line(
            PAGE,
            *line,
            format!("names no test in `{file}`"),
        ));
    }
    problems
}

/// Finds promises without a test. A promise is a heading that begins with its number.
fn unproved(text: &str, proofs: &[Proof<'_>]) -> Vec<Violation> {
    let headings: Vec<_> = text
        .lines()
        .enumerate()
        .filter_map(|(index, line)| Some((index + 1, line.strip_prefix("## ")?)))
        .collect();
    let ends = headings.iter().skip(1).map(|(line, _)| *line).chain([usize::MAX]);
    headings
        .iter()
        .zip(ends)
        .filter(|((_, heading), _)| {
            let number = heading.strip_prefix('R');
            number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        })
        .filter(|((line, _), end)| !proofs.iter().any(|proof| (*line..*end).contains(&proof.line)))
        .map(|((line, heading), _)| {
            Violation::on_line(Path::new(PAGE), *line, format!("`{heading}` names no test"))
        })
        .collect()
}
