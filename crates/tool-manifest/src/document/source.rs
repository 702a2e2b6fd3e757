use std::{
    ops::Range,
    path::{Path, PathBuf},
};

use crate::Diagnostic;

/// Maximum size of a file, in bytes.
pub(crate) const MAX_FILE_BYTES: usize = 4 * 1024 * 1024;

/// Syntax of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// YAML 1.2, one or several documents.
    Yaml,
    /// JSON; comments and trailing commas are accepted, since editors write them.
    Json,
    /// TOML, which only Codex writes.
    Toml,
}

impl Syntax {
    /// Returns the syntax for a file's name: JSON for `.json` and `.jsonc`, TOML for `.toml`, otherwise YAML, which includes JSON.
    #[must_use]
    pub fn from_path(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("json" | "jsonc") => Self::Json,
            Some("toml") => Self::Toml,
            _ => Self::Yaml,
        }
    }
}

/// A text that is read, with everything that is needed to find the place of a byte.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// Name in messages.
    pub(crate) name: String,
    /// Directory that relative paths in it start from.
    pub(crate) directory: PathBuf,
    pub(crate) syntax: Syntax,
    pub(crate) text: String,
    line_starts: Vec<usize>,
}

impl SourceFile {
    pub(crate) fn new(name: String, directory: PathBuf, syntax: Syntax, text: String) -> Self {
        let line_starts = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        Self {
            name,
            directory,
            syntax,
            text,
            line_starts,
        }
    }

    /// Decodes bytes, which must be UTF-8 and not too many.
    pub(crate) fn decode(
        name: String,
        directory: PathBuf,
        syntax: Syntax,
        bytes: Vec<u8>,
    ) -> Result<Self, Diagnostic> {
        if bytes.len() > MAX_FILE_BYTES {
            return Err(Diagnostic::error(format!(
                "`{name}` has more than the {MAX_FILE_BYTES} bytes that are read"
            )));
        }
        match String::from_utf8(bytes) {
            Ok(text) => {
                let text = match text.strip_prefix('\u{feff}') {
                    Some(rest) => rest.to_owned(),
                    None => text,
                };
                Ok(Self::new(name, directory, syntax, text))
            }
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                // Up to the first bad byte the lossy text is the text itself, so offsets agree.
                let file = Self::new(name, directory, syntax, text);
                Err(Diagnostic::error("this is not UTF-8 text")
                    .at(&file, at..at + '\u{fffd}'.len_utf8(), String::new())
                    .with_hint("save the file as UTF-8"))
            }
        }
    }

    pub(crate) fn line_number(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset)
    }

    /// Returns line and column, both from 1; columns count characters.
    pub(crate) fn position(&self, offset: usize) -> (usize, usize) {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.line_number(offset);
        let start = self.line_starts[line - 1];
        let column = self
            .text
            .get(start..offset)
            .map_or(0, |before| before.chars().count());
        (line, column + 1)
    }

    /// Returns the line, from 1, without its line break, and the offset at which it starts.
    pub(crate) fn line(&self, line: usize) -> (usize, &str) {
        let start = self.line_starts[line - 1];
        let end = self.line_starts.get(line).copied().unwrap_or(self.text.len());
        let text = self.text.get(start..end).unwrap_or_default();
        (start, text.trim_end_matches(['\n', '\r']))
    }

    pub(crate) fn slice(&self, span: &Range<usize>) -> &str {
        self.text.get(span.clone()).unwrap_or_default()
    }
}
