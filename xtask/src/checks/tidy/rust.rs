//! Rules for every Rust file: file size, function size, and forbidden attributes and macros.

use std::path::Path;

use super::is_test_file;
use crate::checks::source::{SourceFile, words};
use crate::support::console::Violation;

/// Maximum length of a file, in lines. A longer file is too large to understand as a whole.
const MAX_FILE_LINES: usize = 800;
/// Maximum length of a function, in lines, for the same reason.
const MAX_FUNCTION_LINES: usize = 80;

/// Forbidden attributes, each with its replacement.
const ATTRIBUTES: [(&str, &str); 5] = [
    (
        "[allow(",
        "`#[expect(lint, reason = \"...\")]` says why and complains when it is no longer needed",
    ),
    (
        "[ignore]",
        "a test that does not run is not a test; report a skip with its reason",
    ),
    (
        "[ignore =",
        "a test that does not run is not a test; report a skip with its reason",
    ),
    ("[should_panic]", "assert on the error that is returned"),
    ("[should_panic(", "assert on the error that is returned"),
];

/// Forbidden macros: they mark unfinished work or print debugging output.
const MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];

pub(super) fn check(path: &Path, source: &SourceFile) -> Vec<Violation> {
    let mut problems = forbidden(path, source);
    if is_test_file(path) {
        return problems;
    }
    let n_lines = source.n_lines();
    if n_lines > MAX_FILE_LINES {
        let message = format!("{n_lines} lines without tests, {MAX_FILE_LINES} at most");
        problems.push(Violation::in_file(path, message));
    }
    for function in source.functions() {
        let n_lines = function.lines.len();
        if n_lines > MAX_FUNCTION_LINES {
            let message = format!(
                "`{}` has {n_lines} lines, {MAX_FUNCTION_LINES} at most",
                function.name
            );
            problems.push(Violation::on_line(path, function.lines.start, message));
        }
    }
    problems
}

fn forbidden(path: &Path, source: &SourceFile) -> Vec<Violation> {
    let code = source.code();
    let attributes = ATTRIBUTES.iter().flat_map(|(attribute, instead)| {
        code.match_indices(attribute)
            .filter(|(offset, _)| code[..*offset].ends_with(['#', '!']))
            .map(move |(offset, _)| (offset, format!("`#{attribute}` is not written: {instead}")))
    });
    let macros = MACROS.iter().flat_map(|name| {
        words(code, name)
            .filter(|offset| code[offset + name.len()..].starts_with('!'))
            .map(move |offset| (offset, format!("`{name}!` is not left in the code")))
    });
    attributes
        .chain(macros)
        .map(|(offset, message)| Violation::on_line(path, source.line(offset), message))
        .collect()
}
