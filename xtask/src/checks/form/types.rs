use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use crate::checks::source::{SourceFile, words};
use crate::support::console::Violation;
use crate::support::repository::Repository;

/// Page that gives each word its meaning.
const GLOSSARY: &str = "docs/src/reference/glossary.md";
/// Keywords that define a type or a trait.
const KEYWORDS: [&str; 5] = ["struct", "enum", "trait", "union", "type"];

/// Public types by name, and the terms of the glossary.
#[derive(Debug, Default)]
pub(super) struct PublicTypes {
    files_of: BTreeMap<String, Vec<PathBuf>>,
    terms: BTreeSet<String>,
}

impl PublicTypes {
    /// Adds the public types of a file. Types that are visible only in their crate do not count.
    pub(super) fn add(&mut self, file: &Path, source: &SourceFile) {
        for name in public_types(source) {
            self.files_of.entry(name).or_default().push(file.to_path_buf());
        }
    }

    pub(super) fn read_glossary(&mut self, repository: &Repository) {
        self.read_terms(&repository.text(GLOSSARY).unwrap_or_default());
    }

    /// Reads the first column of each table.
    pub(super) fn read_terms(&mut self, glossary: &str) {
        let rows = glossary.lines().filter_map(|line| line.strip_prefix('|'));
        let terms = rows.filter_map(|row| row.split('|').next());
        self.terms.extend(terms.map(normalized));
    }

    pub(super) fn violations(&self) -> Vec<Violation> {
        let duplicates = self.files_of.iter().filter_map(|(name, files)| {
            let [first, .., last] = &**files else { return None };
            let first = first.display();
            let message = format!("public type `{name}` is defined in `{first}` as well");
            Some(Violation::in_file(last, message))
        });
        let unknown = self.unknown().map(|(name, file)| {
            let message = format!("public type `{name}` is not in the glossary");
            Violation::in_file(file, message)
        });
        duplicates.chain(unknown).collect()
    }

    /// Returns `true` if the glossary has the word or its singular.
    fn has_term(&self, name: &str) -> bool {
        let word = normalized(name);
        let singular = word.strip_suffix('s');
        self.terms.contains(&word) || singular.is_some_and(|singular| self.terms.contains(singular))
    }

    fn one_word(&self) -> impl Iterator<Item = (&String, &PathBuf)> {
        let named = self.files_of.iter().filter(|(name, _)| is_one_word(name));
        named.filter_map(|(name, files)| Some((name, files.first()?)))
    }

    fn unknown(&self) -> impl Iterator<Item = (&String, &PathBuf)> {
        self.one_word().filter(|(name, _)| !self.has_term(name))
    }
}

impl Display for PublicTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_duplicate = self.files_of.values().filter(|files| files.len() > 1).count();
        write!(
            f,
            "public types: {}; defined twice: {n_duplicate}; of one word: {}, not in the glossary: {}",
            self.files_of.len(),
            self.one_word().count(),
            self.unknown().count()
        )
    }
}

/// Finds the names of types and traits declared `pub`, outside of test code, functions and traits.
fn public_types(source: &SourceFile) -> Vec<String> {
    let code = source.code();
    let defined = KEYWORDS.iter().flat_map(|keyword| {
        words(code, keyword).filter_map(|offset| {
            let line = &code[..offset];
            let line = &line[line.rfind('\n').map_or(0, |end| end + 1)..];
            let is_public = line.trim() == "pub" && !source.is_test(offset);
            let name = code[offset + keyword.len()..].trim_start();
            let end = name.find(|c: char| !c.is_alphanumeric() && c != '_')?;
            is_public.then(|| name[..end].to_owned())
        })
    });
    defined.collect()
}

/// Returns `true` for a name of one word, such as `Reply`.
fn is_one_word(name: &str) -> bool {
    name.chars().skip(1).all(|c| !c.is_uppercase())
}

/// Returns a term in lower case, without white space and hyphens.
fn normalized(term: &str) -> String {
    let letters = term.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}
