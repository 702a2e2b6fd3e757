use std::{fmt, ops::Range};

use serde::{Serialize, Serializer};

use crate::{diagnostics::render, document::source::SourceFile};

/// Maximum number of characters of a line that are shown.
const MAX_SNIPPET: usize = 160;

/// A problem in a configuration, with its place.
///
/// Serialized, it is an object with `severity`, `message` and, as far as they are known, `file`, `line`, `column`,
/// `field`, `hint`, `snippet` and `related`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Diagnostic {
    /// Severity of the problem.
    pub severity: Severity,
    /// The rule that is broken: a lower-case fragment.
    pub message: String,
    /// Place of the problem.
    #[serde(flatten)]
    pub location: Option<Box<Location>>,
    /// Advice on what to try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Other places that are involved, such as the first of two definitions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Related>,
}

/// Severity of a [`Diagnostic`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The configuration can be used, and may not be what was meant.
    Warning,
    /// The configuration cannot be used.
    Error,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Location {
    /// The file's name as it was given.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The field, such as `servers.files.command`; empty for the file as a whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// The line as it is written.
    pub snippet: Snippet,
}

/// A line of a file, with the part that is meant. Serialized, it is the line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snippet {
    /// The line, cut if it is very long.
    pub text: String,
    /// The part that is meant, in bytes of `text`.
    pub range: Range<usize>,
}

/// Another place that is involved in a problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Related {
    /// Description of that place.
    pub message: String,
    /// The place.
    #[serde(flatten)]
    pub location: Location,
}

impl Diagnostic {
    /// A problem that makes a configuration unusable.
    #[must_use]
    pub fn error(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: message.into(),
            location: None,
            hint: None,
            related: Vec::new(),
        }
    }

    /// A problem with which a configuration can be used, but may not be what was meant.
    #[must_use]
    pub fn warning(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(message)
        }
    }

    /// Sets the place.
    #[must_use]
    pub fn with_location(mut self, location: Option<Location>) -> Self {
        self.location = location.map(Box::new);
        self
    }

    /// Sets the advice on what to try.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds another place that is involved.
    #[must_use]
    pub fn with_related(mut self, message: impl Into<String>, location: Location) -> Self {
        self.related.push(Related {
            message: message.into(),
            location,
        });
        self
    }

    pub(crate) fn at(self, file: &SourceFile, span: Range<usize>, field: String) -> Self {
        self.with_location(Some(Location::new(file, span, field)))
    }

    /// Renders the problem as text of several lines: message, place, the line itself, and what to try.
    #[must_use]
    pub fn render(&self, color: bool) -> String {
        render::render(self, color)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.location {
            write!(f, "{location}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl Location {
    pub(crate) fn new(file: &SourceFile, span: Range<usize>, field: String) -> Self {
        let (line, column) = file.position(span.start);
        let (start, text) = file.line(line);
        let from = text.floor_char_boundary(span.start.saturating_sub(start));
        let to = text.ceil_char_boundary(span.end.saturating_sub(start)).max(from);
        Self {
            file: file.name.clone(),
            line,
            column,
            field,
            snippet: Snippet::cut(text, from..to),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl Snippet {
    /// Takes a line, or the part of a very long one that surrounds what is meant.
    fn cut(line: &str, range: Range<usize>) -> Self {
        if line.chars().count() <= MAX_SNIPPET {
            return Self {
                text: line.to_owned(),
                range,
            };
        }
        let from = line[..range.start]
            .char_indices()
            .rev()
            .nth(MAX_SNIPPET / 4)
            .map_or(0, |(at, _)| at);
        let to = line[from..]
            .char_indices()
            .nth(MAX_SNIPPET)
            .map_or(line.len(), |(at, _)| from + at);
        Self {
            text: line[from..to].to_owned(),
            range: range.start - from..range.end.min(to) - from,
        }
    }
}

impl Serialize for Snippet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// All problems of a configuration that cannot be used, in the order of the files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.summary())]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    pub(crate) fn new(problems: Vec<Diagnostic>) -> Self {
        Self(problems)
    }

    /// The problems, warnings among them.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    /// Renders all of them as text, one block each.
    #[must_use]
    pub fn render(&self, color: bool) -> String {
        let blocks: Vec<String> = self.0.iter().map(|problem| problem.render(color)).collect();
        blocks.join("\n\n")
    }

    fn summary(&self) -> String {
        let mut errors = self
            .0
            .iter()
            .filter(|problem| problem.severity == Severity::Error);
        match (errors.next(), errors.count()) {
            (None, _) => "the configuration cannot be used".to_owned(),
            (Some(only), 0) => only.to_string(),
            (Some(first), 1) => format!("{first} (and 1 more error)"),
            (Some(first), more) => format!("{first} (and {more} more errors)"),
        }
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
