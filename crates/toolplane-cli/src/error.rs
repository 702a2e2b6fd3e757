use std::{error::Error, fmt::Write};

use raw_json::RawJson;
use serde::Serialize;
use tool_scan::escape_json;
use toolplane::{
    BuildError,
    core::{ErrorKind, ToolError, hide_credentials},
    manifest::{Diagnostic, Diagnostics, Severity},
};

use crate::{exit::Exit, output::text};

/// The error of a verb, as stderr shows it.
#[derive(Debug)]
pub(crate) struct CliError {
    pub(crate) exit: Exit,
    /// Name of the kind in JSON.
    pub(crate) kind: &'static str,
    /// Description of the error: a lower-case fragment.
    pub(crate) message: String,
    /// Advice on how to proceed.
    pub(crate) hint: Option<String>,
    /// `true` if the error was already printed.
    pub(crate) silent: bool,
    pub(crate) details: Box<ErrorDetails>,
}

/// Rare parts of an error, boxed to keep the error small.
#[derive(Debug, Default)]
pub(crate) struct ErrorDetails {
    /// Messages of the causes, outermost first.
    causes: Vec<String>,
    /// Problems of the configuration.
    problems: Vec<Diagnostic>,
    /// Decisions of the layers, for a call with `--explain`.
    pub(crate) explain: Option<RawJson>,
    /// Id of the call's ledger entry.
    ledger_id: Option<String>,
    /// `true` if the tool may have run and must not run twice.
    may_have_run: bool,
}

/// An error as JSON: the one object on stderr.
#[derive(Serialize)]
struct ErrorReport<'a> {
    kind: &'a str,
    message: &'a str,
    exit_code: u8,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    causes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    problems: &'a [Diagnostic],
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<&'a RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ledger_id: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    may_have_run: bool,
}

impl CliError {
    pub(crate) fn new(exit: Exit, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            exit,
            kind,
            message: message.into(),
            hint: None,
            silent: false,
            details: Box::default(),
        }
    }

    /// Returns an error about the command line.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "usage", message)
    }

    /// Returns an error about the configuration.
    pub(crate) fn configuration(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "configuration", message)
    }

    /// Returns an error about something outside of the program.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, "failed", message)
    }

    /// Returns an error that sets the exit code and prints nothing.
    pub(crate) fn silent(exit: Exit) -> Self {
        Self {
            silent: true,
            ..Self::new(exit, "silent", "")
        }
    }

    /// Returns the message with its causes.
    pub(crate) fn with_causes(&self) -> String {
        let causes = self.details.causes.iter().map(String::as_str);
        [self.message.as_str()]
            .into_iter()
            .chain(causes)
            .collect::<Vec<_>>()
            .join(": ")
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn with_hint_if_none(mut self, hint: String) -> Self {
        self.hint.get_or_insert(hint);
        self
    }

    /// Adds the messages of `source` and its causes, without credentials. Skips a message that repeats an earlier one.
    pub(crate) fn with_source(mut self, source: &(dyn Error + 'static)) -> Self {
        let mut next = Some(source);
        while let Some(error) = next {
            let text = hide_credentials(&error.to_string()).into_owned();
            let said = self.details.causes.iter().chain([&self.message]);
            if !text.is_empty() && !said.into_iter().any(|before| repeats(before, &text)) {
                self.details.causes.push(text);
            }
            next = error.source();
        }
        self
    }

    /// Formats the error for people.
    pub(crate) fn render(&self, color: bool) -> String {
        let mut text = String::new();
        for problem in &self.details.problems {
            let _ = writeln!(text, "{}\n", problem.render(color));
        }
        let style = if color { text::ERROR } else { text::PLAIN };
        let _ = write!(text, "{style}error{style:#}: {}", text::line(&self.message));
        for cause in &self.details.causes {
            let _ = write!(text, "\n  caused by: {}", text::line(cause));
        }
        if let Some(hint) = &self.hint {
            let style = if color { text::HINT } else { text::PLAIN };
            let _ = write!(text, "\n{style}hint{style:#}: {}", text::line(hint));
        }
        text
    }

    /// Formats the error as one line of JSON.
    pub(crate) fn to_json(&self) -> String {
        let written = ErrorReport {
            kind: self.kind,
            message: &self.message,
            exit_code: self.exit.code(),
            causes: &self.details.causes,
            hint: self.hint.as_deref(),
            problems: &self.details.problems,
            explain: self.details.explain.as_ref(),
            ledger_id: self.details.ledger_id.as_deref(),
            may_have_run: self.details.may_have_run,
        };
        let text = serde_json::to_string(&written).expect("texts, numbers and checked JSON can be written");
        escape_json(&format!(r#"{{"error":{text}}}"#)).into_owned()
    }
}

/// Returns `true` if `before` contains all words of `later` in their order, with or without others in between.
fn repeats(before: &str, later: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|letter: char| !letter.is_alphanumeric());
        words
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let before_words = words(before);
    let mut before_words = before_words.iter();
    before.contains(later)
        || words(later)
            .iter()
            .all(|word| before_words.any(|before| before == word))
}

impl From<ToolError> for CliError {
    fn from(error: ToolError) -> Self {
        let kind = error.kind();
        let mut failure = Self::new(kind.into(), kind.as_str(), hide_credentials(error.message()));
        failure.details.ledger_id = error.ledger_id().map(|id| id.to_string());
        failure.details.may_have_run = error.may_have_run();
        let kind = if kind.is_retryable() && error.may_have_run() {
            ErrorKind::OutcomeUnknown
        } else {
            kind
        };
        let failure = match error.source() {
            Some(source) => failure.with_source(source),
            None => failure,
        };
        match advice(kind) {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

/// Returns advice for a person at a terminal. The advice of the table in tool-core is written for models.
fn advice(kind: ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::InvalidArguments => "`toolplane tools show TOOL` shows its arguments",
        ErrorKind::NotFound => "`toolplane tools ls` lists all tools",
        ErrorKind::Denied => "`--explain` shows which rule of `policy` decided so",
        ErrorKind::Auth => "check the credentials in the tool's or server's settings",
        ErrorKind::Unavailable | ErrorKind::Protocol => {
            "`toolplane doctor` tries every server and says what is wrong"
        }
        ErrorKind::Timeout => {
            "the limits are `--timeout`, the tool's `timeout_ms` and the configuration's `defaults`"
        }
        ErrorKind::OutcomeUnknown => "check whether it took effect before calling again",
        ErrorKind::ResultTooLarge => "ask for less, or raise the limit that is named",
        ErrorKind::Internal => "this is a bug of toolplane: please report it",
        _ => return None,
    })
}

impl From<Diagnostics> for CliError {
    fn from(problems: Diagnostics) -> Self {
        Self::unusable(problems.into_iter().collect())
    }
}

impl CliError {
    /// Returns the error of a configuration with these problems.
    pub(crate) fn unusable(problems: Vec<Diagnostic>) -> Self {
        let n_errors = problems
            .iter()
            .filter(|problem| problem.severity == Severity::Error)
            .count();
        let counted = text::count(n_errors, "error");
        let mut failure = Self::configuration(format!("the configuration cannot be used: {counted}"));
        failure.details.problems = problems;
        failure
    }
}

impl From<BuildError> for CliError {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Configuration(problems) => problems.into(),
            error => Self::configuration(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{error::Error, fmt, io};

    use proptest::prelude::*;
    use toolplane::core::{ErrorKind, ToolError};

    use super::CliError;

    #[test]
    fn a_failure_is_told_with_addresses_and_without_credentials() {
        let error = ToolError::new(ErrorKind::Unavailable, "10.1.2.3:80 refused api_key=hunter2")
            .with_source(io::Error::other("https://ada:hunter2@10.1.2.3/ is down"));
        assert_eq!(
            CliError::from(error)
                .render(false)
                .lines()
                .take(2)
                .collect::<Vec<_>>(),
            [
                "error: 10.1.2.3:80 refused api_key=[redacted]",
                "  caused by: https://[redacted]@10.1.2.3/ is down",
            ]
        );
    }

    #[test]
    fn a_cause_that_says_nothing_new_is_left_out() {
        let said = |message: &str, cause: &'static str| {
            let error =
                ToolError::new(ErrorKind::UpstreamError, message).with_source(io::Error::other(cause));
            CliError::from(error).details.causes
        };
        let repeated = "the server answered with error -32000: something broke here";
        let none: Vec<String> = Vec::new();
        assert_eq!(
            said(
                "the server `m` answered with the error -32000: something broke here",
                repeated
            ),
            none
        );
        assert_eq!(
            said("the server `m` answered with an error", repeated),
            [repeated]
        );
        assert_eq!(said("it failed", "it failed: connection refused").len(), 1);
    }

    /// An error with a cause.
    #[derive(Debug)]
    struct Link(String, Option<Box<Self>>);

    impl fmt::Display for Link {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(&self.0)
        }
    }

    impl Error for Link {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    proptest! {
        /// No line of an error repeats an earlier one.
        #[test]
        fn no_cause_repeats_what_was_said(messages in prop::collection::vec("([ab]{1,3}(: [ab]{1,2})?)?", 1..6)) {
            let chain = messages[1..].iter().rev().fold(None, |cause, message| {
                Some(Box::new(Link(message.clone(), cause)))
            });
            let error = ToolError::new(ErrorKind::UpstreamError, messages[0].clone());
            let failure = CliError::from(match chain {
                Some(chain) => error.with_source(*chain),
                None => error,
            });
            let said: Vec<&str> = std::iter::once(&failure.message).chain(&failure.details.causes).map(String::as_str).collect();
            for (index, later) in said.iter().enumerate().skip(1) {
                prop_assert!(!later.trim().is_empty(), "{:?}", said);
                prop_assert!(said[..index].iter().all(|before| !super::repeats(before, later) && before != later), "{:?}", said);
            }
        }
    }
}
