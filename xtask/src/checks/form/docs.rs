use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use crate::checks::source::SourceFile;
use crate::support::console::Violation;

/// Openings that are not allowed in any doc block: clauses without a head.
const BANNED: [&str; 7] = [
    "What", "Whether", "That", "Those", "The same", "So many", "Has this",
];
/// Other question words. Only a small share of doc blocks may begin with them.
const RARE: [&str; 6] = ["How", "Where", "When", "Why", "Which", "Who"];
/// Largest share of doc blocks that begin with any of these words, in percent.
const MAX_PERCENT: usize = 2;

/// Doc blocks and their openings.
#[derive(Debug, Default)]
pub(super) struct DocCounts {
    n_blocks: usize,
    banned: Vec<(PathBuf, usize, &'static str)>,
    rare: Vec<(PathBuf, usize)>,
}

impl DocCounts {
    /// Counts the doc blocks of a file.
    pub(super) fn add(&mut self, file: &Path, text: &str, source: &SourceFile) {
        let mut offset = 0;
        let mut is_inside = false;
        for line in text.split_inclusive('\n') {
            let start = offset + line.len() - line.trim_start().len();
            offset += line.len();
            let doc = doc_text(line).filter(|_| source.is_comment(start));
            if let (Some(doc), false) = (doc, is_inside) {
                self.add_block(file, source.line(start), doc);
            }
            is_inside = doc.is_some();
        }
    }

    fn add_block(&mut self, file: &Path, line: usize, doc: &str) {
        self.n_blocks += 1;
        if let Some(opening) = opening(doc, &BANNED) {
            self.banned.push((file.to_path_buf(), line, opening));
        } else if opening(doc, &RARE).is_some() {
            self.rare.push((file.to_path_buf(), line));
        }
    }

    pub(super) fn violations(&self) -> Vec<Violation> {
        let banned = self.banned.iter().map(|(file, line, opening)| {
            let message = format!("a doc block begins with `{opening}`: begin with a noun or a verb");
            Violation::on_line(file, *line, message)
        });
        let (n_rare, n_blocks) = (self.rare.len(), self.n_blocks);
        let first = self
            .rare
            .first()
            .filter(|_| n_rare * 100 > n_blocks * MAX_PERCENT);
        let rare = first.map(|(file, line)| {
            let message = format!(
                "{n_rare} of {n_blocks} doc blocks begin with a question word, {MAX_PERCENT} % at most; the first is here"
            );
            Violation::on_line(file, *line, message)
        });
        banned.chain(rare).collect()
    }
}

impl Display for DocCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_headless = self.banned.len() + self.rare.len();
        let tenths = n_headless * 1000 / self.n_blocks.max(1);
        write!(
            f,
            "doc blocks: {}; without a head: {n_headless} ({}.{} %)",
            self.n_blocks,
            tenths / 10,
            tenths % 10
        )
    }
}

/// Returns the text of a line of documentation.
fn doc_text(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
    (!doc.starts_with('/')).then(|| doc.trim())
}

/// Returns the word from `words` with which a text begins.
fn opening(doc: &str, words: &[&'static str]) -> Option<&'static str> {
    let begins = |word: &&&str| {
        let rest = doc.strip_prefix(**word);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    words.iter().find(begins).copied()
}
