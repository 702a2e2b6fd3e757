use serde_saphyr::Error;

/// An invalid scenario, with the position of the error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ScenarioError {
    line: u64,
    column: u64,
    message: String,
    hint: Option<String>,
    source_line: String,
}

impl ScenarioError {
    pub(crate) fn new(error: &Error, text: &str) -> Self {
        let error = error.without_snippet();
        let (line, column) = error
            .location()
            .map_or((1, 1), |at| (at.line().max(1), at.column().max(1)));
        let (message, hint) = words(error);
        let index = usize::try_from(line - 1).unwrap_or(usize::MAX);
        Self {
            line,
            column,
            message,
            hint,
            source_line: text.lines().nth(index).unwrap_or_default().to_owned(),
        }
    }

    /// Returns the line, counted from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Returns the column, counted from 1.
    #[must_use]
    pub fn column(&self) -> u64 {
        self.column
    }

    /// Returns the description, without the position.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns advice on what to write instead.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Returns the source line.
    #[must_use]
    pub fn source_line(&self) -> &str {
        &self.source_line
    }
}

/// Returns the description of an error, and a hint.
fn words(error: &Error) -> (String, Option<String>) {
    match error {
        Error::SerdeUnknownField { field, expected, .. } => (
            format!("the key `{field}` is not known"),
            Some(nearest(field, expected)),
        ),
        Error::SerdeUnknownVariant {
            variant, expected, ..
        } => (
            format!("`{variant}` is not known"),
            Some(nearest(variant, expected)),
        ),
        Error::SerdeMissingField { field, .. } => (format!("the key `{field}` is missing"), None),
        Error::SerdeInvalidType {
            unexpected, expected, ..
        }
        | Error::SerdeInvalidValue {
            unexpected, expected, ..
        } => (format!("expected {expected}, found {unexpected}"), None),
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            (format!("the key `{key}` is given twice"), None)
        }
        Error::Message { msg, .. } => (msg.clone(), None),
        Error::Unexpected { expected, .. } => {
            let expected = match *expected {
                "mapping start" => "a map",
                "sequence start" => "a list",
                other => other,
            };
            (format!("expected {expected}"), None)
        }
        Error::InvalidScalar { ty, .. } => (format!("the value is not a valid {ty}"), None),
        other => {
            let text = other.to_string();
            // The position is reported separately.
            let text = text.rsplit_once(" at line ").map_or(&*text, |(text, _)| text);
            (text.to_owned(), None)
        }
    }
}

/// Suggests the nearest known word, or lists all of them.
fn nearest(written: &str, known: &[&'static str]) -> String {
    let distances = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(written, name), *name));
    let allowed = (written.chars().count() / 3).clamp(1, 3);
    match distances.min() {
        Some((distance, name)) if distance <= allowed => format!("did you mean `{name}`?"),
        _ => {
            let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            format!("known: {}", known.join(", "))
        }
    }
}
