//! Rules that let the public API of the published libraries grow: exhaustive types are closed by nature and listed, no
//! constant has an array type, and every async function says what happens when its future is dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::is_test_file;
use crate::checks::source::{SourceFile, words};
use crate::support::console::Violation;
use crate::support::members::WorkspaceMembers;
use crate::support::repository::Repository;

/// Page that lists the exhaustive types.
const PAGE: &str = "docs/src/reference/closed-types.md";
/// Heading that every async function has in its documentation.
const CANCELLATION: &str = "# Cancellation";

/// Checks the sources of all published libraries.
pub(super) fn check(repository: &Repository, members: &WorkspaceMembers) -> Vec<Violation> {
    let mut problems = Vec::new();
    let mut exhaustive = BTreeMap::new();
    for package in members.published().filter(|package| package.is_library()) {
        let sources = members.folder(package).join("src");
        let files = repository
            .files()
            .iter()
            .filter(|file| file.starts_with(&sources));
        for file in files.filter(|file| !is_test_file(file) && !is_program(file)) {
            let Some(text) = repository
                .text(file)
                .filter(|_| file.extension().is_some_and(|end| end == "rs"))
            else {
                continue;
            };
            let source = SourceFile::new(&text);
            for (line, name) in exhaustive_types(&source) {
                exhaustive.insert(format!("{}::{name}", package.name), (file.clone(), line));
            }
            problems.extend(undocumented_cancellation(file, &text, &source));
            problems.extend(array_constants(file, &source));
        }
    }
    problems.extend(compare(&exhaustive, &repository.text(PAGE).unwrap_or_default()));
    problems
}

fn is_program(file: &Path) -> bool {
    file.iter().any(|part| part == "bin")
}

/// Compares the exhaustive types with the first column of the page.
fn compare(exhaustive: &BTreeMap<String, (PathBuf, usize)>, page: &str) -> Vec<Violation> {
    let listed: BTreeMap<_, _> = page
        .lines()
        .enumerate()
        .filter_map(|(index, line)| Some((line.strip_prefix("| `")?.split('`').next()?, index + 1)))
        .collect();
    let open = exhaustive
        .iter()
        .filter(|(name, _)| !listed.contains_key(name.as_str()));
    let open = open.map(|(name, (file, line))| {
        let message =
            format!("`{name}` cannot grow: `#[non_exhaustive]`, or a row with the reason in `{PAGE}`");
        Violation::on_line(file, *line, message)
    });
    let known: BTreeSet<_> = exhaustive.keys().map(String::as_str).collect();
    let stale = listed
        .iter()
        .filter(|(name, _)| !known.contains(*name))
        .map(|(name, line)| {
            let message =
                format!("`{name}` is no public type whose fields or variants are all public and fixed");
            Violation::on_line(PAGE, *line, message)
        });
    open.chain(stale).collect()
}

/// Finds the public enums, and the public structs with fields of which all are public, without `#[non_exhaustive]`.
fn exhaustive_types(source: &SourceFile) -> Vec<(usize, String)> {
    let code = source.code();
    let defined = ["struct", "enum"].into_iter().flat_map(|keyword| {
        words(code, keyword).filter_map(move |offset| {
            let start = code[..offset].rfind('\n').map_or(0, |end| end + 1);
            let is_public = code[start..offset].trim() == "pub" && !source.is_test(offset);
            let rest = code[offset + keyword.len()..].trim_start();
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
            let is_exhaustive = !attributes(code, start).contains("non_exhaustive")
                && (keyword == "enum" || has_public_fields_only(rest));
            (is_public && end > 0 && is_exhaustive).then(|| (source.line(offset), rest[..end].to_owned()))
        })
    });
    defined.collect()
}

/// Returns the code between the item before `start` and the item that begins there: its attributes.
fn attributes(code: &str, start: usize) -> &str {
    let before = &code[..start];
    &before[before.rfind([';', '}', '{']).map_or(0, |end| end + 1)..]
}

/// Returns `true` if the struct whose definition begins `text` has fields, and all of them are public.
fn has_public_fields_only(text: &str) -> bool {
    let Some(fields) = fields(text) else { return false };
    let mut declared = split(fields)
        .into_iter()
        .map(without_attributes)
        .filter(|field| !field.is_empty());
    let mut has_fields = false;
    let all_public = declared.all(|field| {
        has_fields = true;
        field.starts_with("pub ")
    });
    has_fields && all_public
}

/// Returns the text between the braces or parentheses of a struct. A unit struct has none.
fn fields(text: &str) -> Option<&str> {
    let open = text.find(['{', '(', ';'])?;
    let mut depth = 0_usize;
    for (index, c) in text[open..].char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return (index > 0).then(|| &text[open + 1..open + index]);
        }
    }
    None
}

/// Splits fields at the commas that are not nested.
fn split(fields: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start, mut before) = (0_usize, 0, ' ');
    for (index, c) in fields.char_indices() {
        match c {
            '{' | '(' | '[' | '<' => depth += 1,
            '>' if before == '-' => {}
            '}' | ')' | ']' | '>' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&fields[start..index]);
                start = index + 1;
            }
            _ => {}
        }
        before = c;
    }
    parts.push(&fields[start..]);
    parts
}

fn without_attributes(field: &str) -> &str {
    let mut field = field.trim();
    while field.starts_with("#[") {
        let Some(end) = field.find("]\n").or_else(|| field.find("] ")) else {
            break;
        };
        field = field[end + 1..].trim_start();
    }
    field
}

/// Finds the public async functions without a section about cancellation.
fn undocumented_cancellation(file: &Path, text: &str, source: &SourceFile) -> Vec<Violation> {
    let lines: Vec<_> = text.lines().collect();
    let code = source.code();
    let public = code
        .match_indices("pub async fn ")
        .filter(|(offset, _)| !source.is_test(*offset));
    public
        .filter_map(|(offset, keywords)| {
            let line = source.line(offset);
            let above = lines[..line - 1].iter().rev().map(|line| line.trim());
            let mut above = above.take_while(|line| {
                !line.is_empty() && !line.ends_with(['{', '}', ';']) || line.starts_with("///")
            });
            let is_documented = above.any(|line| {
                line.strip_prefix("///")
                    .is_some_and(|doc| doc.trim() == CANCELLATION)
            });
            let name = code[offset + keywords.len()..]
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .next()?;
            let message = format!(
                "`{name}` has no section `{CANCELLATION}`: say what happens when its future is dropped"
            );
            (!is_documented).then(|| Violation::on_line(file, line, message))
        })
        .collect()
}

/// Finds the public constants whose type has the length of an array in it.
fn array_constants(file: &Path, source: &SourceFile) -> Vec<Violation> {
    let code = source.code();
    let constants = code
        .match_indices("pub const ")
        .filter(|(offset, _)| !source.is_test(*offset));
    constants
        .filter_map(|(offset, keywords)| {
            let rest = &code[offset + keywords.len()..];
            let (name, kind) = rest.split_once(':')?;
            let is_constant = name.chars().all(|c| c.is_alphanumeric() || c == '_');
            let kind = kind.split('=').next()?;
            let message = format!(
                "`{name}` has an array type, and one element more would be another type: `&'static [_]`"
            );
            (is_constant && kind.contains("; ") && kind.contains('['))
                .then(|| Violation::on_line(file, source.line(offset), message))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(text: &str) -> Vec<String> {
        let found = exhaustive_types(&SourceFile::new(text));
        found
            .into_iter()
            .map(|(line, name)| format!("{line} {name}"))
            .collect()
    }

    #[test]
    fn finds_types_that_cannot_grow() {
        let text = "pub struct Open {\n    /// A, b.\n    #[serde(default, rename = \"a\")]\n    pub a: Map<u8, fn(u8) -> u8>,\n    pub b: u8,\n}\n\
                    pub struct Pair(pub u8, pub u8);\n\
                    /// Closed.\npub enum Era { Old, New }\n";
        assert_eq!(types(text), ["1 Open", "7 Pair", "9 Era"]);
    }

    #[test]
    fn accepts_types_that_can_grow_or_that_nobody_can_build() {
        let text = "#[derive(Debug)]\n#[non_exhaustive]\n/// Doc; with {signs}.\npub struct A { pub a: u8 }\n\
                    pub struct B { pub a: Vec<(u8, u8)>, b: u8 }\n\
                    pub struct C;\npub struct D(u8);\npub struct Empty {}\npub(crate) enum E {}\nenum F {}\n\
                    #[non_exhaustive]\npub enum G { A }\n#[cfg(test)]\nmod tests { pub enum H {} }\n";
        assert_eq!(types(text), Vec::<String>::new());
    }

    #[test]
    fn compares_with_the_page() {
        let found = BTreeMap::from([
            ("a::Era".to_owned(), (PathBuf::from("crates/a/src/lib.rs"), 3)),
            ("a::Open".to_owned(), (PathBuf::from("crates/a/src/lib.rs"), 9)),
        ]);
        let page =
            "| type | reason |\n|---|---|\n| `a::Era` | There are two |\n| `a::Gone` | It was there |\n";
        let shown: Vec<_> = compare(&found, page).iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "crates/a/src/lib.rs:9: `a::Open` cannot grow: `#[non_exhaustive]`, or a row with the reason in `docs/src/reference/closed-types.md`",
                "docs/src/reference/closed-types.md:4: `a::Gone` is no public type whose fields or variants are all public and fixed",
            ]
        );
    }

    #[test]
    fn async_functions_say_what_dropping_them_does() {
        let text = "impl A {\n    /// Runs.\n    ///\n    /// # Cancellation\n    /// Stops.\n    #[must_use]\n    pub async fn run(&self) {}\n\n    /// Waits.\n    pub async fn wait(&self) {}\n    pub(crate) async fn inner() {}\n}\n";
        let found = undocumented_cancellation(Path::new("a.rs"), text, &SourceFile::new(text));
        let shown: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            ["a.rs:10: `wait` has no section `# Cancellation`: say what happens when its future is dropped"]
        );
    }

    #[test]
    fn constants_have_no_fixed_length() {
        let text = "pub const A: [u8; 2] = [1; 2];\npub const B: &[&str] = &[\"a; b\"];\npub const C: &'static [Self] = &[];\npub const fn d() -> [u8; 2] { [1; 2] }\nconst E: [u8; 2] = [1; 2];\n    pub const F: &[Self; 3] = &[];\n";
        let found = array_constants(Path::new("a.rs"), &SourceFile::new(text));
        let lines: Vec<_> = found
            .iter()
            .map(|problem| problem.to_string().chars().take(15).collect::<String>())
            .collect();
        assert_eq!(lines, ["a.rs:1: `A` has", "a.rs:6: `F` has"]);
    }
}
