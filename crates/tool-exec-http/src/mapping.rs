use std::io::{self, Write};

use jmespath::{ErrorReason, Expression, JmespathError};
use raw_json::RawJson;
use serde_json::Value;

/// JMESPath expression that reshapes a request or a response, as in PromptKit.
///
/// It works on a parsed tree, so a number that exceeds the precision of a double is rounded.
#[derive(Clone)]
pub(crate) struct Mapping(Expression<'static>);

/// Error of applying a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MappingError {
    /// Result exceeds the size limit.
    TooLarge,
    /// Evaluation failed, with the reason.
    Failed(String),
}

/// Maximum length of an expression, in bytes.
const MAX_LENGTH: usize = 4096;
/// Maximum nesting of an expression, since its parser recurses.
const MAX_NESTING: usize = 64;

impl Mapping {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_LENGTH || nesting(text) > MAX_NESTING {
            return Err(format!(
                "must not be longer than {MAX_LENGTH} bytes or nested deeper than {MAX_NESTING} levels"
            ));
        }
        jmespath::compile(text)
            .map(Self)
            .map_err(|error| format!("is not a valid JMESPath expression: {}", syntax(text, &error)))
    }

    /// Applies the expression. The text of the result is at most `limit` bytes.
    pub(crate) fn apply(&self, value: &Value, limit: usize) -> Result<RawJson, MappingError> {
        let failed = |message: String| MappingError::Failed(message);
        let found = self.0.search(value).map_err(|error| failed(reason(&error)))?;
        let mut out = LimitedWriter {
            text: Vec::new(),
            left: limit,
        };
        serde_json::to_writer(&mut out, &found).map_err(|error| {
            if error.is_io() {
                MappingError::TooLarge
            } else {
                failed(error.to_string())
            }
        })?;
        RawJson::parse(out.text).map_err(|error| failed(error.to_string()))
    }
}

/// Formats a syntax error in plain words, since the library's message names tokens of its parser.
fn syntax(text: &str, error: &JmespathError) -> String {
    let ErrorReason::Parse(said) = &error.reason else {
        return reason(error);
    };
    let (rule, found) = said.split_once(" -- found ").unwrap_or((said, ""));
    let rest = text.get(error.offset..).unwrap_or_default().trim_start();
    let is_word = |letter: &char| letter.is_alphanumeric() || *letter == '_';
    let word: String = rest.chars().take_while(is_word).take(30).collect();
    let next = match rest.chars().next() {
        Some(first) if word.is_empty() => first.to_string(),
        _ => word,
    };
    let is_at_end = found == "Eof" || next.is_empty();
    match (rule.strip_prefix("Expected "), is_at_end) {
        (Some(expected), true) => format!("expected {expected} at its end"),
        (Some(expected), false) => format!(
            "expected {expected}, not `{next}`, at character {}",
            error.offset + 1
        ),
        (None, true) => "it ends too early".to_owned(),
        (None, false) => format!("unexpected `{next}` at character {}", error.offset + 1),
    }
}

/// Formats an error in one line. The library's own format adds a drawing of the expression.
fn reason(error: &JmespathError) -> String {
    format!("{} (at character {})", error.reason, error.offset + 1)
}

/// Returns the nesting depth of an expression: brackets, and runs of `!`, for which the parser recurses as well.
fn nesting(text: &str) -> usize {
    let (mut open, mut deepest, mut bangs) = (0_usize, 0, 0);
    for byte in text.bytes() {
        bangs = if byte == b'!' { bangs + 1 } else { 0 };
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open + bangs);
    }
    deepest
}

/// Writer with a size limit, since an expression can produce much output from little input.
struct LimitedWriter {
    text: Vec<u8>,
    left: usize,
}

impl Write for LimitedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self
            .left
            .checked_sub(bytes.len())
            .ok_or_else(|| io::Error::other("too large"))?;
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Mapping;

    #[test]
    fn an_error_of_syntax_is_told_in_words() {
        for (expression, said) in [
            ("{a: ", "it ends too early"),
            ("", "it ends too early"),
            ("a[", "expected number, ':', or '*'"),
            ("a..b", "not `.`"),
            ("a )", "unexpected `)`"),
            ("{a b}", "expected ':' to follow key, not `b`"),
            ("a b", "unexpected `b`"),
        ] {
            let error = Mapping::parse(expression)
                .err()
                .unwrap_or_else(|| panic!("{expression} is not valid"));
            for word in ["nud", "led", "token", "Eof", "--", "Parse"] {
                assert!(!error.contains(word), "{expression}: {error}");
            }
            assert!(
                error.starts_with("is not a valid JMESPath expression: "),
                "{error}"
            );
            assert!(error.contains(said), "{expression}: {error}");
        }
    }
}
