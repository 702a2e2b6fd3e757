//! Measures the form of the code: doc blocks, public types, sizes and folders.

mod docs;
mod folders;
mod sizes;
mod types;

use std::fmt::{self, Display};
use std::path::Path;

use self::docs::DocCounts;
use self::folders::FolderCounts;
use self::sizes::{FileSizes, FunctionSizes};
use self::types::PublicTypes;
use crate::checks::source::SourceFile;
use crate::support::console::Violation;
use crate::support::repository::Repository;

/// Figures about the Rust code of a checkout, and the violations that they show.
#[derive(Debug, Default)]
pub struct Form {
    docs: DocCounts,
    types: PublicTypes,
    files: FileSizes,
    functions: FunctionSizes,
    folders: FolderCounts,
}

/// Measures the Rust code of a checkout. Doc blocks count everywhere; types, sizes and folders count in `src` only.
#[must_use]
pub fn measure_form(repository: &Repository) -> Form {
    let mut form = Form::default();
    let rust = repository.files().iter().filter(|file| is_rust(file));
    for file in rust {
        if let Some(text) = repository.text(file) {
            form.add(file, &text);
        }
    }
    form.types.read_glossary(repository);
    form
}

impl Form {
    /// Returns the rules that the code breaks.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        let mut found = self.docs.violations();
        found.extend(self.types.violations());
        found.extend(self.folders.violations());
        found
    }

    fn add(&mut self, file: &Path, text: &str) {
        let source = SourceFile::new(text);
        self.docs.add(file, text, &source);
        if !is_shipped(file) {
            return;
        }
        self.types.add(file, &source);
        self.files.add(&source);
        self.functions.add(&source);
        self.folders.add(file);
    }
}

impl Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.docs)?;
        writeln!(f, "{}", self.types)?;
        writeln!(f, "{}", self.files)?;
        writeln!(f, "{}", self.functions)?;
        write!(f, "{}", self.folders)
    }
}

fn is_rust(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "rs")
}

/// Returns `true` for the sources of a crate, without its tests, examples and benchmarks.
fn is_shipped(file: &Path) -> bool {
    let mut parts = file.iter();
    let first = parts.next();
    let source = match first.and_then(|part| part.to_str()) {
        Some("crates") => parts.nth(1),
        Some("xtask") => parts.next(),
        _ => None,
    };
    source.is_some_and(|part| part == "src") && file.file_name().is_some_and(|name| name != "tests.rs")
}

/// Returns the percentile of a sorted list of numbers.
fn percentile(sorted: &[usize], percent: usize) -> usize {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form_of(files: &[(&str, &str)], glossary: &str) -> Vec<String> {
        let mut form = Form::default();
        for (path, text) in files {
            form.add(Path::new(path), text);
        }
        form.types.read_terms(glossary);
        form.violations().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn refuses_doc_blocks_without_a_head() {
        let text =
            "/// Whether it is open.\nfn a() {}\n\n/// Opens it.\n/// What follows is fine.\nfn b() {}\n";
        let found = form_of(&[("crates/a/tests/it/main.rs", text)], "");
        assert_eq!(
            found,
            ["crates/a/tests/it/main.rs:1: a doc block begins with `Whether`: begin with a noun or a verb"]
        );
        // A string literal contains no doc blocks.
        let quoted = "const A: &str = \"\n/// What\n\";\n";
        assert_eq!(
            form_of(&[("crates/a/src/lib.rs", quoted)], ""),
            Vec::<String>::new()
        );
    }

    #[test]
    fn allows_two_doc_blocks_of_a_hundred_to_begin_with_how() {
        let block = |word: &str| format!("/// {word} it is.\nfn a() {{}}\n\n");
        let few = block("Size of").repeat(98) + &block("How").repeat(2);
        assert_eq!(
            form_of(&[("crates/a/src/lib.rs", &few)], ""),
            Vec::<String>::new()
        );
        let many = block("Size of").repeat(97) + &block("How").repeat(3);
        assert_eq!(
            form_of(&[("crates/a/src/lib.rs", &many)], ""),
            [
                "crates/a/src/lib.rs:292: 3 of 100 doc blocks begin with a question word, 2 % at most; the first is here"
            ]
        );
    }

    #[test]
    fn refuses_types_defined_twice_and_words_without_a_meaning() {
        let one = "pub struct Reply;\nstruct Place;\npub enum HttpReply {}\n";
        let other = "pub trait Reply {}\n#[cfg(test)]\nmod tests { pub struct Reply; }\n";
        let files = [("crates/a/src/lib.rs", one), ("crates/b/src/lib.rs", other)];
        assert_eq!(
            form_of(&files, ""),
            [
                "crates/b/src/lib.rs: public type `Reply` is defined in `crates/a/src/lib.rs` as well",
                "crates/a/src/lib.rs: public type `Reply` is not in the glossary",
            ]
        );
        let glossary = "| term | meaning |\n|---|---|\n| reply | A result |\n";
        assert_eq!(
            form_of(&[("crates/a/src/lib.rs", one)], glossary),
            Vec::<String>::new()
        );
    }

    #[test]
    fn refuses_folders_that_are_too_flat() {
        let paths: Vec<_> = (0..13)
            .map(|number| format!("crates/a/src/part_{number}.rs"))
            .collect();
        let mut files: Vec<_> = paths.iter().map(|path| (path.as_str(), "")).collect();
        assert_eq!(
            form_of(&files, ""),
            ["crates/a/src: 13 files in one folder, 12 at most: sort them into folders by subject"]
        );
        files.pop();
        files.extend([("crates/a/src/lib.rs", ""), ("crates/a/src/b/mod.rs", "")]);
        assert_eq!(form_of(&files, ""), Vec::<String>::new());
    }
}
